from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.embedded.arango.storage.revision import RevisionClock, read, spell


@given(st.lists(st.floats(0, 4e9), min_size=1, max_size=50))
def test_revisions_rise_whatever_the_clock_does(times: list[float]) -> None:
    at = iter(times)
    clock = RevisionClock(lambda: next(at))

    stamps = [read(clock.next()) for _ in times]

    assert stamps == sorted(set(stamps))


@given(st.integers(0, 2**63 - 1))
def test_a_stamp_is_read_as_it_was_spelled(stamp: int) -> None:
    assert read(spell(stamp)) == stamp


def test_a_revision_looks_like_one_of_arangodb() -> None:
    revision = RevisionClock(lambda: 1_777_000_000.0).next()

    assert len(revision) == 11
    assert revision.startswith("_")
    assert revision.endswith("---")


def test_text_that_is_no_revision_is_stamp_zero() -> None:
    assert read("no revision!") == 0


def test_a_process_that_starts_again_repeats_no_revision_though_the_clock_was_set_back() -> None:
    first = RevisionClock(lambda: 2000.0)
    given_out = [first.next()]
    reserved = first.reserve()
    assert reserved is not None
    for _ in range(1000):
        given_out.append(first.next())
        assert first.reserve() is None

    again = RevisionClock(lambda: 1000.0, floor=reserved)

    assert read(again.next()) > max(map(read, given_out))
