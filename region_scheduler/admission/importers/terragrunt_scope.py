"""Where a terragrunt expression stands: its file, unit, locals and the functions it calls."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from region_scheduler.admission.importers.hcl_file import Block, read_hcl
from region_scheduler.admission.importers.hcl_text import Expressions, NotStatic

UNIT_FILE: Final = "terragrunt.hcl"


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree that is read.

    Attributes:
        root: What was asked for; ids count from here.
        top: The repository's root, above which nothing is looked for; `root` outside of one.
    """

    root: Path
    top: Path
    _files: dict[Path, Block] = field(default_factory=dict)

    def read(self, file: Path) -> Block:
        """Return what is in a file, which is read once.

        Raises:
            InvalidInput: It cannot be read, or is not HCL.
        """
        if file not in self._files:
            self._files[file] = read_hcl(file)
        return self._files[file]


class Scope:
    """Evaluates expressions of one file on behalf of one unit.

    Args:
        tree: The tree that is read.
        file: Whose expressions they are.
        unit: Directory of the unit.
        here: Directory that paths and searches count from: the unit's, but for a file that
            `read_terragrunt_config` reads, whose own it is.
        includes: The unit's include files by label.
    """

    def __init__(
        self,
        tree: Tree,
        file: Path,
        unit: Path,
        here: Path | None = None,
        includes: Mapping[str, Path] | None = None,
    ) -> None:
        self.file = file
        self.body = tree.read(file)
        self._tree = tree
        self._unit = unit
        self._here = here or unit
        self.includes: dict[str, Path] = dict(includes or {})
        self._open: set[str] = set()
        self._locals = {
            name: attribute.text
            for block in self.body.of_kind("locals")
            for name, attribute in block.attributes.items()
        }
        self._expressions = Expressions(self._root, _functions(self))

    def value(self, text: str) -> Any:
        """Return the value of an expression.

        Raises:
            NotStatic: It depends on more than the files.
        """
        return self._expressions.value(text)

    def text(self, text: str, depth: int = 0) -> str:
        """Return the value of an expression that is a text.

        Raises:
            NotStatic: It is something else, or depends on more than the files.
        """
        value = self._expressions.value(text, depth)
        if not isinstance(value, str):
            raise NotStatic
        return value

    def place(self, line: int) -> str:
        """Return file and line as a person reads them."""
        return f"{os.path.relpath(self.file, self._tree.root)}:{line}"

    def local(self, name: str) -> Any:
        """Return a local's value; one that needs itself has none."""
        if name not in self._locals or name in self._open:
            raise NotStatic
        self._open.add(name)
        try:
            return self.value(self._locals[name])
        finally:
            self._open.discard(name)

    def local_names(self) -> Iterator[str]:
        """Return the names of the locals."""
        return iter(self._locals)

    def _root(self, name: str) -> Any:
        if name == "local":
            return _Locals(self)
        if name == "include":
            return {
                label: _Config(Scope(self._tree, file, self._unit, includes=self.includes))
                for label, file in self.includes.items()
            }
        raise NotStatic

    def find(self, arguments: Sequence[str], depth: int) -> str:
        """Return `find_in_parent_folders`: the nearest above, never above the top."""
        name = self.text(arguments[0], depth) if arguments else UNIT_FILE
        directory = self._here
        while directory != self._tree.top and directory != directory.parent:
            directory = directory.parent
            if (directory / name).exists():
                return str(directory / name)
        if len(arguments) > 1:
            return self.text(arguments[1], depth)
        raise NotStatic

    def directory(self, what: str, arguments: Sequence[str], depth: int) -> str:
        """Return one of the directories that functions tell, or the way between two."""
        here, top = self._here, self._tree.top
        match what:
            case "get_terragrunt_dir":
                return str(here)
            case "get_original_terragrunt_dir":
                return str(self._unit)
            case "get_repo_root":
                return str(top)
            case "get_path_to_repo_root":
                return os.path.relpath(top, here)
            case "get_path_from_repo_root":
                return os.path.relpath(here, top)
        parent = self._included(arguments, depth)
        match what:
            case "get_parent_terragrunt_dir":
                return str(parent)
            case "path_relative_to_include":
                return os.path.relpath(here, parent)
            case _:
                return os.path.relpath(parent, here)

    def config(self, arguments: Sequence[str], depth: int) -> Any:
        """Return `read_terragrunt_config`: what the file says, or else the second argument."""
        path = Path(os.path.normpath(self._here / self.text(arguments[0], depth)))
        if path.is_file():
            return _Config(Scope(self._tree, path, self._unit, here=path.parent))
        if len(arguments) > 1:
            return self._expressions.value(arguments[1], depth)
        raise NotStatic

    def _included(self, arguments: Sequence[str], depth: int) -> Path:
        if self.file.parent != self._here:
            return self.file.parent  # it is an include itself
        if arguments:
            label = self.text(arguments[0], depth)
            if label not in self.includes:
                raise NotStatic
            return self.includes[label].parent
        return next((file.parent for file in self.includes.values()), self._here)


class _Locals(Mapping[str, Any]):
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __getitem__(self, name: str) -> Any:
        return self._scope.local(name)

    def __contains__(self, name: object) -> bool:
        return name in set(self._scope.local_names())

    def __iter__(self) -> Iterator[str]:
        return self._scope.local_names()

    def __len__(self) -> int:
        return len(list(self._scope.local_names()))


class _Config(Mapping[str, Any]):
    """Another file as `read_terragrunt_config` and `include` show it."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __getitem__(self, name: str) -> Any:
        if name == "locals":
            return _Locals(self._scope)
        attribute = self._scope.body.attributes.get(name)
        if attribute is None:
            raise NotStatic
        return self._scope.value(attribute.text)

    def __contains__(self, name: object) -> bool:
        return name == "locals" or name in self._scope.body.attributes

    def __iter__(self) -> Iterator[str]:
        return iter(("locals", *self._scope.body.attributes))

    def __len__(self) -> int:
        return 1 + len(self._scope.body.attributes)


_DIRECTORIES: Final = (
    "get_terragrunt_dir get_original_terragrunt_dir get_repo_root get_path_to_repo_root"
    " get_path_from_repo_root get_parent_terragrunt_dir path_relative_to_include"
    " path_relative_from_include"
).split()


def _functions(scope: Scope) -> dict[str, Any]:
    def plain(act: Any, arguments: Sequence[str], depth: int) -> Any:
        values = [scope._expressions.value(one, depth) for one in arguments]
        try:
            return act(*values)
        except (TypeError, AttributeError) as error:
            raise NotStatic from error

    acts: dict[str, Any] = {
        "dirname": os.path.dirname,
        "basename": os.path.basename,
        "abspath": lambda path: os.path.normpath(os.path.join(scope._here, path)),
        "join": lambda between, items: between.join(items),
        "replace": lambda text, old, new: text.replace(old, new),
        "lower": lambda text: text.lower(),
        "upper": lambda text: text.upper(),
        "trimprefix": lambda text, prefix: text.removeprefix(prefix),
        "trimsuffix": lambda text, suffix: text.removesuffix(suffix),
    }
    return {
        **{name: partial(plain, act) for name, act in acts.items()},
        **{name: partial(scope.directory, name) for name in _DIRECTORIES},
        "find_in_parent_folders": scope.find,
        "read_terragrunt_config": scope.config,
    }
