"""One task's own history, played again from the first entry to the last.

Each entry was written by the same conditional write as the change that it tells of. So the history
is the log of a register: the token, changed by compare-and-set. Played from the start it must lead,
by moves of the table only and under tokens that follow each other, to what the document says now.
"""

from __future__ import annotations

from collections.abc import Iterator

from region_scheduler.domain.ids import NO_CLAIM, NO_RECEIPT, ReceiptId
from region_scheduler.domain.residence import resident_bytes
from region_scheduler.domain.states import FINAL, HELD, SATISFYING, TaskState, move
from region_scheduler.domain.task import EventKind, HistoryEntry, Task, Token
from region_scheduler.errors import IllegalMove
from region_scheduler.verify.invariants import Finding, Invariant

_KIND = EventKind
_OF_THE_HOLDER = frozenset({_KIND.ENDED, _KIND.VERDICT})
_STATE_STAYS = frozenset({_KIND.VERDICT, _KIND.MOVED, _KIND.CANCELLED})
_TOKEN_LEFT = frozenset({_KIND.RESUMED, _KIND.CANCELLED})


def findings_of(task: Task) -> Iterator[Finding]:
    """Yield what of a task's document contradicts the rest of it."""
    replayed = _Replay(task)
    for number, entry in enumerate(task.history):
        yield from replayed.take(number, entry)
    yield from replayed.end()


def line(number: int, entry: HistoryEntry) -> str:
    """Return an entry of a history in one line."""
    receipt = f", receipt {entry.receipt_id}" if entry.receipt_id else ""
    detail = f" ({entry.detail})" if entry.detail else ""
    told = f"entry {number}: {entry.kind} by {entry.by} in {entry.region}, token {entry.token}"
    return f"{told}{receipt} -> {entry.state}{detail}"


class _Replay:
    """How far the history was played.

    Attributes:
        token: The one that is current; None before the first entry.
        holder: Receipt and worker of the attempt that was started last.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._lines: list[str] = []
        self._state = TaskState.PENDING
        self._token = Token()
        self._region = task.spec.region
        self._holder: tuple[ReceiptId, str] = (NO_RECEIPT, "")
        self._claims: dict[str, int] = {}
        self._completed: int | None = None
        self._unlocked: int | None = None

    def take(self, number: int, entry: HistoryEntry) -> Iterator[Finding]:
        """Play the next entry."""
        self._lines.append(line(number, entry))
        if number == 0 and entry.kind is _KIND.CLEARED:
            self._region = entry.region
        else:
            yield from self._of_move(number, entry)
            yield from self._of_token(number, entry)
        yield from self._of_region(number, entry)
        yield from self._of_start(number, entry)
        self._go_on(number, entry)

    def end(self) -> Iterator[Finding]:
        """Hold the document against what the history has led to."""
        task = self._task
        last = len(self._lines) - 1
        for name in resident_bytes(task):
            what = f"{name} holds resident data instead of a reference"
            yield self._told(Invariant.RESIDENCY, what, last)
        now = f"now: {task.state} in {task.region}, token {task.token}, held by {_holder(task)}"
        if task.history and (task.state, task.token) != (self._state, self._token):
            what = "changed by a write that left no entry"
            yield self._told(Invariant.FENCING, what, last, more=now)
        is_held = task.state in HELD
        if is_held != (task.holder is not None) or (is_held and not task.token.claim_id):
            yield self._told(
                Invariant.ONE_HOLDER, "its state and its holder disagree", -1, more=now
            )
        if task.region not in task.spec.allowed_regions or task.region != self._region:
            what = "in a region that no entry moved it to"
            yield self._told(Invariant.RESIDENCY, what, last, more=now)

    def _of_move(self, number: int, entry: HistoryEntry) -> Iterator[Finding]:
        if self._completed is not None:
            yield self._told(
                Invariant.ONCE, "went on after it was completed", self._completed, number
            )
            return
        if entry.state is self._state and entry.kind in _STATE_STAYS:
            return
        try:
            move(self._state, entry.state)
        except IllegalMove:
            what = f"went from {self._state} to {entry.state}"
            yield self._told(Invariant.ONE_HOLDER, what, number - 1, number)

    def _of_token(self, number: int, entry: HistoryEntry) -> Iterator[Finding]:
        if not self._follows(entry):
            what = f"{entry.kind} under token {entry.token} when {self._token} was current"
            yield self._told(Invariant.FENCING, what, number - 1, number)
        if entry.kind in _OF_THE_HOLDER and (entry.receipt_id, entry.by) != self._holder:
            what = "an attempt wrote that was not the one that held it"
            yield self._told(Invariant.FENCING, what, self._started(number), number)
        if entry.kind is _KIND.CLAIMED:
            earlier = self._claims.get(entry.token.claim_id)
            if earlier is not None:
                yield self._told(Invariant.ONE_HOLDER, "one claim won twice", earlier, number)
            self._claims[entry.token.claim_id] = number

    def _follows(self, entry: HistoryEntry) -> bool:
        """Say whether the entry's token is one that its kind may have after the current one."""
        current, token = self._token, entry.token
        match entry.kind:
            case _KIND.CLAIMED:
                return token.number == current.number + 1 and token.claim_id != NO_CLAIM
            case _KIND.REQUEUED:
                # Entries of earlier claims that led nowhere are dropped, in pairs.
                risen = token.number - current.number
                return risen > 0 and risen % 2 == 1 and token.claim_id == NO_CLAIM
            case _KIND.LOST if entry.state not in FINAL:
                return token == current.left()
            case kind if kind in _TOKEN_LEFT:
                return token == current.left()
            case _:
                return token == current

    def _of_region(self, number: int, entry: HistoryEntry) -> Iterator[Finding]:
        if entry.region not in self._task.spec.allowed_regions:
            allowed = f"allowed: {', '.join(self._task.spec.allowed_regions)}"
            what = f"{entry.kind} in {entry.region}"
            yield self._told(Invariant.RESIDENCY, what, number, more=allowed)
        elif entry.region != self._region and entry.kind is not _KIND.MOVED:
            what = f"{entry.kind} in {entry.region}, though it was in {self._region}"
            yield self._told(Invariant.RESIDENCY, what, number - 1, number)

    def _of_start(self, number: int, entry: HistoryEntry) -> Iterator[Finding]:
        if entry.kind is _KIND.UNLOCKED:
            self._unlocked = number
            if len(entry.seen) != self._task.needs:
                need = f"it needs {self._task.needs}, the entry names {len(entry.seen)}"
                what = "unlocked by another number of predecessors than it needs"
                yield self._told(Invariant.ORDER, what, number, more=need)
        elif entry.kind is _KIND.STARTED and self._unlocked is None:
            yield self._told(Invariant.ORDER, "started without having been unlocked", number)

    def _go_on(self, number: int, entry: HistoryEntry) -> None:
        is_left = entry.kind is _KIND.ENDED and entry.state not in FINAL
        self._token = entry.token.left() if is_left else entry.token
        self._state, self._region = entry.state, entry.region
        if entry.kind is _KIND.STARTED:
            self._holder = (entry.receipt_id, entry.by)
        if entry.state in SATISFYING:
            self._completed = number

    def _started(self, before: int) -> int:
        numbers = range(before - 1, -1, -1)
        kinds = self._task.history
        return next((n for n in numbers if kinds[n].kind is _KIND.STARTED), before - 1)

    def _told(self, invariant: Invariant, what: str, *numbers: int, more: str = "") -> Finding:
        task = self._task
        lines = [self._lines[n] for n in numbers if 0 <= n < len(self._lines)]
        return Finding(
            invariant=invariant,
            subject=task.id,
            what=f"{task.spec.name}: {what}",
            evidence=tuple([*lines, more] if more else lines),
        )


def _holder(task: Task) -> str:
    return str(task.holder.incarnation) if task.holder is not None else "nobody"
