"""What every driver of `ports.backlog.Backlog` keeps."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import Engine

from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.domain.ownership import Ownership, bucket_of
from region_scheduler.drivers.sql.backlog import SqlBacklog
from region_scheduler.errors import RegionSchedulerError
from region_scheduler.ports.backlog import Backlog, BacklogRow, Eligible, Place

NOW = 1_800_000_000.0
RUN = RunId("run")


def row(name: str, **changed: Any) -> BacklogRow:
    values: dict[str, Any] = {
        "task": TaskId(f"tasks/{name}"),
        "run": RUN,
        "tenant": "acme",
        "pool": "default",
        "seq": 1,
        "priority": 0,
        "delay_tolerance_s": 0.0,
        "remaining_s": 10.0,
        "locks": (),
    }
    return BacklogRow(**values | changed)


def top(backlog: Backlog, count: int, now_s: float, tenant: str = "acme") -> list[BacklogRow]:
    return backlog.top({tenant: count}, now_s)


def in_pools(*pools: str) -> Eligible:
    return Eligible(pools=frozenset(pools))


def names(rows: list[BacklogRow]) -> str:
    return " ".join(found.task.removeprefix("tasks/") for found in rows)


def test_a_row_comes_back_as_it_was_put_in(backlog: Backlog) -> None:
    whole = row(
        "a",
        tenant="acme \\ Ä \0 \ud800 日本",
        pool="big",
        seq=7,
        spell="1.2",
        priority=-3,
        delay_tolerance_s=1.5,
        remaining_s=2.25,
        locks=("acme/aws:organizations", "ä\udfff\0", ""),
    )

    backlog.add([whole], NOW)

    assert top(backlog, 10, NOW, whole.tenant) == [whole]
    assert backlog.tenants() == [whole.tenant]


def test_the_order_is_priority_then_longest_path_then_due_time_then_id(backlog: Backlog) -> None:
    rows = [
        row("z-late", delay_tolerance_s=50),
        row("c-tie"),
        row("a-tie"),
        row("B-tie"),
        row("long", remaining_s=99),
        row("urgent", priority=5, remaining_s=0),
    ]
    backlog.add(rows, NOW)
    backlog.add([row("first-seen-earlier")], NOW - 1)

    order = "urgent long first-seen-earlier B-tie a-tie c-tie z-late"
    assert names(top(backlog, 10, NOW)) == order
    assert names(top(backlog, 3, NOW)) == "urgent long first-seen-earlier"


def test_with_equal_priority_and_path_the_order_is_first_seen_plus_tolerance(
    backlog: Backlog,
) -> None:
    seen = [(31 * n % 17, 13 * n % 11) for n in range(60)]
    for n, (at, tolerance) in enumerate(seen):
        backlog.add([row(f"{n:02}", delay_tolerance_s=float(tolerance))], NOW + at)

    expected = sorted(range(60), key=lambda n: (sum(seen[n]), n))
    assert names(top(backlog, 60, NOW + 100)) == " ".join(f"{n:02}" for n in expected)


def test_the_first_sight_of_a_spell_counts_whatever_else_changes(backlog: Backlog) -> None:
    backlog.add([row("old", spell="1.0")], NOW)
    backlog.add([row("young")], NOW + 1)
    backlog.add([row("old", spell="1.0")], NOW + 2)
    backlog.add([row("old", spell="1.0", seq=2)], NOW + 3)
    assert names(top(backlog, 2, NOW + 3)) == "old young"

    backlog.add([row("old", spell="1.1", seq=3)], NOW + 3)
    assert names(top(backlog, 2, NOW + 3)) == "young old"


def test_a_row_goes_on_resting_while_its_spell_lasts(backlog: Backlog) -> None:
    backlog.add([row("a", rest_s=30)], NOW)

    backlog.add([row("a", rest_s=30, seq=2, priority=9)], NOW + 20)
    assert names(top(backlog, 1, NOW + 29)) == ""
    assert [found.priority for found in top(backlog, 1, NOW + 30)] == [9]

    backlog.add([row("a", seq=3, spell="1.1", rest_s=5)], NOW + 30)
    assert names(top(backlog, 1, NOW + 34)) == ""
    assert names(top(backlog, 1, NOW + 35)) == "a"


def test_only_a_higher_seq_replaces(backlog: Backlog) -> None:
    backlog.add([row("a", seq=5, priority=5)], NOW)
    backlog.add([row("a", seq=4, priority=4), row("a", seq=5, priority=9)], NOW)
    assert [found.priority for found in top(backlog, 2, NOW)] == [5]

    backlog.add([row("a", seq=6, priority=1)], NOW)
    assert [(found.seq, found.priority) for found in top(backlog, 2, NOW)] == [(6, 1)]
    assert backlog.depth() == 1


def test_of_two_rows_of_one_task_in_a_batch_the_higher_seq_stays(backlog: Backlog) -> None:
    backlog.add([row("a", seq=3), row("a", seq=9), row("a", seq=6)], NOW)

    assert [found.seq for found in top(backlog, 5, NOW)] == [9]


def test_a_row_that_rests_is_left_out_until_its_time(backlog: Backlog) -> None:
    backlog.add([row("tired", rest_s=30, priority=9), row("fit")], NOW)

    assert names(top(backlog, 5, NOW)) == "fit"
    assert names(top(backlog, 5, NOW + 29.9)) == "fit"
    assert names(top(backlog, 5, NOW + 30)) == "tired fit"


def test_a_row_rests_until_its_task_may_start_and_until_its_pause_is_over(
    backlog: Backlog,
) -> None:
    rows = [row("late", not_before_s=NOW + 50), row("both", not_before_s=NOW + 5, rest_s=60)]
    backlog.add([*rows, row("past", not_before_s=NOW - 50)], NOW)

    assert backlog.next_due_s(NOW) == NOW + 50
    assert names(top(backlog, 5, NOW)) == "past"
    assert names(top(backlog, 5, NOW + 50)) == "late past"
    assert len(top(backlog, 5, NOW + 60)) == 3


def test_the_next_due_time_is_that_of_the_row_that_rests_shortest(backlog: Backlog) -> None:
    assert backlog.next_due_s(NOW) is None

    backlog.add([row("a", rest_s=30), row("b", rest_s=10), row("c")], NOW)

    assert backlog.next_due_s(NOW) == NOW + 10
    assert backlog.next_due_s(NOW + 10) == NOW + 30
    assert backlog.next_due_s(NOW + 30) is None


def test_a_row_can_be_sent_to_rest_and_a_newer_one_is_not(backlog: Backlog) -> None:
    backlog.add([row("a", seq=2), row("b", seq=2), row("c", seq=2)], NOW)

    backlog.rest(TaskId("tasks/a"), 1, NOW + 60)
    backlog.rest(TaskId("tasks/b"), 2, NOW + 60)
    backlog.rest(TaskId("tasks/nobody"), 2, NOW + 60)

    assert names(top(backlog, 5, NOW)) == "a c"
    assert names(top(backlog, 5, NOW + 60)) == "a b c"


def test_rows_of_other_pools_are_left_out(backlog: Backlog) -> None:
    many = [row(f"big-{n}", pool="big", priority=9) for n in range(50)]
    backlog.add([*many, row("a"), row("b", pool="small")], NOW)

    assert names(backlog.top({"acme": 9}, NOW, in_pools("default", "small"))) == "a b"
    assert len(backlog.top({"acme": 99}, NOW, in_pools("big"))) == 50
    assert backlog.top({"acme": 9}, NOW, in_pools("odd")) == []
    assert backlog.top({"acme": 9}, NOW, in_pools()) == []


def test_each_tenant_gets_its_share_of_its_own_best(backlog: Backlog) -> None:
    tenants = [f"tenant-{n:03}" for n in range(250)]
    backlog.add([row(f"{t}-{n}", tenant=t, priority=n) for t in tenants for n in range(3)], NOW)
    backlog.add([row("rests", tenant="zz", rest_s=9)], NOW)
    shares = {tenant: n % 3 for n, tenant in enumerate(tenants)} | {"zz": 5, "nobody": 5}

    found = backlog.top(shares, NOW)

    assert backlog.tenants() == [*tenants, "zz"]
    wanted = [f"{t}-{2 - n}" for t in tenants for n in range(shares[t])]
    assert names(found) == " ".join(wanted)
    assert backlog.top({}, NOW) == []
    assert top(backlog, 0, NOW) == []


def test_tenants_are_told_apart_and_ordered_byte_by_byte(backlog: Backlog) -> None:
    tenants = ["", "A", "Z", "\\", "a", "a\0", "ä", "日本"]
    assert backlog.tenants() == []

    backlog.add([row(f"{n}", tenant=tenant) for n, tenant in enumerate(tenants)], NOW)

    assert set(backlog.tenants()) == set(tenants)
    assert len(backlog.tenants()) == len(tenants)
    assert [top(backlog, 9, NOW, t)[0].tenant for t in tenants] == tenants


def test_marks_tell_the_seq_of_every_row(backlog: Backlog) -> None:
    assert backlog.marks() == {}

    backlog.add([row("a", seq=3), row("b", rest_s=99, tenant="other")], NOW)

    assert backlog.marks() == {TaskId("tasks/a"): 3, TaskId("tasks/b"): 1}
    assert backlog.marks([]) == {}
    many = [TaskId(f"tasks/{n}") for n in range(2_500)]
    assert backlog.marks([*many, TaskId("tasks/a"), *many]) == {TaskId("tasks/a"): 3}


def test_a_row_is_removed_unless_its_seq_is_higher(backlog: Backlog) -> None:
    backlog.add([row("a", seq=3), row("b", seq=3), row("c", seq=3)], NOW)

    backlog.remove([(TaskId("tasks/a"), 2), (TaskId("tasks/b"), 3), (TaskId("tasks/c"), 9)])

    assert names(top(backlog, 5, NOW)) == "a"
    assert backlog.depth() == 1


def test_clear_drops_everything_and_adding_goes_on(backlog: Backlog) -> None:
    backlog.add([row("a", seq=9)], NOW)
    backlog.clear()
    assert backlog.depth() == 0

    backlog.add([row("a", seq=1)], NOW)
    assert backlog.depth() == 1


@pytest.mark.parametrize("is_adding", [True, False])
def test_nothing_is_done_with_no_rows(backlog: Backlog, is_adding: bool) -> None:
    if is_adding:
        backlog.add([], NOW)
    else:
        backlog.remove([])

    assert backlog.depth() == 0


def test_threads_that_write_the_same_rows_at_once_all_succeed_and_the_highest_seq_wins(
    backlog: Backlog,
) -> None:
    failures: list[Exception] = []

    def write(seq: int) -> None:
        try:
            rows = [row(f"{n:02}", seq=seq) for n in range(50)]
            for _ in range(5):
                backlog.add(rows if seq % 2 else rows[::-1], NOW)
                top(backlog, 10, NOW)
                backlog.remove([(rows[0].task, seq - 1)])
        except RegionSchedulerError as failed:
            failures.append(failed)

    threads = [threading.Thread(target=write, args=(seq,)) for seq in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert {found.seq for found in top(backlog, 50, NOW)} == {6}


def test_rows_of_closed_runs_wait_unless_they_carry_a_passport(backlog: Backlog) -> None:
    closed = RunId("closed")
    backlog.add([row("a"), row("b", run=closed), row("c", run=closed, passport="p.1")], NOW)

    def seen(**narrowed: Any) -> str:
        return names(backlog.top({"acme": 10}, NOW, Eligible(**narrowed)))

    assert seen() == "a b c"
    assert seen(closed_runs=frozenset({closed})) == "a"
    assert seen(closed_runs=frozenset({closed}), passports=frozenset({"p.1"})) == "a c"
    assert seen(closed_runs=frozenset({closed}), passports=frozenset({"p.2"})) == "a"
    assert seen(closed_runs=frozenset({RUN, closed})) == ""


def test_each_row_is_in_one_bucket_and_only_those_asked_for_come(backlog: Backlog) -> None:
    runs = [RunId(f"run{n}") for n in range(40)]
    backlog.add([row(f"{run}", run=run) for run in runs], NOW)
    known = backlog.buckets()

    assert known == sorted({bucket_of(run) for run in runs})
    found = [
        found.run
        for bucket in known
        for found in backlog.top({"acme": 100}, NOW, Eligible(buckets=frozenset({bucket})))
    ]
    assert sorted(found) == sorted(runs)
    assert backlog.top({"acme": 100}, NOW, Eligible(buckets=frozenset())) == []


@pytest.mark.parametrize("by", [Ownership.TENANT, Ownership.TASK])
def test_what_decides_the_bucket_is_a_setting(engine: Engine, by: Ownership) -> None:
    backlog = SqlBacklog(engine, by)
    backlog.add([row("a"), row("b")], NOW)
    told = {Ownership.TENANT: ["acme"], Ownership.TASK: ["tasks/a", "tasks/b"]}[by]
    assert backlog.buckets() == sorted({bucket_of(name) for name in told})


def test_a_row_knows_its_place(backlog: Backlog) -> None:
    rows = [
        row("late", delay_tolerance_s=50, rest_s=7),
        row("tie"),
        row("long", remaining_s=99),
        row("urgent", priority=5, remaining_s=0),
        row("foreign", tenant="other", priority=9),
    ]
    backlog.add(rows, NOW)

    def place(name: str) -> Place | None:
        return backlog.place(TaskId(f"tasks/{name}"))

    assert place("late") == Place(NOW + 50, NOW + 7, ahead=3)
    assert [p.ahead for n in ("urgent", "long", "tie", "foreign") if (p := place(n))] == [
        0,
        1,
        2,
        0,
    ]
    assert place("unknown") is None
