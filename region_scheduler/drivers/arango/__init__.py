"""The replicated graph store: ArangoDB through python-arango, or the embedded engine by its API.

`graph.open_graph` is the way in. Every write goes through `documents`, conditional on a revision;
every question is a file in `queries/`, whose header says what it promises.
"""
