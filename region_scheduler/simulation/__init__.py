"""A world in one process: the real roles on simulated time, broker and faults."""
