"""Rounds in several processes, and what they come to together."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from region_scheduler.bench.engine_client import Round

T = TypeVar("T")


def in_processes(calls: Sequence[tuple[Callable[..., T], tuple[Any, ...]]]) -> list[T]:
    """Run each call in a process of its own, all at once."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(len(calls)) as pool:
        waiting = [pool.apply_async(act, arguments) for act, arguments in calls]
        return [one.get(timeout=300) for one in waiting]


def summary(rounds: Sequence[Round]) -> dict[str, float]:
    """Return the summed rate, and percentiles of all latencies in milliseconds."""
    latencies = sorted(latency for one in rounds for latency in one.latencies_s)
    return {
        "per_s": sum(one.count / one.seconds for one in rounds),
        "p50_ms": percentile(latencies, 0.50) * 1e3,
        "p99_ms": percentile(latencies, 0.99) * 1e3,
        "max_ms": latencies[-1] * 1e3,
    }


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value that `share` of an ordered sequence does not exceed."""
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
