"""What a beat lists: receipts whose processes live, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from region_scheduler.domain.ids import ReceiptId
from region_scheduler.worker.processes import RECEIPT_VARIABLE, started_at
from region_scheduler.worker.receipts import Receipts
from tests.integration.runners.eventually import eventually

# Processes are found by their receipt, machine-wide: tests that run side by side differ.
R1, R2 = sorted(ReceiptId(uuid.uuid4().hex) for _ in range(2))
REPOSITORY = Path(__file__).parents[3]
ENTER_AND_WAIT = """
import sys
from region_scheduler.worker.receipts import Receipts
receipts = Receipts(sys.argv[1])
receipts.enter(sys.argv[2])
if len(sys.argv) > 3:
    receipts.attach(sys.argv[2], int(sys.argv[3]))
print("entered", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def receipts(tmp_path: Path) -> Receipts:
    return Receipts(tmp_path / "receipts")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that carries the mark of receipt R1."""
    env = {"PATH": os.environ["PATH"], RECEIPT_VARIABLE: R1}
    with subprocess.Popen(["sleep", "60"], env=env) as process:
        yield process
        process.kill()


def kill_pool_child(tmp_path: Path, *shim_pid: int) -> None:
    """Have another process enter R1, and kill it with -9."""
    directory = str(tmp_path / "receipts")
    argv = [sys.executable, "-c", ENTER_AND_WAIT, directory, R1, *map(str, shim_pid)]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"entered\n"
        process.kill()


def test_a_receipt_is_listed_from_its_entry_until_it_leaves(receipts: Receipts) -> None:
    receipts.enter(R2)
    receipts.enter(R1)
    assert receipts.live() == (R1, R2)

    receipts.attach(R1, os.getpid())
    receipts.leave(R2)
    assert receipts.live() == (R1,)

    receipts.leave(R1)
    receipts.leave(R1)  # twice is once
    assert receipts.live() == ()


def test_a_killed_pool_child_without_a_step_drops_out(receipts: Receipts, tmp_path: Path) -> None:
    kill_pool_child(tmp_path)

    assert receipts.live() == ()


def test_a_receipt_stays_while_its_shim_lives(
    receipts: Receipts, tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    kill_pool_child(tmp_path, sleeper.pid)
    assert receipts.live() == (R1,)

    sleeper.kill()
    sleeper.wait()
    assert receipts.live() == ()


def test_what_is_left_of_a_step_is_killed_before_its_receipt_drops_out(
    receipts: Receipts, tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    kill_pool_child(tmp_path)  # the shim is gone, too, but a process of the step is not
    eventually(lambda: started_at(sleeper.pid))

    assert receipts.live() == (R1,)
    sleeper.wait(5)
    assert receipts.live() == ()


def test_a_zombie_and_a_reused_id_are_not_alive(receipts: Receipts, tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        eventually(lambda: started_at(process.pid) == 0)  # dead, though nobody has reaped it
    assert started_at(os.getpid()) > 0
    assert started_at(2**22 + 1) == 0
