"""The environment that programs started by us inherit."""

from __future__ import annotations

import os


def inherited() -> dict[str, str]:
    """Return a copy of this process's environment, to be handed on; settings are not read here."""
    return dict(os.environ)  # noqa: TID251 - handed on whole, never looked into
