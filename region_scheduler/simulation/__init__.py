"""A world in one process: the real roles on simulated time, broker and faults.

Two ways to drive it. `World` is driven by tests, tick by tick, one process after the other;
`faults` lets one call of it go wrong. `SeededWorld` drives itself: each process is an actor with a
stack of its own (`hub`), the next turn is whoever is due, and any call of a port is a place at
which others may act, the process may die, or an answer may be lost (`chaos`). What befalls
processes, links and stores comes from `troubles`, what people do from `people`, what they submit
from `workload`.

The oracle is `verify`, together with the log of effects, in true time, which no store can falsify
(`steps`). A step is guarded by a shim that does not stand still with its worker (`timed`).

Everything that is drawn comes from the seed: which faults, ids, how long a call travels. Each has
a generator of its own, so that leaving faults out (`campaign`) does not change what is submitted.
"""
