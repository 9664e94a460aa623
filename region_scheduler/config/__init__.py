"""Settings: what there is to set, where a value came from, and which relations must hold.

Order: defaults < region-scheduler.toml < REGION_SCHEDULER_... < flags. Only `load` reads the
environment; its sections are plain frozen dataclasses, handed on to whoever needs them.
"""
