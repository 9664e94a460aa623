"""The lease file: what readers see, whatever the writer is in the middle of."""

from __future__ import annotations

from pathlib import Path

import pytest

from region_scheduler.worker.lease_file import LeaseFile, LeaseReader, pack_slot
from region_scheduler.worker.shim import LEASE_BYTES, LEASE_SLOT_BYTES


@pytest.fixture
def lease(tmp_path: Path) -> LeaseFile:
    return LeaseFile(tmp_path / "lease")


def seen(lease: LeaseFile) -> float:
    with LeaseReader(lease.path) as reader:
        return reader.deadline()


def test_a_lease_that_was_never_extended_has_run_out(lease: LeaseFile) -> None:
    assert seen(lease) == 0.0


def test_readers_see_the_last_extension(lease: LeaseFile) -> None:
    for deadline in (10.5, 20.25, 30.125):
        lease.extend(deadline)

        assert seen(lease) == deadline == lease.deadline()


def test_a_late_answer_to_an_early_renewal_shortens_nothing(lease: LeaseFile) -> None:
    lease.extend(30.0)
    lease.extend(20.0)

    assert seen(lease) == 30.0


def test_a_revoked_lease_cannot_be_extended(lease: LeaseFile) -> None:
    lease.extend(30.0)
    lease.revoke()
    lease.extend(40.0)

    assert seen(lease) == 0.0


def test_a_file_that_is_not_there_reads_as_run_out(tmp_path: Path) -> None:
    with LeaseReader(tmp_path / "none") as reader:
        assert reader.deadline() == 0.0


def test_an_earlier_incarnations_steps_do_not_live_longer_through_a_later_one(
    lease: LeaseFile,
) -> None:
    lease.extend(10.0)
    with LeaseReader(lease.path) as old_step:
        LeaseFile(lease.path).extend(99.0)

        assert old_step.deadline() == 10.0
        assert seen(lease) == 99.0


@pytest.mark.parametrize("cut", range(1, LEASE_SLOT_BYTES))
def test_a_torn_write_leaves_the_deadline_before_it(lease: LeaseFile, cut: int) -> None:
    lease.extend(10.0)
    lease.extend(20.0)
    whole = bytearray(lease.path.read_bytes())
    assert len(whole) == LEASE_BYTES
    at = LEASE_SLOT_BYTES  # the third write goes where the first one went
    slot = pack_slot(3, 30.1)
    whole[at : at + cut] = slot[:cut]
    lease.path.write_bytes(whole)

    is_whole = whole[at : at + LEASE_SLOT_BYTES] == slot
    assert seen(lease) == (30.1 if is_whole else 20.0)
