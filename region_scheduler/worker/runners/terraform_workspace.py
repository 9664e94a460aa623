"""One state's own directory: a copy of its module, its data and its state file."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from region_scheduler.catalog.stand_ins import SCHEME, module_directory
from region_scheduler.domain.ids import digest_of
from region_scheduler.domain.task import Json
from region_scheduler.errors import InvalidInput

_OVERRIDE: Final = "region_scheduler_override.tf.json"
_KEY_FILE: Final = "key.json"
_STATE_FILE: Final = "terraform.tfstate"
_LEFT_BEHIND: Final = (".terraform", "*.tfstate", "*.tfstate.*", ".git", _OVERRIDE)
_VARIABLE: Final = re.compile(r'^\s*variable\s+"?([\w-]+)"?\s*\{', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ModuleSources:
    """Where modules may come from.

    Attributes:
        allowed_roots: Directories below which a path may lie; a relative one is tried in each.
    """

    allowed_roots: tuple[Path, ...] = ()

    def find(self, module: Json) -> Path:
        """Return the directory of `catalog:NAME`, or of a path within an allowed root.

        Raises:
            InvalidInput: There is none, or it lies elsewhere (links are followed first).
        """
        text = module if isinstance(module, str) else ""
        if text.startswith(SCHEME):
            return module_directory(text)
        for root in self.allowed_roots:
            found = (root / text).resolve()
            is_below = root.resolve() in found.parents
            if is_below and any(found.glob("*.tf")):
                return found
        roots = ", ".join(map(str, self.allowed_roots)) or "none is set"
        expected = f"`{SCHEME}NAME`, or a directory with *.tf files below an allowed root ({roots})"
        raise InvalidInput(field="module", value=str(module), expected=expected)


@dataclass(frozen=True, slots=True)
class TerraformState:
    """A state as its file says.

    Attributes:
        serial: Rises with every change of the state.
        resources: Managed resource instances.
        outputs: Values of the outputs that are not sensitive.
    """

    state_key: str
    serial: int
    resources: int
    outputs: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Workspace:
    """The directory of one state key."""

    root: Path
    state_key: str

    @classmethod
    def of(cls, state_dir: str, state_key: str) -> Workspace:
        """Return the workspace of `state_key`, made if need be."""
        workspace = cls(Path(state_dir) / digest_of(state_key), state_key)
        workspace.root.mkdir(parents=True, exist_ok=True)
        key_path = workspace.root / _KEY_FILE
        if not key_path.exists():
            _write(key_path, {"state_key": state_key})
        return workspace

    @property
    def module(self) -> Path:
        """The working copy of the module."""
        return self.root / "module"

    @property
    def data(self) -> Path:
        """TF_DATA_DIR: providers and the backend's own notes."""
        return self.root / "data"

    @property
    def state_file(self) -> Path:
        """The state itself."""
        return self.root / _STATE_FILE

    @property
    def marker(self) -> Path:
        """Says for which module and tool an init has succeeded."""
        return self.root / "initialised"

    def prepare(self, source: Path, tool_identity: str) -> str:
        """Bring the working copy up to `source`.

        Returns:
            What to write into `marker` once init has succeeded; empty if it has already.
        """
        wanted = f"{_content_hash(source)} {tool_identity} {self.root}"
        if self.marker.exists() and self.marker.read_text() == wanted:
            return ""
        self.marker.unlink(missing_ok=True)
        shutil.rmtree(self.module, ignore_errors=True)
        shutil.copytree(source, self.module, ignore=shutil.ignore_patterns(*_LEFT_BEHIND))
        backend = {"local": {"path": str(self.state_file)}}
        _write(self.module / _OVERRIDE, {"terraform": {"backend": backend}})
        return wanted

    def declared(self) -> frozenset[str]:
        """Return the names of the module's variables."""
        names: set[str] = set()
        for path in self.module.glob("*.tf"):
            names.update(_VARIABLE.findall(path.read_text()))
        for path in self.module.glob("*.tf.json"):
            names.update(orjson.loads(path.read_bytes()).get("variable", {}))
        return frozenset(names)

    def state(self) -> TerraformState | None:
        """Return the state; None if there is none yet, or its file cannot be read."""
        try:
            content = orjson.loads(self.state_file.read_bytes())
        except (FileNotFoundError, orjson.JSONDecodeError):
            return None
        managed = [item for item in content.get("resources", ()) if item.get("mode") == "managed"]
        outputs = content.get("outputs", {})
        return TerraformState(
            state_key=self.state_key,
            serial=content.get("serial", 0),
            resources=sum(len(item.get("instances", ())) for item in managed),
            outputs={k: v["value"] for k, v in outputs.items() if not v.get("sensitive")},
        )


def terraform_states(state_dir: str | Path) -> list[TerraformState]:
    """Return terraform's own states below a region's state directory, by key."""
    states: list[TerraformState] = []
    for key_path in Path(state_dir).glob(f"*/{_KEY_FILE}"):
        key = orjson.loads(key_path.read_bytes())["state_key"]
        if state := Workspace(key_path.parent, key).state():
            states.append(state)
    return sorted(states, key=lambda state: state.state_key)


def _content_hash(directory: Path) -> str:
    hashed = hashlib.blake2b(digest_size=16)
    for path in sorted(directory.rglob("*")):
        relative = path.relative_to(directory)
        if path.is_file() and not any(
            part.startswith(".terraform") for part in relative.parts[:-1]
        ):
            hashed.update(f"{relative}\0{path.stat().st_size}\0".encode())
            hashed.update(path.read_bytes())
    return hashed.hexdigest()


def _write(path: Path, content: Json) -> None:
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(orjson.dumps(content))
    fresh.replace(path)
