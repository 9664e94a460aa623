"""Where a worker's incarnation keeps things, and what becomes of what earlier ones left."""

from __future__ import annotations

from pathlib import Path

from region_scheduler.assembly.working import _own_directory
from region_scheduler.config.settings import Paths, Settings
from region_scheduler.domain.ids import Incarnation
from region_scheduler.worker.lease_file import LeaseFile

DEADLINES = {"long-over": 100.0, "just-over": 4_900.0, "running": 5_010.0, "beginning": 0.0}
NOW = 5_000.0


def test_what_is_long_over_is_removed_and_nothing_else(tmp_path: Path) -> None:
    settings = Settings(paths=Paths(work_dir=str(tmp_path)))
    for name, deadline in DEADLINES.items():
        (tmp_path / name).mkdir()
        lease = LeaseFile(tmp_path / name / "lease")
        lease.extend(deadline)
        lease.close()
    (tmp_path / "7.ready").touch()

    own = _own_directory(settings, Incarnation("eu.worker:new"), NOW)

    assert own == tmp_path / "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "7.ready",
        "beginning",
        "just-over",
        "new",
        "running",
    ]
