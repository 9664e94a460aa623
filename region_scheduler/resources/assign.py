"""Give claimed tasks the slots that they need, or tell which slot was lost to whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit
from region_scheduler.domain.ids import TaskId, digest_of, slot_key
from region_scheduler.domain.slot import Reservation, Slot, SlotHolder, assign, release, reserve
from region_scheduler.domain.task import EventKind, LockNeed, Task, WhenHolderLost
from region_scheduler.errors import LostRace
from region_scheduler.ports.records import SlotStore

_UNIT_TRIES_MAX = 4
_RESERVE_AFTER_LOSSES = 5


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a claimed task got.

    Attributes:
        slots: All that it holds now; empty if it lost one.
        lost: The resource that it did not get, or empty.
        winner: Who has it; empty if nobody is known to, because the store did not answer.
    """

    task: Task
    slots: tuple[Slot, ...] = ()
    lost: str = ""
    winner: str = ""


@dataclass(slots=True)
class _Taking:
    task: Task
    wants: list[LockNeed]
    won: list[Slot] = field(default_factory=list)
    lost: str = ""
    winner: str = ""


def units_wanted(task: Task) -> list[LockNeed]:
    """Return one need for every unit that the task takes, in the order of the slots' keys."""
    needs = [need for need in task.spec.locks for _ in range(need.units)]
    return sorted(needs, key=lambda need: slot_key(need.resource, 0))


def slots_of(
    store: SlotStore, needs: Iterable[LockNeed], seen: Mapping[str, Sequence[Slot]] | None = None
) -> dict[str, list[Slot]]:
    """Return the slots of every needed resource, as the follower shows them; missing ones are made.

    The first unit is made last: a resource without it was not made to the end.

    Args:
        store: The slots.
        needs: What is needed.
        seen: What the follower showed just now, by resource; the others are asked for.

    Raises:
        Unavailable, OutcomeUnknown: Call again.
    """
    capacity = {need.resource: need for need in needs}
    known_already = seen or {}
    slots = {name: list(known_already.get(name, ())) for name in capacity}
    unseen = sorted(capacity.keys() - known_already.keys())
    for slot in store.of_resources(unseen) if unseen else ():
        slots[slot.resource].append(slot)
    missing = [need for name, need in sorted(capacity.items()) if not is_made(slots[name])]
    known = {slot.id for found in slots.values() for slot in found}
    units = [unit_of(n.resource, k, n.when_holder_lost) for n in missing for k in range(n.capacity)]
    for made in make_units(store, [slot for slot in units if slot.id not in known]):
        slots[made.resource].append(made)
    return slots


def make_units(store: SlotStore, units: Sequence[Slot]) -> list[Slot]:
    """Insert units that may be there already, and return what stands; each first unit last.

    Raises:
        Unavailable, OutcomeUnknown: Some may be there; call again.
    """
    parts = ([slot for slot in units if slot.unit], [slot for slot in units if not slot.unit])
    return [created.value for part in parts if part for created in create(store, part)]


def is_made(slots: Sequence[Slot]) -> bool:
    """Say whether these are all units of a resource that was made to the end."""
    return any(slot.unit == 0 for slot in slots)


def unit_of(resource: str, unit: int, when_holder_lost: WhenHolderLost) -> Slot:
    """Return a free unit of a resource."""
    return Slot(
        id=slot_key(resource, unit), resource=resource, unit=unit, when_holder_lost=when_holder_lost
    )


def assign_slots(
    store: SlotStore, claimed: Sequence[Task], slots: dict[str, list[Slot]]
) -> list[Assignment]:
    """Assign slots to `claimed`, the k-th unit of the whole batch in one call.

    Args:
        store: The slots at the leader.
        claimed: Tasks under their current claim.
        slots: The view to start from, see `slots_of`; a stale one costs a round or a conflict.

    Raises:
        Unavailable, OutcomeUnknown: Some slots may be held; the token will move and free them.
    """
    taking = [_Taking(task, units_wanted(task)) for task in claimed]
    _let_pass(taking, slots)
    for k in range(max((len(t.wants) for t in taking), default=0)):
        _take_unit([t for t in taking if not t.lost and len(t.wants) > k], k, store, slots)
    _let_go(store, [t for t in taking if t.lost], slots)
    return [Assignment(t.task, () if t.lost else tuple(t.won), t.lost, t.winner) for t in taking]


def _let_pass(batch: Sequence[_Taking], slots: Mapping[str, Sequence[Slot]]) -> None:
    """Let no more of a batch try for a resource than it seems to have units for.

    Otherwise each could end with a part of what it needs, and none with all. The first is always
    let pass: the view may be old.
    """
    takers: dict[str, list[_Taking]] = {name: [] for name in slots}
    for taking in batch:
        wanted = Counter(need.resource for need in taking.wants)
        for name, units in wanted.items():
            free = sum(is_free_for(slot, taking.task.id) for slot in slots[name])
            taken = sum(need.resource == name for t in takers[name] for need in t.wants)
            if takers[name] and taken + units > free:
                taking.lost, taking.winner = name, takers[name][0].task.id
                break
        else:
            for name in wanted:
                takers[name].append(taking)


def _take_unit(
    open_: list[_Taking], k: int, store: SlotStore, slots: dict[str, list[Slot]]
) -> None:
    for attempt in range(_UNIT_TRIES_MAX):
        if not open_:
            return
        chosen: set[str] = set()
        picks: list[tuple[_Taking, Slot]] = []
        for taking in open_:
            resource = taking.wants[k].resource
            slot = _pick(taking, slots[resource], chosen)
            if slot is None:
                taking.lost, taking.winner = resource, "nobody: it has too few units"
                continue
            chosen.add(slot.id)
            picks.append((taking, slot))
        changes = [
            Change(
                slot.id,
                partial(assign, task=t.task.id, token=t.task.token),
                known=slot if is_free_for(slot, t.task.id) else None,
            )
            for t, slot in picks
        ]
        outcomes = commit(store, changes)
        open_ = []
        for (taking, slot), outcome in zip(picks, outcomes, strict=True):
            siblings = slots[slot.resource]
            if outcome.value is not None:
                siblings[[s.id for s in siblings].index(slot.id)] = outcome.value
            if outcome.is_ours and outcome.value is not None:
                taking.won.append(outcome.value)
            elif not isinstance(outcome.error, LostRace):
                taking.lost = slot.resource
            elif attempt + 1 < _UNIT_TRIES_MAX and any(_may_take(s, taking) for s in siblings):
                open_.append(taking)
            else:
                taking.lost, taking.winner = slot.resource, outcome.error.winner


def _pick(taking: _Taking, slots: Sequence[Slot], chosen: set[str]) -> Slot | None:
    """Choose the unit to try: a free one, not another task's of this batch, spread by task.

    If none looks free it is one that the task does not hold yet, in case the view is old.
    """
    free = [s for s in slots if s.id not in chosen and _may_take(s, taking)]
    if not free:
        own = {slot.id for slot in taking.won}
        return next((s for s in slots if s.id not in own), None)
    spread = int(digest_of(taking.task.id), 16)
    return free[spread % len(free)]


def _may_take(slot: Slot, taking: _Taking) -> bool:
    if slot.is_retiring or any(slot.id == won.id for won in taking.won):
        return False
    return is_free_for(slot, taking.task.id)


def is_free_for(slot: Slot, task: TaskId) -> bool:
    """Say whether, in this view, `task` could take the slot."""
    if slot.holder is not None:
        return slot.holder.task == task
    return slot.reservation is None or slot.reservation.task == task


def _let_go(
    store: SlotStore, losers: Sequence[_Taking], slots: Mapping[str, Sequence[Slot]]
) -> None:
    changes: list[Change[Slot]] = []
    for taking in losers:
        held = SlotHolder(taking.task.id, taking.task.token)
        changes += [
            Change(slot.id, partial(release, holder=held), known=slot)
            for slot in reversed(taking.won)
        ]
        if taking.winner and taking.task.slots_lost + 1 >= _RESERVE_AFTER_LOSSES:
            wanted = Reservation(
                taking.task.id, taking.task.token.number, _first_ready_at(taking.task)
            )
            stays = next((s for s in slots[taking.lost] if not s.is_retiring), None)
            if stays is not None:
                changes.append(Change(stays.id, partial(reserve, wanted=wanted)))
    if changes:
        commit(store, changes)


def _first_ready_at(task: Task) -> str:
    at = next((e.at for e in task.history if e.kind is EventKind.UNLOCKED), None)
    return at.isoformat() if at else ""
