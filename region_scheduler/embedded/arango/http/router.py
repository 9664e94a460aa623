"""From a method and a path to the handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.message import Response

Handler = Callable[..., Response]
Table = Mapping[tuple[str, int], Handler]
"""Handlers of one area by method and number of path segments after the area's name."""


class Target(NamedTuple):
    """Where a path leads."""

    database: str
    area: str
    segments: list[str]


def target_of(path: str) -> Target:
    """Split a path into its database (`_system` if it names none), area, and the rest.

    Raises:
        ArangoError: 404 for a path outside of the API.
    """
    parts = path.split("/")
    database = "_system"
    at = 1
    if len(parts) > 2 and parts[1] == "_db":
        database = parts[2]
        at = 3
    if len(parts) < at + 2:
        raise ArangoError(404, f"unknown path '{path}'")
    segments = [segment for segment in parts[at + 2 :] if segment]
    if "%" in path:
        database = unquote(database)
        segments = [unquote(segment) for segment in segments]
    return Target(database, f"{parts[at]}/{parts[at + 1]}", segments)


class Router:
    """The handlers of all areas.

    Args:
        areas: Tables by area, such as `_api/document`.
    """

    def __init__(self, areas: Mapping[str, Table]) -> None:
        self._areas = areas

    def handler(self, method: str, target: Target) -> Any:
        """Return the handler.

        Raises:
            ArangoError: 404 for an unknown path, 405 for a method that it does not have.
        """
        table = self._areas.get(target.area)
        if table is None:
            raise ArangoError(404, f"unknown path '/{target.area}'")
        handler = table.get((method, len(target.segments)))
        if handler is None:
            if any(count == len(target.segments) for _, count in table):
                raise ArangoError(405)
            raise ArangoError(404, "unknown path")
        return handler
