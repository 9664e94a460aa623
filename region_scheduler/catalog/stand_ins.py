"""Finds the stand-in terraform modules on disk, without reading the catalogue."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from region_scheduler.errors import InvalidInput

SCHEME = "catalog:"
"""Begins the `module` input of a terraform step whose module is package data."""


def module_directory(reference: str) -> Path:
    """Return the directory of `catalog:<name>`; it is package data, so copy it before use.

    Raises:
        InvalidInput: The reference names no stand-in module.
    """
    root = Path(str(files("region_scheduler.catalog"))) / "modules"
    known = {f"{SCHEME}{path.parent.name}": path.parent for path in root.glob("*/main.tf")}
    if reference not in known:
        raise InvalidInput(
            field="module", value=reference, expected=f"there are {', '.join(sorted(known))}"
        )
    return known[reference]
