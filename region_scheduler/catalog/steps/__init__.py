"""Stand-in programs of catalogue steps; standard library only, so that they start at once.

Each is run as `python -m region_scheduler.catalog.steps.<name>`, reads one JSON document and writes
one: see `document`. They do harmless, real work on what they are given and touch no cloud.
"""
