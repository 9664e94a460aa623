"""What is installed elsewhere holds everything that the code reads beside itself."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.architecture.tree import PACKAGE, ROOT, files, shown


def test_the_wheel_holds_queries_catalogue_modules_and_migrations(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=60,
    )
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())

    wanted = {shown(path) for path in files(under=PACKAGE) if path.suffix != ".pyc"}
    assert sorted(wanted - packed) == []
    assert {Path(name).suffix for name in wanted} >= {".py", ".aql"}
