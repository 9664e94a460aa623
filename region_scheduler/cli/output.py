"""What commands print: lines for people, or one JSON object on the last line for programs."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Output:
    """Where a command's result goes."""

    as_json: bool = False

    def result(self, value: Mapping[str, Any], lines: Callable[[], Iterable[str]]) -> None:
        """Print the result: `value` as JSON, or what `lines` returns."""
        if self.as_json:
            print_line(json.dumps(value, default=_plain))
        else:
            for line in lines():
                print_line(line)

    def items(
        self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], nothing: str
    ) -> None:
        """Print a list: `{"items": [...]}`, or a table of `columns`, or the sentence `nothing`."""
        self.result(
            {"items": list(rows)}, lambda: table(rows, columns) if rows else iter([nothing])
        )

    def note(self, line: str) -> None:
        """Tell of progress: for people on standard output, for programs' readers on error."""
        print_line(line, is_aside=self.as_json)


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Iterable[str]:
    """Return a heading and one line a row, in columns."""
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    heads = [column.replace("_", " ").upper() for column in columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    for line in (heads, *cells):
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "  ".join(padded).rstrip()


def print_line(line: str, *, is_aside: bool = False) -> None:
    """Print one line at once; control characters of foreign texts do nothing to a terminal."""
    clean = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line)
    stream = sys.stderr if is_aside else sys.stdout
    stream.write(clean.encode("utf-8", "replace").decode() + "\n")
    stream.flush()


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, datetime):
        return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, Mapping):
        return " ".join(f"{key}={_cell(inner)}" for key, inner in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ",".join(map(_cell, value)) or "-"
    return str(value) if value != "" else "-"


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)
