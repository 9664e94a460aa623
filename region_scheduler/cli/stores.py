"""`rebuild-backlog`: the region's relational store, dropped and refilled from the graph."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from region_scheduler.cli.options import Json, Region, StateDir
from region_scheduler.cli.output import Output
from region_scheduler.errors import InvalidInput


def rebuild_backlog(
    region: Region = None, state_dir: StateDir = None, as_json: Json = False
) -> None:
    """Drop the rows of a region's relational store and refill it from the graph; runs go on."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.backlog import rebuild_backlog as rebuild

    _require_own_store(state_dir, region)
    with session(state_dir, region) as opened:
        name = opened.settings.region
        refilled = rebuild(opened.graph, opened.mender, opened.auditor, name)
    Output(as_json).result(
        {"region": name, **asdict(refilled)},
        lambda: [
            f"{name}: dropped all rows",
            f"{refilled.added} ready tasks are in the backlog again",
            f"{refilled.recorded} tasks have their attributes again",
        ],
    )


def _require_own_store(state_dir: Path | None, region: str | None) -> None:
    """Go on unless `--region` would fill the store of one region with the tasks of another.

    Raises:
        InvalidInput: The settings name one region's store, and the command line another region.
    """
    from region_scheduler.config.load import load

    settings = load().settings
    is_named = bool(state_dir is None and settings.arango.url and settings.relational.url)
    if is_named and region and settings.region and region != settings.region:
        expected = f"relational.url is the store of {settings.region}; use that region's settings"
        raise InvalidInput(field="--region", value=region, expected=expected)
