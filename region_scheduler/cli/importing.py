"""`import`: graphs that people have already, in the product's own form."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from region_scheduler.cli import close_on_interrupt
from region_scheduler.cli.hints import Hints
from region_scheduler.cli.options import TENANT_DEFAULT, Json, Regions, StateDir, Tenant, words
from region_scheduler.cli.output import Output, print_line
from region_scheduler.cli.submit import repeats
from region_scheduler.errors import InvalidInput, Rejected

if TYPE_CHECKING:
    from region_scheduler.admission.capacities import CapacityOf
    from region_scheduler.admission.importers.model import FoundGraph, Leniency, Settled
    from region_scheduler.admission.importers.report import Report
    from region_scheduler.domain.admission import Plan
    from region_scheduler.domain.limits import Limits
    from region_scheduler.domain.region import Region

_LINES_SHOWN = 10


class Source(StrEnum):
    """What a graph is converted from."""

    GRAPH = "graph"
    TERRAFORM_GRAPH = "terraform-graph"
    TERRAGRUNT = "terragrunt"


class Form(StrEnum):
    """What a converted graph is written as."""

    JSON = "json"
    DOT = "dot"
    MERMAID = "mermaid"


SourceWord = Annotated[
    Source,
    typer.Argument(
        metavar="SOURCE",
        help="graph (our own form), terraform-graph (what `terraform graph` prints) or terragrunt"
        " (a tree of units).",
    ),
]
SourcePath = Annotated[
    Path, typer.Argument(help="The file, - for standard input; of terragrunt the directory.")
]
Name = Annotated[str, typer.Option("--name", help="Name of the graph, instead of the source's.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write it there, not to standard output.")]
Written = Annotated[Form, typer.Option("--format", help="What is written.")]
Dry = Annotated[
    bool, typer.Option("--dry-run", help="Check as admission would, tell, write nothing.")
]
Submitted = Annotated[bool, typer.Option("--submit", help="Submit it instead of writing it.")]
Key = Annotated[str, typer.Option("--key", help="Of the submission; made if not given.")]
Loops = Annotated[
    bool, typer.Option("--drop-self-loops", help="Leave out edges from a node to itself.")
]
Dangling = Annotated[
    bool, typer.Option("--ignore-dangling", help="Leave out edges that name no node.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse what was set aside as dangling or unresolved, too.")
]
Read = Annotated[
    bool, typer.Option("--read", help="Read the units, though a terragrunt is on PATH.")
]


def import_(
    source: SourceWord,
    path: SourcePath,
    name: Name = "",
    out: Out = None,
    form: Written = Form.JSON,
    is_dry: Dry = False,
    is_submitted: Submitted = False,
    key: Key = "",
    drops_self_loops: Loops = False,
    ignores_dangling: Dangling = False,
    is_strict: Strict = False,
    is_read: Read = False,
    regions: Regions = None,
    tenant: Tenant = TENANT_DEFAULT,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Convert a graph to the product's own form; admits nothing by itself."""
    from region_scheduler.admission.importers.model import Leniency

    wish = _Wish(
        name=name,
        out=out,
        form=form,
        is_dry=is_dry,
        is_submitted=is_submitted,
        key=key,
        regions=words(regions, "--regions"),
        tenant=tenant,
        state_dir=state_dir,
        leniency=Leniency(drops_self_loops, ignores_dangling, is_strict),
    )
    return wish.carry_out(lambda limits: _found(source, path, is_read, limits), Output(as_json))


def _found(source: Source, path: Path, is_read: bool, limits: Limits) -> FoundGraph:
    if source is Source.GRAPH:
        from region_scheduler.admission.importers.graph import found_in, parsed

        return found_in(parsed(_read(path, limits), str(path), limits), limits)
    if source is Source.TERRAFORM_GRAPH:
        from region_scheduler.admission.importers.terraform_graph import found_in_dot

        title = "terraform" if str(path) == "-" else path.stem
        return found_in_dot(_decoded(_read(path, limits), path), path.name, title)

    from region_scheduler.admission.importers.terragrunt import found_in_tree
    from region_scheduler.admission.importers.terragrunt_tool import found_by_terragrunt

    program = None if is_read else shutil.which("terragrunt")
    return found_by_terragrunt(program, path) if program else found_in_tree(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """What was typed, whatever the source."""

    name: str
    out: Path | None
    form: Form
    is_dry: bool
    is_submitted: bool
    key: str
    regions: Sequence[str]
    tenant: str
    state_dir: Path | None
    leniency: Leniency

    def carry_out(self, read: Callable[[Limits], FoundGraph], output: Output) -> int:
        """Read, settle and check the graph; then tell, submit or write it."""
        from region_scheduler.admission.importers.graph import with_runners
        from region_scheduler.admission.importers.model import settled
        from region_scheduler.config.load import load

        limits = load().settings.limits
        found, bare = with_runners(read(limits))
        found = replace(found, name=self.name or found.name)
        if self.is_dry:
            return self._tell(found, bare, limits, output)
        result = settled(found, self.leniency)
        if self.is_submitted:
            return self._submit(result, bare, limits, output)
        self._plan(result.graph, self._assumed(), limits, self._capacities())
        self._write(result.graph, output)
        for line in _asides(result, bare):
            print_line(line, is_aside=True)
        return 0

    def _assumed(self) -> list[Region]:
        """Return the regions that a submission would find, without asking a store."""
        from region_scheduler.cli.session import region_names
        from region_scheduler.domain.region import Region

        return [Region(id=name) for name in region_names(self.state_dir)]

    def _capacities(self) -> CapacityOf:
        from region_scheduler.cli.session import capacities_where_running

        return capacities_where_running(self.state_dir)

    def _plan(
        self, graph: FoundGraph, known: Sequence[Region], limits: Limits, capacities: CapacityOf
    ) -> Plan:
        """Return the plan, checked as admission does."""
        from region_scheduler.admission.capacities import known_of
        from region_scheduler.admission.importers.graph import GraphOptions, plan_of_graph
        from region_scheduler.admission.rules import checked
        from region_scheduler.operations.zones import known_regions, serving

        serves = serving(known)
        wanted = known_regions(known, self.regions or [region.id for region in known])
        homes = tuple(dict.fromkeys(serves[name] for name in wanted))
        options = GraphOptions(
            tenant=self.tenant,
            home_region=homes[0],
            regions=homes,
            serves=serves,
            capacities=capacities,
            limits=limits,
        )
        plan = plan_of_graph(graph.document(), options, graph.places)
        checked(plan, limits, known_of(plan, capacities), graph.places)
        return plan

    def _tell(self, found: FoundGraph, bare: int, limits: Limits, output: Output) -> int:
        from region_scheduler.admission.importers.model import settled
        from region_scheduler.admission.importers.report import report_of

        report = report_of(found)
        value = report.document() | {"name": found.name, "runners_given": bare, "ok": True}
        value["unresolved"] = [
            {"unit": one.unit, "expression": one.expression, "place": one.place}
            for one in found.unresolved
        ]
        refusal: Rejected | None = None
        try:
            result = settled(found, self.leniency)
            value["self_loops_dropped"] = result.self_loops_dropped
            value["dangling_ignored"] = result.dangling_ignored
            self._plan(result.graph, self._assumed(), limits, self._capacities())
        except Rejected as error:
            refusal = error
            value |= {"ok": False, "error": {"code": error.code, "message": str(error)}}
        output.result(value, lambda: _lines(found, report, value))
        if refusal is not None:
            print_line(f"region-scheduler: {' '.join(str(refusal).split())}", is_aside=True)
        return refusal.exit_code if refusal is not None else 0

    def _submit(self, result: Settled, bare: int, limits: Limits, output: Output) -> int:
        from region_scheduler.cli.places import Placed, told
        from region_scheduler.cli.session import session
        from region_scheduler.domain.admission import body_digest

        with session(self.state_dir) as opened:
            known = opened.known_regions()
            key = self.key or opened.ids.new()
            capacities = opened.graph.slots.capacities
            expand = Placed(partial(self._plan, result.graph, known, limits, capacities))
            digest = body_digest(_text(result.graph, Form.JSON).encode(), *self.regions)
            admitted = opened.admit(expand, self.tenant, key, digest)
            regions = expand.regions(opened.graph, admitted.run)
        run = admitted.run
        for line in _asides(result, bare):
            print_line(line, is_aside=True)
        value = {
            "run": run.id,
            "key": key,
            "is_repeat": admitted.is_repeat,
            "name": run.name,
            "tasks": run.task_count,
            "repeated_edges": len(result.graph.edges) - len(set(result.graph.edges)),
            "self_loops_dropped": result.self_loops_dropped,
            "dangling_ignored": result.dangling_ignored,
        }
        watch = Hints(self.state_dir).command("watch", run.id)
        output.result(
            value,
            lambda: [f"run {run.id}: {told(run, regions)}", f"watch it with: {watch}"],
        )
        return 0

    def _write(self, graph: FoundGraph, output: Output) -> None:
        text = _text(graph, self.form)
        if self.out is None:
            sys.stdout.buffer.write(text.encode())
            sys.stdout.flush()
            return
        _replace(self.out, text)
        value = {"file": str(self.out), "nodes": len(graph.nodes), "name": graph.name}
        output.result(value, lambda: [f"{self.out}: {len(graph.nodes)} nodes"])


def _read(source: Path, limits: Limits) -> bytes:
    """Return what is in a file, or comes from standard input; no more than may be looked at."""
    try:
        if str(source) == "-":
            return sys.stdin.buffer.read(limits.body_bytes_max + 1)
        with source.open("rb") as file:
            return file.read(limits.body_bytes_max + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidInput(field="PATH", value=str(source), expected=reason) from error


def _decoded(body: bytes, source: Path) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(field="PATH", value=str(source), expected="it is not UTF-8") from error


def _text(graph: FoundGraph, form: Form) -> str:
    if form is Form.JSON:
        import orjson

        return orjson.dumps(graph.document()).decode() + "\n"
    from region_scheduler.admission.importers import drawing

    lines = drawing.dot(graph) if form is Form.DOT else drawing.mermaid(graph)
    return "".join(f"{line}\n" for line in lines)


def _replace(path: Path, text: str) -> None:
    """Write a whole file or none."""
    close_on_interrupt()
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidInput(field="--out", value=str(path), expected=reason) from error
    finally:
        beside.unlink(missing_ok=True)


def _asides(result: Settled, bare: int) -> Iterator[str]:
    """Return what a person should know besides."""
    from region_scheduler.admission.importers.model import unresolved_text

    graph = result.graph
    yield from repeats(len(graph.edges) - len(set(graph.edges)))
    if result.self_loops_dropped:
        yield f"{result.self_loops_dropped} edges from a node to itself were dropped"
    if result.dangling_ignored:
        yield f"{result.dangling_ignored} edges that name no node were ignored"
    if bare:
        yield f"{bare} nodes name no runner and are given simulate, which changes nothing"
    yield from (unresolved_text(one) for one in graph.unresolved)
    yield from graph.notes


def _lines(found: FoundGraph, report: Report, value: dict[str, Any]) -> Iterable[str]:
    """Return the report for people."""
    from region_scheduler.admission.importers.model import unresolved_text

    yield f"{found.name}: {report.nodes} nodes, {report.edges} edges"
    yield from repeats(report.repeated_edges)
    for text, count in (
        ("edges from a node to itself", report.self_loops),
        ("edges from a node to itself were dropped", value.get("self_loops_dropped", 0)),
        ("edges name no node", len(report.dangling)),
        ("edges that name no node were ignored", value.get("dangling_ignored", 0)),
        ("nodes name no runner and would be given simulate", value["runners_given"]),
        ("nodes have no edge", report.isolated),
    ):
        if count:
            yield f"{count} {text}"
    knots = " (each cycle counted as one node)" if report.is_condensed else ""
    yield f"depth {report.depth}, width {report.width}{knots}"
    if report.critical_path:
        seconds, tasks = report.critical_path_s, report.critical_path
        yield f"critical path: {seconds:g} s over {len(tasks)} tasks"
        yield "      " + " -> ".join(tasks[:_LINES_SHOWN]) + (" …" if tasks[_LINES_SHOWN:] else "")
    yield f"cycles: {len(report.cycles)}"
    for cycle in report.cycles[:_LINES_SHOWN]:
        what = "a shortest one" if cycle.is_shortest else "a short one"
        yield f"      {cycle.members} nodes wait on each other; {what}:"
        for edge in cycle.edges:
            place = f"  ({edge['place']})" if edge["place"] else ""
            yield f"      {edge['before']} -> {edge['after']}{place}"
    yield f"not resolved by reading: {len(found.unresolved)}"
    yield from (f"      {unresolved_text(one)}" for one in found.unresolved)
    yield "it would be admitted" if value["ok"] else "it would be refused"
    yield "nothing was written"
