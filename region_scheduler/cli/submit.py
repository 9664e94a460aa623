"""`submit`: a zone or a graph file becomes a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from region_scheduler.cli.hints import Hints
from region_scheduler.cli.options import (
    TENANT_DEFAULT,
    Json,
    Pairs,
    Regions,
    StateDir,
    Tenant,
    words,
)
from region_scheduler.cli.output import Output
from region_scheduler.cli.session import capacities_where_running, region_names
from region_scheduler.domain.instant import instant_of
from region_scheduler.errors import InvalidInput

if TYPE_CHECKING:
    from region_scheduler.admission.capacities import CapacityOf
    from region_scheduler.assembly.operator import Operator
    from region_scheduler.domain.admission import Plan
    from region_scheduler.domain.limits import Limits
    from region_scheduler.domain.region import Region
    from region_scheduler.domain.run import Zone

_WAVE_NAMES_SHOWN = 6
_LINES_SHOWN = 10


def submit(
    zone: Annotated[str | None, typer.Argument(metavar="[ZONE]", help="A zone's name.")] = None,
    graph_file: Annotated[
        Path | None, typer.Option("--graph", help="A graph file instead of a zone.")
    ] = None,
    type_name: Annotated[
        str, typer.Option("--type", help="Create the zone first, of this type.")
    ] = "",
    regions: Regions = None,
    pairs: Pairs = None,
    tenant: Tenant = TENANT_DEFAULT,
    is_simulated: Annotated[
        bool, typer.Option("--simulate", help="Steps only take their expected time.")
    ] = False,
    time_scale: Annotated[
        float | None,
        typer.Option("--time-scale", min=0, help="With --simulate: 0 is at once.  [default: 1]"),
    ] = None,
    is_dry: Annotated[
        bool, typer.Option("--dry-run", help="Tell what it comes to, and write nothing.")
    ] = False,
    not_before: Annotated[
        str, typer.Option("--not-before", help="No task starts before this instant, with offset.")
    ] = "",
    deadline_s: Annotated[
        float | None,
        typer.Option("--deadline", min=0, help="It is cancelled after so many seconds."),
    ] = None,
    key: Annotated[
        str, typer.Option("--key", help="The same key again is the same run; made if not given.")
    ] = "",
    is_waiting: Annotated[
        bool, typer.Option("--wait", help="Stay until it has ended, or a person is needed.")
    ] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Submit a zone's apply run, or a graph file."""
    if (zone is None) == (graph_file is None):
        raise InvalidInput(
            field="submit", value=zone or "", expected="name either a ZONE or a --graph FILE"
        )
    named = words(regions, "--regions")
    wish = _Wish(zone, graph_file, type_name, named, pairs or [], tenant, not_before, deadline_s)
    simulation = simulation_scale(is_simulated, time_scale)
    if is_dry and (graph_file is not None or type_name):
        capacities = capacities_where_running(state_dir)
        plan = wish.dry_plan(region_names(state_dir), simulation, capacities)
        _tell(Output(as_json), plan, wish, capacities)
        return 0
    return _submit(wish, simulation, key, is_dry, is_waiting, state_dir, Output(as_json))


def simulation_scale(is_simulated: bool, time_scale: float | None) -> float | None:
    """Return what simulated durations are multiplied by; None if steps run for real.

    Raises:
        InvalidInput: A scale that scales nothing, or is no number.
    """
    if time_scale is None:
        return 1.0 if is_simulated else None
    if not is_simulated:
        expected = "it scales simulated steps only: add --simulate, or leave it out"
        raise InvalidInput(field="--time-scale", value=f"{time_scale:g}", expected=expected)
    if not math.isfinite(time_scale):
        expected = "give a finite number of at least 0"
        raise InvalidInput(field="--time-scale", value=f"{time_scale:g}", expected=expected)
    return time_scale


class _Wish:
    """What was typed, and the plans that come of it."""

    def __init__(
        self,
        zone: str | None,
        graph_file: Path | None,
        type_name: str,
        regions: Sequence[str],
        pairs: Sequence[str],
        tenant: str,
        not_before: str = "",
        deadline_s: float | None = None,
    ) -> None:
        self._zone = zone or ""
        self.limits = limits_set()
        self._body = read_body(graph_file, self.limits) if graph_file else b""
        self._document = graph_in(self._body, graph_file, self.limits) if graph_file else None
        self._is_graph = graph_file is not None
        self._type_name = type_name
        self._regions = regions
        self._pairs = pairs
        self.tenant = tenant
        self._deadline_s = _checked_deadline(deadline_s)
        self._not_before = instant_of(not_before, "--not-before") if not_before else None

    @property
    def repeated_edges(self) -> int:
        """How many edges of the graph came before, once its plan was made; each is kept once."""
        edges = self._document["edges"] if self._document is not None else []
        return len(edges) - len({(before, after) for before, after in edges})

    def dry_plan(
        self, region_names: Sequence[str], time_scale: float | None, capacities: CapacityOf
    ) -> Plan:
        """Return a plan over regions that need not run: no stack is needed."""
        from region_scheduler.domain.region import Region
        from region_scheduler.operations.plans import plan_of
        from region_scheduler.runtime.system import SystemClock

        known = [Region(id=name) for name in region_names]
        if self._is_graph:
            return self._graph_plan(known, time_scale, capacities)
        zone = self._checked_zone(known, SystemClock().now())
        return self._asked(plan_of(zone, known), time_scale)

    def plan(self, opened: Operator, known: Sequence[Region], time_scale: float | None) -> Plan:
        """Return the plan over the regions there are; `--type` stores the zone first."""
        from region_scheduler.operations.plans import plan_of
        from region_scheduler.operations.zones import create_zone, find_zone

        if self._is_graph:
            return self._graph_plan(known, time_scale, opened.graph.slots.capacities)
        if self._type_name:
            checked = self._checked_zone(known, opened.clock.now())
            zone = create_zone(opened.graph, opened.auditor, opened.quotas, checked)
        elif self._regions or self._pairs:
            expected = "they are the zone's own: give them to `zones create`, or with --type"
            raise InvalidInput(field="--regions, --set", value=self._zone, expected=expected)
        else:
            zone = find_zone(opened.graph, self.tenant, self._zone)
        return self._asked(plan_of(zone, known), time_scale)

    def digest(self, time_scale: float | None) -> str:
        """Return the digest of what was asked for, whatever the catalogue makes of it."""
        from region_scheduler.domain.admission import body_digest

        typed = [self._zone, self._type_name, *self._regions, "", *self._pairs, str(time_scale)]
        if self._not_before is not None:
            typed.append(self._not_before.isoformat())
        if self._deadline_s is not None:
            typed.append(f"within {self._deadline_s:g} s")
        return body_digest(self._body, *typed)

    def _checked_zone(self, known: Sequence[Region], created_at: datetime) -> Zone:
        from region_scheduler.operations.plans import checked_zone

        return checked_zone(
            known,
            self._zone,
            self._type_name,
            self._regions,
            self._pairs,
            self.tenant,
            created_at,
        )

    def _graph_plan(
        self, known: Sequence[Region], time_scale: float | None, capacities: CapacityOf
    ) -> Plan:
        from region_scheduler.operations.plans import plan_of_document

        plan = plan_of_document(
            self._document, known, self._regions, self.tenant, time_scale, self.limits, capacities
        )
        return self._asked(plan, None)

    def _asked(self, plan: Plan, time_scale: float | None) -> Plan:
        from region_scheduler.operations.plans import held_until, simulated

        plan = replace(plan, deadline_s=self._deadline_s)
        if time_scale is not None:
            plan = simulated(plan, time_scale)
        return plan if self._not_before is None else held_until(plan, self._not_before)


def _checked_deadline(deadline_s: float | None) -> float | None:
    if deadline_s is not None and not (math.isfinite(deadline_s) and deadline_s > 0):
        expected = "give a finite number of seconds above 0"
        raise InvalidInput(field="--deadline", value=f"{deadline_s:g}", expected=expected)
    return deadline_s


def limits_set() -> Limits:
    """Return how big a submission may be, as the settings say."""
    from region_scheduler.config.load import load

    return load().settings.limits


def read_body(path: Path, limits: Limits) -> bytes:
    """Return what is in a graph file, no more than may be looked at.

    Raises:
        InvalidInput: There is no such file.
    """
    try:
        with path.open("rb") as file:
            return file.read(limits.body_bytes_max + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidInput(field="--graph", value=str(path), expected=reason) from error


def graph_in(body: bytes, path: Path, limits: Limits) -> Any:
    """Return the JSON document that was read from a file.

    Raises:
        InvalidInput: It is not JSON, or too big; says where.
    """
    from region_scheduler.admission.importers.graph import parsed

    return parsed(body, str(path), limits)


def _submit(
    wish: _Wish,
    time_scale: float | None,
    key: str,
    is_dry: bool,
    is_waiting: bool,
    state_dir: Path | None,
    output: Output,
) -> int:
    from region_scheduler.cli.places import Placed, told
    from region_scheduler.cli.session import session
    from region_scheduler.cli.watching import watch_runs

    hints = Hints(state_dir)
    with session(state_dir) as opened:
        known = opened.known_regions()
        if is_dry:
            plan = wish.plan(opened, known, time_scale)
            _tell(output, plan, wish, opened.graph.slots.capacities)
            return 0
        key = key or opened.ids.new()
        expand = Placed(partial(wish.plan, opened, known, time_scale))
        admitted = opened.admit(expand, wish.tenant, key, wish.digest(time_scale))
        run = admitted.run
        regions = expand.regions(opened.graph, run)
        if is_waiting:
            output.note(f"run {run.id}: {told(run, regions)}")
            return watch_runs(opened, [run.id], output, hints, is_person_awaited=False)
    value = {
        "run": run.id,
        "key": key,
        "is_repeat": admitted.is_repeat,
        "name": run.name,
        "tasks": run.task_count,
        "regions": regions,
        "state": run.state,
        "repeated_edges": wish.repeated_edges,
    }
    again = " (as before: the key was used already)" if admitted.is_repeat else ""
    output.result(
        value,
        lambda: [
            f"run {run.id}{again}: {told(run, regions)}",
            *repeats(wish.repeated_edges),
            f"watch it with: {hints.command('watch', run.id)}",
        ],
    )
    return 0


def _tell(output: Output, plan: Plan, wish: _Wish, capacities: CapacityOf) -> None:
    from region_scheduler.operations.plans import summary

    found = summary(plan, wish.limits, capacities) | {"repeated_edges": wish.repeated_edges}
    output.result(found, lambda: summary_lines(found))


def summary_lines(found: dict[str, Any]) -> Iterable[str]:
    """Return a plan's summary for people."""
    path = found["critical_path"]
    yield f"{found['name']}: {found['tasks']} tasks, {found['dependencies']} dependencies"
    yield from repeats(found["repeated_edges"])
    yield "regions: " + ", ".join(f"{name} {n}" for name, n in found["regions"].items())
    yield "runners: " + ", ".join(f"{name} {n}" for name, n in found["runners"].items())
    yield ""
    yield f"waves: {len(found['waves'])}"
    for number, names in enumerate(found["waves"], start=1):
        yield f"{number:>4}  {len(names):>4}  {_some(names, _WAVE_NAMES_SHOWN)}"
    yield ""
    yield f"critical path: {path['seconds']:g} s over {len(path['tasks'])} tasks"
    yield "      " + " -> ".join(path["tasks"])
    for title, names in (("approvals", "approvals"), ("irreversible steps", "irreversible")):
        yield ""
        yield f"{title}: {len(found[names])}"
        yield from (f"      {name}" for name in found[names])
    yield ""
    yield f"locks that several tasks want: {len(found['locks'])}"
    for lock in found["locks"][:_LINES_SHOWN]:
        n = len(lock["tasks"])
        yield f"      {lock['resource']}: {n} tasks, {lock['capacity']} at once"
    if len(found["locks"]) > _LINES_SHOWN:
        yield f"      and {len(found['locks']) - _LINES_SHOWN} more (--json tells all)"
    yield ""
    yield "nothing was written"


def repeats(count: int) -> Iterable[str]:
    """Return what is said of edges that came more than once."""
    if count:
        yield f"{count} edges came more than once and are kept once"


def _some(names: Sequence[str], count: int) -> str:
    hidden = len(names) - count
    return "  ".join(names[:count]) + (f"  and {hidden} more" if hidden > 0 else "")
