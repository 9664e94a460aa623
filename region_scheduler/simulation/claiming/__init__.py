"""The protocol of a claim as a model for `exploration`: who may run a task, whatever goes wrong.

Two schedulers, one observer and one worker with two pool children share two tasks, the second of
which may need the first. They are the product's own decisions (`domain.transitions`) committed by
its own gate (`commit.gate`); around them the model has a store, a queue, steps and their lease, and
each fault at most once. Time is left out but for its order: a lease is over only after its
holder has not renewed it, and an observer acts only after it is over.
"""
