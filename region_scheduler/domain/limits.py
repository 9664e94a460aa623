"""How big a submission may be."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Limits:
    """Each at least 1; together what both stores hold.

    Attributes:
        tasks_max: Nodes of one graph.
        edges_max: Dependencies, repeated ones not counted.
        depth_max: Tasks on the longest path.
        predecessors_max: Direct predecessors of one task.
        id_bytes_max: One id, as UTF-8.
        task_bytes_max: One task with its inputs and labels, as JSON.
        body_bytes_max: The whole submission as it is read.
    """

    tasks_max: int = 20_000
    edges_max: int = 200_000
    depth_max: int = 10_000
    predecessors_max: int = 10_000
    id_bytes_max: int = 1_024
    task_bytes_max: int = 256 * 1024
    body_bytes_max: int = 32 * 1024 * 1024

    def __post_init__(self) -> None:
        """Refuse limits that nothing could keep to."""
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise ValueError(f"{field.name} must be at least 1")


LIMITS = Limits()
"""Those that count unless others are set."""
