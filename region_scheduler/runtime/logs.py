"""Structured logs: sentences for a terminal, JSON lines otherwise, never a secret."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Final, TextIO

import structlog
from structlog.stdlib import ProcessorFormatter

REDACTED: Final = "***"
_SECRET_KEY: Final = re.compile(
    r"password|passwd|secret|api_?key|signing_?key|signature|credential|authorization|bearer",
    re.IGNORECASE,
)
_USER_INFO: Final = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")
_NOISY: Final = ("amqp", "billiard", "celery", "kombu", "httpx", "httpcore", "urllib3", "alembic")


def set_up_logging(
    *, level: str = "info", stream: TextIO | None = None, is_human: bool | None = None, **bound: str
) -> None:
    """Send every log record of this process, our own and the libraries', to one stream.

    Args:
        level: Lowest level of our own records; libraries speak from `warning` on.
        stream: Standard error unless given; standard output belongs to results.
        is_human: Whether to write for people; by default, whether `stream` is a terminal.
        bound: Facts that every line carries, e.g. region and role.
    """
    stream = stream or sys.stderr
    is_human = stream.isatty() if is_human is None else is_human
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if is_human else "iso", utc=not is_human),
        _binding(bound),
    ]
    rendering: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(colors=stream.isatty())]
        if is_human
        else [structlog.processors.JSONRenderer()]
    )
    # A traceback for machines is text, and goes through the filter like any other.
    tracing: list[structlog.typing.Processor] = (
        [] if is_human else [structlog.processors.format_exc_info]
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[
                ProcessorFormatter.remove_processors_meta,
                *tracing,
                without_secrets,
                *rendering,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def without_secrets(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Replace the values of keys that name a secret, and passwords inside URLs, at any depth."""
    for key, value in event.items():
        if key != "exc_info":
            event[key] = _cleaned(key, value)
    return event


def _cleaned(key: str, value: Any) -> Any:
    if _SECRET_KEY.search(key):
        return REDACTED
    if isinstance(value, str):
        return _USER_INFO.sub(REDACTED, value)
    if isinstance(value, Mapping):
        return {str(name): _cleaned(str(name), inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned("", inner) for inner in value]
    return value


def _binding(bound: Mapping[str, str]) -> structlog.typing.Processor:
    def bind(
        _logger: Any, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        for key, value in bound.items():
            event.setdefault(key, value)
        return event

    return bind
