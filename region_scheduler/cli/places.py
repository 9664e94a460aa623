"""Where the tasks of a submission go, told as it is: a run may go to more regions than it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from region_scheduler.domain.admission import Plan
    from region_scheduler.domain.run import Run
    from region_scheduler.ports.records import GraphStores


class Placed:
    """Expands a request, and remembers in which scheduler region each task begins.

    Args:
        expand: Makes the plan.
    """

    def __init__(self, expand: Callable[[], Plan]) -> None:
        self._expand = expand
        self._plan: Plan | None = None

    def __call__(self) -> Plan:
        """Return the plan."""
        self._plan = self._expand()
        return self._plan

    def regions(self, graph: GraphStores, run: Run) -> Mapping[str, int]:
        """Return how many tasks begin in each region, most first.

        Raises:
            Unavailable: The request came before, so that the graph had to be asked; no answer.
        """
        specs = self._plan.tasks if self._plan else [t.spec for t in graph.tasks.of_run(run.id)]
        return dict(Counter(spec.region for spec in specs).most_common())


def told(run: Run, regions: Mapping[str, int]) -> str:
    """Return it for people."""
    places = ", ".join(f"{count} in {region}" for region, count in regions.items())
    return f"{run.task_count} tasks, {places}"
