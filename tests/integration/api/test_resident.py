"""Resident blobs between regions, as they are served and asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from region_scheduler.api.app import Health, build_api
from region_scheduler.api.surface import HttpSurface, listen
from region_scheduler.assembly.in_process import directory_blobs
from region_scheduler.domain.residence import blob_of, key_of
from region_scheduler.drivers.http.blobs import HttpBlobs
from region_scheduler.errors import InvalidInput, Unavailable
from region_scheduler.ports.blobs import Blobs

KEY = b"sixteen bytes or more"
BLOB = blob_of({"iban": "DE02"}, ["eu-central", "eu-west"], "salt")


@dataclass
class Served:
    """The storage of eu-west, and where it is served."""

    url: str
    blobs: Blobs
    directory: Path
    closing: ExitStack

    def seen_from(self, region: str, key: bytes = KEY, url: str = "") -> HttpBlobs:
        blobs = HttpBlobs(region, url or self.url, key)
        self.closing.callback(blobs.close)
        return blobs


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    blobs = directory_blobs("eu-west", tmp_path / "resident")
    health = Health(is_ok=True, region="eu-west", instance="i", roles=(), lease_left_s=1.0)
    app = build_api("eu-west", KEY, lambda: health, lambda: None, blobs=blobs)
    surface = HttpSurface(app, listen("127.0.0.1", 0))
    surface.start()
    with ExitStack() as closing:
        yield Served(surface.url, blobs, tmp_path / "resident", closing)
    surface.stop()
    assert surface.join(5)


def test_a_blob_goes_to_another_of_its_regions_and_comes_back(served: Served) -> None:
    there = served.seen_from("eu-central")
    assert there.get(key_of(BLOB)) is None

    there.put(key_of(BLOB), BLOB)
    there.put(key_of(BLOB), BLOB)  # twice is once

    assert there.get(key_of(BLOB)) == BLOB == served.blobs.get(key_of(BLOB))
    (file,) = served.directory.iterdir()
    assert file.stat().st_mode & 0o077 == 0


def test_a_blob_is_handed_to_no_region_that_it_may_not_lie_in(served: Served) -> None:
    served.blobs.put(key_of(BLOB), BLOB)
    there = served.seen_from("us-east")

    assert there.get(key_of(BLOB)) is None
    foreign = blob_of({"x": 1}, ["us-east"], "salt")
    with pytest.raises(InvalidInput, match="may not lie there"):
        there.put(key_of(foreign), foreign)
    assert len(list(served.directory.iterdir())) == 1


def test_what_is_not_signed_or_is_another_blob_is_refused(served: Served) -> None:
    stranger = served.seen_from("eu-central", b"another cluster's key")
    with pytest.raises(InvalidInput):
        stranger.put(key_of(BLOB), BLOB)
    assert stranger.get(key_of(BLOB)) is None
    with pytest.raises(InvalidInput):
        served.seen_from("eu-central").put("0" * 64, BLOB)
    assert httpx.get(f"{served.url}/v1/resident/{key_of(BLOB)}").status_code == 403
    assert not served.directory.exists()


def test_a_region_that_does_not_answer_is_unavailable(served: Served) -> None:
    nobody = served.seen_from("eu-central", url="http://127.0.0.1:9")

    with pytest.raises(Unavailable):
        nobody.get(key_of(BLOB))
    with pytest.raises(Unavailable):
        nobody.put(key_of(BLOB), BLOB)
