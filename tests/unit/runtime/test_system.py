from __future__ import annotations

import subprocess
import threading
import time
from datetime import UTC, datetime, timedelta

from region_scheduler.ports.time import Chance, Clock, Ids
from region_scheduler.runtime.courier import Courier
from region_scheduler.runtime.signing import ATTEMPT, WAKE, is_signed, signature_of
from region_scheduler.runtime.system import SystemChance, SystemClock, UuidIds

CLOCK: Clock = SystemClock()
IDS: Ids = UuidIds()
CHANCE: Chance = SystemChance()


def test_wall_time_is_aware_and_monotonic_time_counts_from_boot() -> None:
    up_s = float(subprocess.check_output(["cat", "/proc/uptime"]).split()[0])

    assert abs(CLOCK.now() - datetime.now(UTC)) < timedelta(seconds=5)
    assert CLOCK.now().utcoffset() == timedelta(0)
    assert abs(CLOCK.monotonic() - up_s) < 5


def test_an_id_is_a_uuid_of_version_seven_and_of_now() -> None:
    text = IDS.new()

    assert len(text) == 32
    assert text[12] == "7"
    assert text[16] in "89ab"
    assert abs(int(text[:12], 16) / 1000 - time.time()) < 5


def test_ids_rise_in_one_thread_and_differ_between_threads() -> None:
    found: list[list[str]] = [[] for _ in range(4)]

    def make(into: list[str]) -> None:
        into.extend(IDS.new() for _ in range(5000))

    threads = [threading.Thread(target=make, args=(into,)) for into in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(ids == sorted(ids) for ids in found)
    assert len({text for ids in found for text in ids}) == 20_000


def test_chance_stays_within_its_bounds() -> None:
    drawn = [CHANCE.uniform(2.0, 3.0) for _ in range(1000)]

    assert all(2.0 <= number <= 3.0 for number in drawn)
    assert len(set(drawn)) > 900


def test_a_signature_fits_its_key_its_purpose_and_its_body_only() -> None:
    signature = signature_of(b"key", WAKE, b"body")

    assert is_signed(b"key", WAKE, b"body", signature)
    assert not is_signed(b"other", WAKE, b"body", signature)
    assert not is_signed(b"key", ATTEMPT, b"body", signature)
    assert not is_signed(b"key", WAKE, b"Body", signature)
    assert not is_signed(b"key", WAKE, b"body", "")
    assert not is_signed(b"key", WAKE, b"body", "ä\udc80")


def test_a_courier_does_not_make_its_sender_wait_and_carries_a_waiting_key_once() -> None:
    entered, may_leave = threading.Semaphore(0), threading.Event()
    carried: list[str] = []

    def deliver(key: str) -> None:
        entered.release()
        may_leave.wait(5)
        carried.append(key)

    courier = Courier("slow", deliver)
    courier.send("a")
    assert entered.acquire(timeout=5)
    started = time.monotonic()
    for _ in range(1000):
        courier.send("a")
        courier.send("b")
    assert time.monotonic() - started < 1
    may_leave.set()
    courier.close(5)

    assert carried == ["a", "a", "b"]
    courier.send("c")
    assert carried == ["a", "a", "b"]
