"""The curve of the conflict fraction: which contests it is made of, and how it is shown."""

from __future__ import annotations

from xml.etree import ElementTree

from region_scheduler.bench.contention import Contended
from region_scheduler.bench.curve import STALE_MS, chart, points, table
from region_scheduler.bench.effects import Verdict


def found() -> list[Contended]:
    return [
        Contended(contest, Verdict(contest.tasks, 0, 0), contest.schedulers, 1, 1, 2.0)
        for contest in points(8, tasks=10, locks=2)
    ]


def test_it_goes_by_doubling_through_every_staleness() -> None:
    contests = [(c.stale_ms, c.schedulers) for c in points(9, tasks=10, locks=2)]

    assert contests == [(stale_ms, n) for stale_ms in STALE_MS for n in (1, 2, 4, 8)]


def test_the_table_has_a_line_for_each_staleness_and_a_column_for_each_count() -> None:
    head, *lines = table(found())

    assert head.count("schedulers") == 4
    assert len(lines) == len(STALE_MS)
    assert lines[0].split()[-4:] == ["0.200", "0.300", "0.500", "0.900"]


def test_the_drawing_is_xml_with_a_line_for_each_staleness() -> None:
    drawing = ElementTree.fromstring(chart(found()))

    lines = drawing.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == len(STALE_MS)
    assert all(len((line.get("points") or "").split()) == 4 for line in lines)
