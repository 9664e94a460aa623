"""The receipts that this worker answers for: what its beat lists (docs/protocol.md section 3).

A receipt is entered before its start is sent and leaves after its completion, so an observer that
misses it in two beats may call the running task lost. Entries are files, because the process that
runs the step (a child of the pool) is not the one that beats.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from region_scheduler.domain.ids import ReceiptId
from region_scheduler.worker.processes import kill_receipt, started_at


@dataclass(frozen=True, slots=True)
class _Entry:
    """Who runs the step of a receipt; 0 where there is no shim yet."""

    pid: int
    pid_started_at: int
    shim_pid: int = 0
    shim_started_at: int = 0

    def is_running(self) -> bool:
        return _is_same(self.pid, self.pid_started_at) or _is_same(
            self.shim_pid, self.shim_started_at
        )


class Receipts:
    """A register in a directory; the processes of one worker share it, and so may threads."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        """Use `directory`, made if need be; one incarnation's own, never an earlier one's."""
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)

    def enter(self, receipt_id: ReceiptId) -> None:
        """Answer for `receipt_id` from now on, with the calling process; before the start is sent.

        Raises:
            OSError: It was not entered; do not start.
        """
        pid = os.getpid()
        self._put(receipt_id, _Entry(pid, started_at(pid)))

    def attach(self, receipt_id: ReceiptId, shim_pid: int) -> None:
        """Name the shim that guards the step; before it is let go.

        Raises:
            OSError: It was not named; do not let it go.
        """
        pid = os.getpid()
        self._put(receipt_id, _Entry(pid, started_at(pid), shim_pid, started_at(shim_pid)))

    def leave(self, receipt_id: ReceiptId) -> None:
        """Stop answering: the completion was acknowledged, or the step's whole group is dead."""
        with suppress(FileNotFoundError):
            self._path(receipt_id).unlink()

    def live(self) -> tuple[ReceiptId, ...]:
        """Return what the next beat lists, in order.

        A receipt whose pool process and shim are both gone is dropped once no process of its step
        is left; until then those are killed here.
        """
        listed: list[ReceiptId] = []
        for path in sorted(self._directory.glob("*.json")):
            receipt_id = ReceiptId(path.stem)
            try:
                entry = _Entry(**orjson.loads(path.read_bytes()))
            except FileNotFoundError:
                continue  # left meanwhile
            if entry.is_running() or kill_receipt(receipt_id):
                listed.append(receipt_id)
            else:
                self.leave(receipt_id)
        return tuple(listed)

    def _put(self, receipt_id: ReceiptId, entry: _Entry) -> None:
        path = self._path(receipt_id)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(orjson.dumps(asdict(entry)))
        fresh.replace(path)

    def _path(self, receipt_id: ReceiptId) -> Path:
        return self._directory / f"{receipt_id}.json"


def _is_same(pid: int, pid_started_at: int) -> bool:
    return pid > 0 and pid_started_at > 0 and started_at(pid) == pid_started_at
