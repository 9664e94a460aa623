"""Values of HCL expressions, as far as reading alone gives them.

What needs more than the files (another unit's outputs, the environment, a choice at run time)
raises `NotStatic`: it is never guessed. Expressions are taken apart as texts, so that a part nobody
asks for is never looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

_NAME: Final = re.compile(r"[A-Za-z_][\w-]*")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_CLOSES: Final = {"(": ")", "[": "]", "{": "}"}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_DEPTH_MAX: Final = 60

Names = Callable[[str], Any]
Functions = Mapping[str, Callable[[Sequence[str], int], Any]]
"""By name; each is given its arguments as texts, and how deep it stands."""


class NotStatic(Exception):
    """Reading alone does not tell the value."""


class Expressions:
    """Evaluates texts.

    Args:
        root: Returns the value of a first name (`local`, `include`); raises `NotStatic`.
        functions: What may be called.
    """

    def __init__(self, root: Names, functions: Functions) -> None:
        self._root = root
        self._functions = functions

    def value(self, text: str, depth: int = 0) -> Any:
        """Return the value of an expression.

        Raises:
            NotStatic: It depends on more than the files.
        """
        text = text.strip()
        if depth > _DEPTH_MAX or not text or "<<" in text:
            raise NotStatic
        if text in _WORDS:
            return _WORDS[text]
        if _NUMBER.fullmatch(text):
            return float(text) if "." in text else int(text)
        first = text[0]
        if first in '"[({' and _end(text, 0) == len(text):
            inner = text[1:-1]
            if first == '"':
                return self._template(inner, depth + 1)
            if first == "(":
                return self.value(inner, depth + 1)
            if first == "[":
                return [self.value(part, depth + 1) for part in parts(inner, ",")]
            return _Object(self, inner, depth + 1)
        return self._reference(text, depth + 1)

    def _template(self, inner: str, depth: int) -> Any:
        made: list[Any] = []
        at = 0
        while at < len(inner):
            if inner.startswith(("$${", "%%{"), at):
                made.append(inner[at + 1 : at + 3])
                at += 3
            elif inner.startswith("${", at):
                end = _end(inner, at + 1)
                made.append(self.value(inner[at + 2 : end - 1].strip("~"), depth))
                at = end
            elif inner.startswith("%{", at):
                raise NotStatic
            elif inner[at] == "\\":
                made.append(_ESCAPES.get(inner[at + 1 : at + 2], inner[at : at + 2]))
                at += 2
            else:
                made.append(inner[at])
                at += 1
        if any(not isinstance(one, str | int | float) or isinstance(one, bool) for one in made):
            raise NotStatic
        return "".join(map(str, made))

    def _reference(self, text: str, depth: int) -> Any:
        """Return the value of `name.attribute[index]` or `function(arguments).attribute`."""
        match = _NAME.match(text)
        if match is None:
            raise NotStatic
        at = match.end()
        if text[at : at + 1] == "(":
            end = _end(text, at)
            call = self._functions.get(match.group())
            if call is None:
                raise NotStatic
            value = call(list(parts(text[at + 1 : end - 1], ",")), depth)
            at = end
        else:
            value = self._root(match.group())
        while at < len(text):
            key, at = self._key(text, at, depth)
            value = _member(value, key)
        return value

    def _key(self, text: str, at: int, depth: int) -> tuple[Any, int]:
        if text[at] == "." and (match := _NAME.match(text, at + 1)):
            return match.group(), match.end()
        if text[at] == "[":
            end = _end(text, at)
            return self.value(text[at + 1 : end - 1], depth), end
        raise NotStatic


class _Object(Mapping[str, Any]):
    """An object whose values are looked at when they are asked for."""

    def __init__(self, expressions: Expressions, inner: str, depth: int) -> None:
        self._expressions = expressions
        self._depth = depth
        self._texts: dict[str, str] = {}
        for entry in parts(inner, ",\n"):
            split = _first(entry, "=:")
            if split < 0:
                raise NotStatic
            self._texts[entry[:split].strip().strip('"')] = entry[split + 1 :]

    def __getitem__(self, key: str) -> Any:
        return self._expressions.value(self._texts[key], self._depth)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def parts(text: str, separators: str) -> Iterator[str]:
    """Return the parts of `text` between separators that stand in no bracket, text or comment."""
    begin = 0
    for at in _outside(text):
        if text[at] in separators:
            if part := _bare(text[begin:at]):
                yield part
            begin = at + 1
    if part := _bare(text[begin:]):
        yield part


def _bare(text: str) -> str:
    """Return the text without outer blanks, and without comments but those within brackets."""
    kept: list[str] = []
    at = 0
    while at < len(text):
        if comment := _comment_end(text, at):
            at = comment
            continue
        end = _end(text, at) if text[at] in '"([{' else at + 1
        kept.append(text[at:end])
        at = end
    return "".join(kept).strip()


def _first(text: str, wanted: str) -> int:
    return next((at for at in _outside(text) if text[at] in wanted), -1)


def _outside(text: str) -> Iterator[int]:
    """Return the places of characters that stand in no bracket, text or comment."""
    at = 0
    while at < len(text):
        comment = _comment_end(text, at)
        if comment:
            at = comment
        elif text[at] in '"([{':
            at = _end(text, at)
        else:
            yield at
            at += 1


def _comment_end(text: str, at: int) -> int:
    """Return where a comment that begins here ends (before its line's end); 0 if none does."""
    if text[at] == "#" or text.startswith("//", at):
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    if text.startswith("/*", at):
        end = text.find("*/", at)
        return len(text) if end < 0 else end + 2
    return 0


def _end(text: str, at: int) -> int:
    """Return the place after the text or bracket that begins at `at`.

    Raises:
        NotStatic: It does not end.
    """
    closers = ['"' if text[at] == '"' else _CLOSES[text[at]]]
    at += 1
    while closers and at < len(text):
        char = text[at]
        if closers[-1] == '"':
            if char == "\\":
                at += 1
            elif text.startswith(("$${", "%%{"), at):
                at += 2
            elif text.startswith(("${", "%{"), at):
                closers.append("}")
                at += 1
            elif char == '"':
                closers.pop()
        elif comment := _comment_end(text, at):
            at = comment - 1
        elif char == '"':
            closers.append('"')
        elif char in _CLOSES:
            closers.append(_CLOSES[char])
        elif char == closers[-1]:
            closers.pop()
        at += 1
    if closers:
        raise NotStatic
    return at


def _member(value: Any, key: Any) -> Any:
    if isinstance(value, Mapping) and isinstance(key, str) and key in value:
        return value[key]
    if isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
        return value[key]
    raise NotStatic
