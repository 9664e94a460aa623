"""Zone types: what a landing zone consists of, said once, and how it becomes a run's graph.

`data/` is the source. Every step is defined exactly once, in one subgraph; a zone type is a list of
subgraphs and of the parameters it takes. Five placeholders stand where a subgraph cannot know its
neighbours: `@cloudgate`, `@backup`, `@cloudfw`, `@evidence`, `@leaves` (see `resolve`).

`compose.expand` makes the graph of one zone: it checks the parameters, resolves the placeholders,
multiplies the per-region steps (`id@region`) and gives every task its region, locks, runner inputs
and times. It is pure: the same arguments and the same catalogue version give the same plan.

The terraform modules in `modules/` and the programs in `steps/` are stand-ins: they touch no cloud.
They keep the shape of the real thing, what a step reads from the ones before it and what it gives
to those after it, so that a user replaces them one by one. This module imports nothing, because the
programs start under it.
"""
