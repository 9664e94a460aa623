"""The graph of a tree as a terragrunt of the user's own tells it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from region_scheduler.admission.importers.fields import a_list, a_text, an_object, refused, texts
from region_scheduler.admission.importers.graph import parsed
from region_scheduler.admission.importers.model import FoundGraph
from region_scheduler.admission.importers.terragrunt import unit_node
from region_scheduler.errors import Unavailable

ARGUMENTS: Final = ("find", "--dag", "--json", "--dependencies")
_TIMEOUT_S: Final = 600.0


def found_by_terragrunt(program: str, root: Path) -> FoundGraph:
    """Return the graph of the units below a directory as `program` tells it.

    Args:
        program: A terragrunt.
        root: What is asked for; its paths count from here.

    Raises:
        InvalidInput: There is no such directory, or terragrunt refuses it; says what it says.
        Unavailable: It cannot be started, or takes too long.
    """
    if not root.is_dir():
        raise refused("DIR", str(root), "name a directory")
    try:
        ended = subprocess.run(
            [program, *ARGUMENTS],
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(dependency="terragrunt", detail=str(error)) from error
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        told = f"terragrunt refuses it: {said[-1] if said else f'exit code {ended.returncode}'}"
        raise refused("DIR", str(root), told)
    return _graph(ended.stdout, root)


def _graph(output: bytes, root: Path) -> FoundGraph:
    place = f"terragrunt {' '.join(ARGUMENTS)}"
    ids: list[str] = []
    edges: list[tuple[str, str]] = []
    notes: list[str] = []
    for number, found in enumerate(a_list(parsed(output, place), place)):
        here = f"{place}: [{number}]"
        fields = an_object(found, here, needed=("path",))
        path = a_text(fields["path"], f"{here}.path")
        if fields.get("type", "unit") != "unit":
            notes.append(f"{fields['type']} {path} is no unit and was left out")
            continue
        ids.append(path)
        before = fields.get("dependencies") or []
        edges += [(name, path) for name in texts(before, f"{here}.dependencies")]
    return FoundGraph(
        name=root.absolute().name,
        source=root.absolute().name,
        kind="terragrunt",
        nodes=tuple(unit_node(one) for one in ids),
        edges=tuple(edges),
        places=dict.fromkeys(edges, place),
        notes=tuple(notes),
    )
