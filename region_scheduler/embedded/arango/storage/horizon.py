"""A past state, kept as what later commits replaced."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from region_scheduler.embedded.arango.storage.collection import Collection
from region_scheduler.embedded.arango.storage.record import Record, changed_key

Commit = Sequence[tuple[Collection, Record | None, Record | None]]
Past = Mapping[str, Record | None]

_NOTHING: Past = {}


class Horizon:
    """The state at the moment when it was made: for each key written since, its record then."""

    def __init__(self) -> None:
        self._past: dict[int, dict[str, Record | None]] = {}

    def past(self, collection: Collection) -> Past:
        """Return, for every key of `collection` written since, what it was (None: not there)."""
        return self._past.get(collection.number, _NOTHING)

    def absorb(self, commit: Commit, at: float) -> None:  # noqa: ARG002  # for those that slide
        """Note a commit that this state must not show.

        Args:
            commit: Collection, record before, record after.
            at: When, in seconds of the engine's clock.
        """
        for collection, before, after in commit:
            key = changed_key(before, after)
            self._past.setdefault(collection.number, {}).setdefault(key, before)


class SlidingHorizon(Horizon):
    """The state of a follower that receives each commit some time later, each shard for itself.

    Args:
        lag_s: For a collection and a shard, how many seconds a commit takes to arrive; infinite
            for a follower that is frozen. Asked again at every look.
    """

    def __init__(self, lag_s: Callable[[Collection, int], float]) -> None:
        super().__init__()
        self._lag_s = lag_s
        self._coming: dict[tuple[int, int], deque[tuple[float, str, Record | None]]] = {}
        self._shards: dict[tuple[int, int], Collection] = {}
        self._open: dict[tuple[int, str], int] = {}

    def thin_out(self, before: float) -> None:
        """Keep only the last change of each key among those committed before an instant.

        For a follower that is frozen for long: when it thaws, it passes over the others anyway, if
        the instant is longer ago than its lag.
        """
        for shard, queue in self._coming.items():
            last = {key: place for place, (at, key, _) in enumerate(queue) if at < before}
            kept: deque[tuple[float, str, Record | None]] = deque()
            for place, change in enumerate(queue):
                at, key, _ = change
                if at >= before or last[key] == place:
                    kept.append(change)
                else:
                    self._open[shard[0], key] -= 1
            self._coming[shard] = kept

    @property
    def is_level(self) -> bool:
        """Whether everything has arrived."""
        return not self._coming

    def absorb(self, commit: Commit, at: float) -> None:
        super().absorb(commit, at)
        for collection, before, after in commit:
            key = changed_key(before, after)
            shard = (collection.number, collection.shard_of(key))
            self._shards[shard] = collection
            self._coming.setdefault(shard, deque()).append((at, key, after))
            name = (collection.number, key)
            self._open[name] = self._open.get(name, 0) + 1

    def advance(self, now: float) -> None:
        """Let everything arrive that was committed longer ago than the lag of its shard."""
        for shard, queue in list(self._coming.items()):
            until = now - self._lag_s(self._shards[shard], shard[1])
            past = self._past[shard[0]]
            while queue and queue[0][0] <= until:
                _, key, after = queue.popleft()
                name = (shard[0], key)
                left = self._open[name] - 1
                if left:
                    self._open[name] = left
                    past[key] = after
                else:
                    del self._open[name]
                    del past[key]
            if not queue:
                del self._coming[shard]
