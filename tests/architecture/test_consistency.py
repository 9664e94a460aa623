"""A decision that rests on what a follower shows ends in a conditional write, or it is none.

Three things are held: what decides is written by `commit/` alone, on the revision read; each read
of a follower is listed below with what becomes of it; who only shows what it read writes nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_type_hints

from region_scheduler.ports import records
from tests.architecture.tree import PACKAGE, files

STORES: dict[str, type] = {
    name: get_type_hints(prop.fget)["return"]
    for name, prop in vars(records.GraphStores).items()
    if isinstance(prop, property)
}
CORE = "admission identity lifecycle membership operations regions resources scheduling worker"
WRITES = frozenset({"write", "insert", "remove", "remove_edges", "insert_edges"})

COLLECTED = ("admissions", "instances", "conflicts", "audit")
WRITTEN = "what it leads to is written on the revision read at the leader"
ROWS = "rows of a relational store, which say `worth trying to claim` and are replaced by `seq`"
LOOK = "whether, or whom, to ask at the leader"
SHOWN = "shown to people"
RESTS: dict[tuple[str, str], str] = {
    ("admission/schedules._wait_s", "schedules.next_at"): LOOK,
    ("admission/schedules.tick", "schedules.open"): WRITTEN,
    ("lifecycle/cancel.cancel_tasks", "tasks.of_run"): WRITTEN,
    ("lifecycle/rounds.open_round", "tasks.of_run"): WRITTEN,
    ("operations/admissions.find_admission", "admissions.recent"): SHOWN,
    ("operations/explain._of_locks", "slots.of_resources"): SHOWN,
    ("operations/explain._of_pending", "tasks.ancestors"): SHOWN,
    ("operations/explain._of_ready", "durations.all"): SHOWN,
    ("operations/explain._of_region", "tasks.load"): SHOWN,
    ("operations/pauses.step", "tasks.of_run"): WRITTEN,
    ("operations/regions.__init__", "tasks.of_run"): SHOWN,
    ("operations/regions.outlook", "tasks.load"): SHOWN,
    ("operations/regions.situations", "tasks.load"): SHOWN,
    ("operations/runs.find_run", "runs.recent"): SHOWN,
    ("operations/runs.find_task", "tasks.named"): SHOWN,
    ("operations/views._run", "tasks.of_run"): SHOWN,
    ("operations/views._runs", "runs.recent"): SHOWN,
    ("regions/failover._move", "tasks.load"): WRITTEN,
    ("regions/flow._fetch", "tasks.movable"): WRITTEN,
    ("regions/flow.draw", "tasks.load"): LOOK,
    ("regions/replica._look", "follower.beats"): SHOWN,
    ("scheduling/batcher._discover", "tasks.marks_claimable"): ROWS,
    ("scheduling/batcher._slots_seen", "slots.of_resources"): LOOK,
    ("scheduling/learner.tick", "durations.samples"): WRITTEN,
    ("scheduling/mend._compare_backlog", "tasks.marks_claimable"): ROWS,
    ("scheduling/mend._compare_metadata", "tasks.marks_of_run"): ROWS,
    ("scheduling/mend._runs", "runs.ids"): ROWS,
    ("scheduling/mend.forget", "runs.ids"): ROWS,
    ("scheduling/mend.rebuild", "runs.ids"): ROWS,
    ("scheduling/reconcile._apply_answers", "tasks.of_run"): WRITTEN,
    ("worker/attempt._glimpsed", "tasks.glimpse"): WRITTEN,
}
"""What rests on each read of a follower: the module with the function, and the question."""


@cache
def markers() -> dict[str, dict[str, str]]:
    """Return what each question of the graph says of itself, by store."""
    found: dict[str, dict[str, str]] = {}
    for store, port in STORES.items():
        for name, method in vars(port).items():
            if callable(method) and not name.startswith("_"):
                hint = get_type_hints(method, include_extras=True).get("return")
                said = getattr(hint, "__metadata__", ("",))[0]
                found.setdefault(store, {})[name] = said
    return found


def calls(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield store and method of all that is named of the graph: `x.tasks.known`, `tasks.known`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute | ast.Name):
            owner = node.value.attr if isinstance(node.value, ast.Attribute) else node.value.id
            if owner in STORES:
                yield owner, node.attr


def functions() -> Iterator[tuple[str, str, ast.AST]]:
    """Yield module, name and body of every function of the core, methods too."""
    for folder in CORE.split():
        for path in files(".py", under=PACKAGE / folder):
            for node in ast.walk(ast.parse(Path(path).read_text())):
                if isinstance(node, ast.FunctionDef):
                    module = str(path.relative_to(PACKAGE)).removesuffix(".py")
                    yield module, node.name, node


def suggested() -> dict[tuple[str, str], set[str]]:
    """Return the follower reads of each function."""
    said = markers()
    found: dict[tuple[str, str], set[str]] = {}
    for module, name, body in functions():
        for store, method in calls(body):
            if said.get(store, {}).get(method) == "suggesting":
                found.setdefault((f"{module}.{name}", f"{store}.{method}"), set()).add(module)
    return found


def test_each_question_says_what_may_rest_on_its_answer() -> None:
    questions = {
        (store, name): said
        for store, names in markers().items()
        for name, said in names.items()
        if name not in WRITES | {"trust"}
    }

    assert len(questions) > 60
    assert {
        key for key, said in questions.items() if said not in {"suggesting", "deciding"}
    } == set()


def test_what_decides_is_written_by_the_commit_gate_alone() -> None:
    """Whoever names a store's write hands it to `commit`, or inserts what nobody replaces."""
    direct = {
        (f"{module}.{name}", f"{store}.{method}")
        for module, name, body in functions()
        for store, method in calls(body)
        if method in WRITES and store != "leftovers"
    }

    assert direct == {
        ("admission/saga._insert_edges", "tasks.insert_edges"),
        *(("lifecycle/collect.collect", f"{kind}.remove") for kind in COLLECTED),
        ("lifecycle/collect._collect_runs", "runs.remove"),
        ("lifecycle/collect._is_emptied", "pauses.remove"),
        ("lifecycle/leftover.emptied", "answers.remove"),
        ("lifecycle/leftover.emptied", "tasks.remove"),
    }
    for module in ("lifecycle/collect", "lifecycle/leftover"):
        assert "region_scheduler.commit.remove" in (PACKAGE / f"{module}.py").read_text()


def test_each_read_of_a_follower_is_known_with_what_rests_on_it() -> None:
    assert set(suggested()) == set(RESTS)


def test_what_is_written_after_a_follower_s_view_is_written_by_the_gate() -> None:
    for (function, _), what in RESTS.items():
        source = (PACKAGE / f"{function.rpartition('.')[0]}.py").read_text()
        if what is WRITTEN:
            assert "region_scheduler.commit." in source or "_saga" in source, function


def test_who_shows_a_follower_s_view_writes_nothing() -> None:
    shown = {function for (function, _), what in RESTS.items() if what is SHOWN}
    acts = {"commit", "commit_one", "create", "remove", "publish", "wake"}
    for module, name, body in functions():
        if f"{module}.{name}" in shown:
            called = {
                getattr(node.func, "id", getattr(node.func, "attr", ""))
                for node in ast.walk(body)
                if isinstance(node, ast.Call)
            }
            assert not called & acts, f"{module}.{name}"
