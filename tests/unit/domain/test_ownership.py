"""Who promotes what, told alike by everybody who sees the same peers."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.domain.ownership import BUCKETS, bucket_of, owners, share_of

PEERS = st.frozensets(st.text(min_size=1, max_size=8), min_size=1, max_size=6)


@given(PEERS)
def test_every_bucket_has_one_owner_among_the_peers(peers: frozenset[str]) -> None:
    assert len(owners(peers)) == BUCKETS
    assert set(owners(peers)) <= peers


@given(PEERS, st.text(min_size=1, max_size=8))
def test_one_who_joins_takes_only_for_itself_and_one_who_leaves_gives_only_its_own(
    peers: frozenset[str], other: str
) -> None:
    fewer, more = owners(peers - {other} or peers), owners(peers | {other})
    if peers != {other}:
        assert all(a == b or b == other for a, b in zip(fewer, more, strict=True))


def test_the_buckets_are_spread() -> None:
    counts = Counter(owners(frozenset({"a", "b", "c", "d"})))
    assert all(BUCKETS / 8 < count < BUCKETS / 2 for count in counts.values())
    spread = Counter(bucket_of(f"run{n}") for n in range(20 * BUCKETS))
    assert set(spread) == set(range(BUCKETS))


def test_a_bucket_never_changes() -> None:
    """Rows are written by one version of the code and read by another."""
    assert [bucket_of(name) for name in ("run1", "acme", "日本", "\ud800")] == BUCKETS_OF_OLD


BUCKETS_OF_OLD = [163, 62, 204, 40]


@given(st.integers(0, 1000), PEERS)
def test_the_parts_fill_the_room_and_pass_it_by_less_than_one_each(
    room: int, sharers: frozenset[str]
) -> None:
    parts = [share_of(room, me, sharers) for me in sharers]
    assert room <= sum(parts) < room + len(sharers)
    assert share_of(room, "somebody who has nothing to promote", sharers) == 0
