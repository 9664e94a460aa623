"""Reads the catalogue's files, each once per process, and says which version of it this is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from region_scheduler.catalog.model import (
    Cloud,
    Framework,
    LockDefinition,
    LockScope,
    StepDefinition,
    StepKind,
    Subgraph,
    ZoneType,
)
from region_scheduler.catalog.parameters import Parameter
from region_scheduler.domain.task import WhenHolderLost
from region_scheduler.errors import UnknownZoneType

VERSION = "1.0.0"
"""Rises by the rules of semantic versioning: major when steps or edges go, minor when they come."""

_ROOT = files("region_scheduler.catalog")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DIGEST_CHARS = 12


@cache
def catalog_version() -> str:
    """Return the version and a digest of everything that shapes a plan or what its steps do."""
    hashed = hashlib.sha256()
    for folder, suffix in (("data", ".yaml"), ("modules", ".tf"), ("steps", ".py")):
        for path, content in sorted(_contents(_ROOT / folder, folder, suffix)):
            hashed.update(f"{len(path)}:{path}{len(content)}:".encode())
            hashed.update(content)
    return f"{VERSION}+{hashed.hexdigest()[:_DIGEST_CHARS]}"


@cache
def type_names() -> tuple[str, ...]:
    """Return the names of all zone types, sorted."""
    entries = (_ROOT / "data" / "types").iterdir()
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in entries))


@cache
def subgraph_names() -> tuple[str, ...]:
    """Return the ids of all subgraphs, sorted; overlays are not among them."""
    entries = (_ROOT / "data" / "subgraphs").iterdir()
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in entries))


@cache
def zone_type(name: str) -> ZoneType:
    """Return the zone type.

    Raises:
        UnknownZoneType: None has this name.
    """
    if name not in type_names():
        raise UnknownZoneType(name=name, known=type_names())
    said = _read(f"types/{name}.yaml")
    declared = _parameters()
    return ZoneType(
        id=said["id"],
        version=said["version"],
        cloud=said["cloud"],
        framework=said["framework"],
        subgraphs=tuple(said["subgraphs"]),
        overlays=tuple(said["overlays"]),
        parameters=tuple(
            _parameter(name, {**declared[name], **own}) for name, own in said["parameters"].items()
        ),
    )


@cache
def subgraph(name: str) -> Subgraph:
    """Return the subgraph of an id that a zone type names."""
    return _subgraph(_read(f"subgraphs/{name}.yaml"))


@cache
def overlay(name: str) -> Subgraph:
    """Return the overlay of an id that a zone type names."""
    return _subgraph(_read(f"overlays/{name}.yaml"))


@cache
def clouds() -> Mapping[str, Cloud]:
    """Return the clouds by id."""
    return {
        name: Cloud(id=name, **{**said, "foundation": tuple(said["foundation"])})
        for name, said in _read("clouds.yaml").items()
    }


@cache
def frameworks() -> Mapping[str, Framework]:
    """Return the frameworks by id."""
    return {name: Framework(id=name, **said) for name, said in _read("frameworks.yaml").items()}


@cache
def lock_catalogue() -> Mapping[str, LockDefinition]:
    """Return the lock catalogue by key, `{region}` not replaced."""
    return {
        key: LockDefinition(
            key=key,
            scope=LockScope(said["scope"]),
            capacity=1 if said["mode"] == "exclusive" else said["capacity"],
            when_holder_lost=WhenHolderLost(said["when_holder_lost"]),
            reason=said["reason"],
        )
        for key, said in _read("locks.yaml").items()
    }


@cache
def sources() -> Mapping[str, str]:
    """Return where order and durations come from, by the label that steps carry."""
    return dict(_read("sources.yaml"))


def _read(path: str) -> dict[str, Any]:
    text = (_ROOT / "data" / path).read_text(encoding="utf-8")
    said: dict[str, Any] = yaml.load(text, _LOADER)  # noqa: S506  both loaders are the safe ones
    return said


@cache
def _parameters() -> Mapping[str, dict[str, Any]]:
    return _read("parameters.yaml")


def _parameter(name: str, said: dict[str, Any]) -> Parameter:
    return Parameter(name=name, **{**said, "values": tuple(said.get("values", ()))})


def _subgraph(said: dict[str, Any]) -> Subgraph:
    steps = tuple(_step(step) for step in said["steps"])
    return Subgraph(id=said["id"], purpose=said["purpose"], steps=steps)


def _step(said: dict[str, Any]) -> StepDefinition:
    return StepDefinition(
        id=said["id"],
        purpose=said["purpose"],
        kind=StepKind(said["kind"]),
        after=tuple(said.get("after", ())),
        p50_min=said["minutes"]["p50"],
        p90_min=said["minutes"]["p90"],
        is_per_region=said.get("per_region", False),
        is_irreversible=said.get("irreversible", False),
        needs_approval=said.get("needs_approval", False),
        locks=tuple(said.get("locks", ())),
        module=said.get("module", ""),
        program=said.get("program", ""),
        assertions=tuple(said.get("assert", ())),
        controls=tuple(said.get("controls", ())),
        source=said.get("source", ""),
    )


def _contents(folder: Traversable, path: str, suffix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        within = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _contents(entry, within, suffix)
        elif entry.name.endswith(suffix):
            yield within, entry.read_bytes()
