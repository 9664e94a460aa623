"""What the people of a seeded world submit: small graphs of every shape, with locks and doubts."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random  # noqa: TID251 - a world is replayed by its seed
from typing import Final

from region_scheduler.domain.admission import Plan
from region_scheduler.domain.task import (
    LockNeed,
    OnLoss,
    RetryPolicy,
    TaskSpec,
    WhenHolderLost,
)

_RUNS_MAX: Final = 3
_TASKS_MAX: Final = 7
_LOCKS: Final = (("acme/aws:organizations", 1), ("acme/aws:account-factory", 2))


def plans(chance: Random, regions: Sequence[str]) -> list[Plan]:
    """Return what is submitted in a world with these regions."""
    return [_plan(chance, regions, n) for n in range(chance.randint(1, _RUNS_MAX))]


def _plan(chance: Random, regions: Sequence[str], number: int) -> Plan:
    names = [f"t{n}" for n in range(chance.randint(2, _TASKS_MAX))]
    edges = [
        (before, after)
        for n, after in enumerate(names)
        for before in names[:n]
        if chance.random() < 1 / 3
    ]
    return Plan(
        name=f"run{number}",
        tenant=chance.choice(["acme", "globex"]),
        home_region=chance.choice(regions),
        regions=tuple(regions),
        tasks=tuple(_spec(chance, regions, name) for name in names),
        edges=tuple(edges),
    )


def _spec(chance: Random, regions: Sequence[str], name: str) -> TaskSpec:
    region = chance.choice(regions)
    allowed = tuple(one for one in regions if one == region or chance.random() < 0.7)
    resource, capacity = chance.choice(_LOCKS)
    lock = LockNeed(
        resource=resource,
        capacity=capacity,
        units=chance.randint(1, capacity),
        when_holder_lost=chance.choice(list(WhenHolderLost)),
    )
    return TaskSpec(
        name=name,
        runner="simulate",
        inputs={"fails": chance.choice([0.0, 0.0, 0.3])},
        region=region,
        allowed_regions=allowed,
        is_pinned=chance.random() < 1 / 4,
        locks=(lock,) if chance.random() < 0.4 else (),
        on_loss=chance.choice(list(OnLoss)),
        expected_s=chance.choice([0.1, 0.5, 2.0, 4.0]),
        retry=RetryPolicy(limit=3, delay_s=1.0, losses_limit=50, inspections_limit=20),
    )
