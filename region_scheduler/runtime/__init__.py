"""What only the machine can give (time, chance, identifiers), and what waits: loops, signals, logs.

Everything above is handed these; nothing above sleeps, starts a thread or reads a clock itself.
"""
