"""The relational row of a task."""

from __future__ import annotations

from collections.abc import Sequence

from region_scheduler.domain.task import Task
from region_scheduler.ports.backlog import TaskRow


def metadata_rows(tasks: Sequence[Task]) -> list[TaskRow]:
    """Return the attributes of `tasks` as this region's relational store keeps them."""
    return [
        TaskRow(
            task=task.id,
            run=task.run,
            tenant=task.tenant,
            name=task.spec.name,
            region=task.region,
            state=task.state,
            runner=task.spec.runner,
            pool=task.spec.pool,
            seq=task.seq,
            priority=task.spec.priority,
            delay_tolerance_s=task.spec.delay_tolerance_s,
            expected_s=task.spec.expected_s,
            remaining_s=task.spec.remaining_s,
            cap_s=task.spec.cap_s,
            retry_limit=task.spec.retry.limit,
            retries_used=task.retries_used,
            locks=tuple(need.resource for need in task.spec.locks),
        )
        for task in tasks
    ]
