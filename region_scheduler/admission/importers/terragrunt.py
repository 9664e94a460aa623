"""A tree of terragrunt units as a graph, read from its files.

A unit is a directory with a `terragrunt.hcl`, but for one that others include and that names no
terraform source. Its predecessors are its `dependency` blocks and its `dependencies.paths`, those
of what it includes among them: a block of the unit overrides the included one of the same name; one
that is not enabled, or whose path is empty, is none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from region_scheduler.admission.importers.fields import refused
from region_scheduler.admission.importers.hcl_file import Attribute, Block
from region_scheduler.admission.importers.hcl_text import NotStatic, parts
from region_scheduler.admission.importers.model import FoundGraph, Unresolved
from region_scheduler.admission.importers.terragrunt_scope import UNIT_FILE, Scope, Tree
from region_scheduler.domain.dag import Edge
from region_scheduler.domain.task import Json

RUNNER: Final = "terragrunt"
_STACK_FILE: Final = "terragrunt.stack.hcl"
_PASSED_OVER: Final = frozenset({".git", ".terragrunt-cache", ".terragrunt-stack", ".terraform"})
_REGION: Final = re.compile(
    "global|(us|eu|ap|sa|ca|me|af|il|mx|cn|us-gov|asia|europe|northamerica|southamerica|australia"
    "|africa|me)-((north|south|east|west|central)+)-?[0-9]"
)


@dataclass(slots=True)
class _Wish:
    """One predecessor as a unit and what it includes say it: each attribute with its scope."""

    label: str
    attributes: dict[str, tuple[Attribute, Scope]]

    def merged(self, above: _Wish) -> _Wish:
        return _Wish(self.label, self.attributes | above.attributes)


@dataclass(slots=True)
class _Unit:
    """What was found out about one unit."""

    id: str
    directory: Path
    source: str = ""
    includes: list[Path] = field(default_factory=list)
    edges: list[tuple[str, str]] = field(default_factory=list)  # (predecessor, place)
    unresolved: list[Unresolved] = field(default_factory=list)


def found_in_tree(root: Path) -> FoundGraph:
    """Return the graph of the units below a directory.

    Raises:
        InvalidInput: There is no such directory, no unit in it, or a file is not HCL.
    """
    root = root.absolute()
    if not root.is_dir():
        raise refused("DIR", str(root), "name a directory")
    tree = Tree(root, _top(root))
    units = [_unit(tree, directory) for directory in _directories(root, UNIT_FILE)]
    included = {file for unit in units for file in unit.includes}
    units = [u for u in units if u.source or (u.directory / UNIT_FILE) not in included]
    if not units:
        raise refused("DIR", str(root), f"there is no {UNIT_FILE} below it")
    stacks = [
        Unresolved(_STACK_FILE, os.path.relpath(directory, root))
        for directory in _directories(root, _STACK_FILE)
    ]
    places: dict[Edge, str] = {}
    edges = [(before, unit.id) for unit in units for before, _ in unit.edges]
    for unit in units:
        for before, place in unit.edges:
            places.setdefault((before, unit.id), place)
    return FoundGraph(
        name=root.name,
        source=root.name,
        kind="terragrunt",
        nodes=tuple(unit_node(unit.id, unit.source) for unit in units),
        edges=tuple(edges),
        places=places,
        unresolved=(*(one for unit in units for one in unit.unresolved), *stacks),
    )


def unit_node(id_: str, source: str = "") -> dict[str, Json]:
    """Return a unit in the product's form; its target region is the last word that names one."""
    regions = [word for word in id_.split("/") if _REGION.fullmatch(word)]
    node: dict[str, Json] = {"id": id_, "runner": RUNNER, "inputs": {"unit": id_}}
    if regions:
        node["region"] = regions[-1]
    if source:
        node["labels"] = {"source": source}
    return node


def _top(root: Path) -> Path:
    """Return the repository's root, or `root` if it is in none."""
    return next((at for at in (root, *root.parents) if (at / ".git").exists()), root)


def _directories(root: Path, file: str) -> Iterator[Path]:
    for at, directories, files in os.walk(root):
        directories[:] = sorted(set(directories) - _PASSED_OVER)
        if file in files:
            yield Path(at)


def _unit(tree: Tree, directory: Path) -> _Unit:
    unit = _Unit(os.path.relpath(directory, tree.root), directory)
    scope = Scope(tree, directory / UNIT_FILE, directory)
    for block in scope.body.of_kind("terraform"):
        if "source" in block.attributes:
            unit.source = block.attributes["source"].text.strip('"')
    wishes: dict[str, _Wish] = {}
    listed: list[tuple[str, Scope, int]] = []
    for block, file in list(_includes(unit, scope)):
        strategy = block.attributes.get("merge_strategy", Attribute('"shallow"', 0)).text.strip('"')
        if strategy != "no_merge":
            beneath = Scope(tree, file, directory, includes=scope.includes)
            _add(beneath, wishes, listed, is_deep=strategy == "deep")
    is_deep = any(
        block.attributes.get("merge_strategy", Attribute("", 0)).text == '"deep"'
        for block in scope.body.of_kind("include")
    )
    _add(scope, wishes, listed, is_deep=is_deep)
    for wish in wishes.values():
        _resolve(tree, unit, wish)
    for text, at, line in listed:
        _refer(tree, unit, text, at, line)
    return unit


def _includes(unit: _Unit, scope: Scope) -> Iterator[tuple[Block, Path]]:
    for block in scope.body.of_kind("include"):
        path = block.attributes.get("path")
        if path is None:
            continue
        try:
            file = Path(os.path.normpath(unit.directory / scope.text(path.text)))
        except NotStatic:
            file = Path()
        if file.is_file():
            scope.includes[block.label] = file
            unit.includes.append(file)
            yield block, file
        else:
            place = scope.place(path.line)
            unit.unresolved.append(Unresolved(f"include {path.text}", unit.id, place))


def _add(
    scope: Scope,
    wishes: dict[str, _Wish],
    listed: list[tuple[str, Scope, int]],
    *,
    is_deep: bool,
) -> None:
    """Lay what a file says over what was said before it."""
    for block in scope.body.of_kind("dependency"):
        said = {name: (attribute, scope) for name, attribute in block.attributes.items()}
        said.setdefault("", (Attribute("", block.line), scope))
        wish = _Wish(block.label, said)
        earlier = wishes.get(block.label)
        wishes[block.label] = earlier.merged(wish) if earlier and is_deep else wish
    for block in scope.body.of_kind("dependencies"):
        if paths := block.attributes.get("paths"):
            text = paths.text.strip()
            is_list = text.startswith("[") and text.endswith("]")
            items: Sequence[str] = list(parts(text[1:-1], ",")) if is_list else [text]
            listed += [(item, scope, paths.line) for item in items]


def _resolve(tree: Tree, unit: _Unit, wish: _Wish) -> None:
    attributes = wish.attributes
    if "enabled" in attributes:
        enabled, scope = attributes["enabled"]
        try:
            if scope.value(enabled.text) is False:
                return
        except NotStatic:
            place = scope.place(enabled.line)
            unit.unresolved.append(Unresolved(f"enabled = {enabled.text}", unit.id, place))
            return
    if "config_path" not in attributes:
        block, scope = attributes[""]
        what = f'dependency "{wish.label}" without a config_path'
        unit.unresolved.append(Unresolved(what, unit.id, scope.place(block.line)))
        return
    path, scope = attributes["config_path"]
    _refer(tree, unit, path.text, scope, path.line)


def _refer(tree: Tree, unit: _Unit, text: str, scope: Scope, line: int) -> None:
    """Add the predecessors that an expression names; a list in `dependencies` may be one local."""
    try:
        value = scope.value(text)
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(one, str) for one in values):
            raise NotStatic
    except NotStatic:
        unit.unresolved.append(Unresolved(text, unit.id, scope.place(line)))
        return
    for one in filter(None, values):
        path = os.path.normpath(os.path.join(unit.directory, one))
        if os.path.basename(path) == UNIT_FILE:
            path = os.path.dirname(path)
        unit.edges.append((os.path.relpath(path, tree.root), scope.place(line)))
