"""The blocks of an HCL file, each attribute with its text and line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from region_scheduler.admission.importers.fields import refused


@dataclass(frozen=True, slots=True)
class Attribute:
    """A value as it is written.

    Attributes:
        text: The expression.
        line: Where it begins, counted from 1.
    """

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Block:
    """A block, or a whole file.

    Attributes:
        kind: Its first word; empty for a file.
        label: Its first label; empty if it has none.
        line: Where it begins, counted from 1.
    """

    kind: str = ""
    label: str = ""
    line: int = 1
    attributes: dict[str, Attribute] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()

    def of_kind(self, kind: str) -> Iterator[Block]:
        """Return its own blocks of a kind."""
        return (block for block in self.blocks if block.kind == kind)


def read_hcl(path: Path) -> Block:
    """Return what is in a file.

    Raises:
        InvalidInput: It cannot be read, or is not HCL; names file and line.
    """
    from hcl2 import parses
    from lark.exceptions import LarkError

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise refused(str(path), "", f"it cannot be read: {error}") from error
    try:
        return _block(parses(text if text.endswith("\n") else f"{text}\n").body, text)
    except (LarkError, RecursionError) as error:
        line = getattr(error, "line", 0)
        raise refused(f"{path}:{line}" if line else str(path), "", "this is not HCL") from error


def _block(body: object, text: str, kind: str = "", label: str = "", line: int = 1) -> Block:
    from hcl2.rules.base import AttributeRule, BlockRule

    attributes: dict[str, Attribute] = {}
    blocks: list[Block] = []
    for child in body.children:  # type: ignore[attr-defined]
        if isinstance(child, AttributeRule):
            meta = child.expression._meta
            written = text[meta.start_pos : meta.end_pos].strip()
            attributes[str(child.identifier.serialize())] = Attribute(written, child._meta.line)
        elif isinstance(child, BlockRule):
            names = [str(one.serialize()).strip('"') for one in child.labels]
            first = names[1] if len(names) > 1 else ""
            blocks.append(_block(child.body, text, names[0], first, child._meta.line))
    return Block(kind, label, line, attributes, tuple(blocks))
