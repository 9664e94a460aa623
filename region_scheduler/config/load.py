"""The only reader of the environment: puts the layers together and refuses what cannot start."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr, ValidationError

from region_scheduler.config.relations import broken_relations
from region_scheduler.config.settings import Settings
from region_scheduler.errors import Misconfigured

PREFIX: Final = "REGION_SCHEDULER_"
FILE: Final = "region-scheduler.toml"
FILE_VARIABLE: Final = PREFIX + "CONFIG"
"""Names the settings file, if it is not `region-scheduler.toml` of the current directory."""
_USER_INFO: Final = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")

Values = Mapping[str, Any]
"""Settings as nested tables: `{"region": "eu-west", "arango": {"url": ...}}`."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and for each key that is not at its default the layer that set it."""

    settings: Settings
    sources: Mapping[str, str]


def load(flags: Values | None = None, file: Path | None = None) -> Loaded:
    """Read every layer and return the settings that result.

    Args:
        flags: What the command line said; values that are None count as not given.
        file: Settings file; must exist if given. By default the one that the environment names,
            else `region-scheduler.toml` of the current directory, if there is one.

    Raises:
        Misconfigured: Every problem at once: unknown keys, values out of range, impossible
            relations, an unreadable file.
    """
    problems: list[str] = []
    named = file or (Path(os.environ[FILE_VARIABLE]) if os.environ.get(FILE_VARIABLE) else None)
    layers = {
        str(named or FILE): _from_file(named, problems),
        "environment": _from_environment(problems),
        "flag": _given(flags or {}),
    }
    merged: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer, values in layers.items():
        _merge(merged, values)
        sources |= {key: layer for key, _ in _leaves(values)}
    settings = _checked(merged, problems)
    if settings is None:
        raise Misconfigured(problems=problems)
    return Loaded(settings, sources)


def show(loaded: Loaded) -> list[tuple[str, str, str]]:
    """Return (key, value, source) of every setting, in a fixed order; secrets are hidden."""
    rows = []
    for key, value in _leaves(_tables(loaded.settings)):
        source = loaded.sources.get(key) or loaded.sources.get(key.partition(".")[0], "default")
        rows.append((key, _shown(value), source))
    return rows


def to_environment(values: Values) -> dict[str, str]:
    """Return the variables that hand `values` to a child process; secrets are in the clear."""
    return {_variable(key): _plain(value) for key, value in _leaves(_given(values))}


def _from_file(named: Path | None, problems: list[str]) -> Values:
    path = named or Path(FILE)
    if named is None and not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problems.append(f"{path}: {getattr(error, 'strerror', None) or error}")
        return {}


def _from_environment(problems: list[str]) -> Values:
    keys = {_variable(key): key for key, _ in _leaves(_tables(Settings()))}
    values: dict[str, Any] = {}
    for name, text in sorted(os.environ.items()):
        if name in keys:
            section, _, field = keys[name].rpartition(".")
            (values.setdefault(section, {}) if section else values)[field] = text
        elif name.startswith(PREFIX) and name != FILE_VARIABLE:
            problems.append(f"{name} is not a setting")
    return values


def _given(values: Values) -> dict[str, Any]:
    return {
        name: _given(value) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if value is not None
    }


def _merge(into: dict[str, Any], values: Values) -> None:
    for name, value in values.items():
        if isinstance(value, Mapping) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = dict(value) if isinstance(value, Mapping) else value


def _checked(merged: dict[str, Any], problems: list[str]) -> Settings | None:
    """Validate; a lease that cannot be must not hide what else is wrong."""
    try:
        settings = Settings(**merged)
    except Misconfigured as refused:
        problems += [f"lease.{problem}" for problem in refused.problems]
        _checked({k: v for k, v in merged.items() if k != "lease"}, problems)
        return None
    except ValidationError as refused:
        problems += [_told(error) for error in refused.errors(include_url=False)]
        return None
    problems += broken_relations(settings)
    return None if problems else settings


def _told(error: Mapping[str, Any]) -> str:
    key = ".".join(str(part) for part in error["loc"])
    if error["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"{key} is not a setting"
    return f"{key}: {str(error['msg'])[:1].lower()}{str(error['msg'])[1:]}"


def _tables(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in type(settings).model_fields}


def _leaves(values: Values, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, value); `peers` is one value."""
    for name, value in values.items():
        key = prefix + name
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
            yield from _leaves({name: getattr(value, name) for name in names}, f"{key}.")
        elif isinstance(value, Mapping) and key != "peers":
            yield from _leaves(value, f"{key}.")
        else:
            yield key, value


def _variable(key: str) -> str:
    return PREFIX + key.replace(".", "_").upper()


def _plain(value: Any) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Mapping):
        return ",".join(f"{name}={inner}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ",".join(str(inner) for inner in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(value: Any) -> str:
    if isinstance(value, SecretStr):
        return "***" if value.get_secret_value() else ""
    text = json.dumps(value) if isinstance(value, Mapping | list | tuple) else _plain(value)
    return _USER_INFO.sub("***", text)
