"""Commands that a line of output tells people to type next: they do as they stand."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from region_scheduler.cli.options import TENANT_DEFAULT

_NAME = "region-scheduler"


@dataclass(frozen=True, slots=True)
class Hints:
    """Builds them.

    Attributes:
        state_dir: As it was typed; None if it was not.
        tenant: As it was typed.
    """

    state_dir: Path | None = None
    tenant: str = TENANT_DEFAULT

    def command(self, *words: str) -> str:
        """Return a command on the same stack, quoted for a shell."""
        where = ["--state-dir", str(self.state_dir)] if self.state_dir is not None else []
        return shlex.join([*program(), *words, *where])

    def of_tenant(self, *words: str) -> str:
        """Return a command that looks a zone up by name, so that the tenant counts."""
        whose = ["--tenant", self.tenant] if self.tenant != TENANT_DEFAULT else []
        return self.command(*words, *whose)


def program() -> list[str]:
    """Return how this program was called, shortened where PATH leads to it."""
    called = Path(sys.argv[0])
    if called.parts[-2:] == ("region_scheduler", "__main__.py"):
        return [sys.executable, "-m", "region_scheduler"]
    found = shutil.which(_NAME)
    if called.name != _NAME or (found and os.path.realpath(found) == os.path.realpath(called)):
        return [_NAME]
    return [str(called)]
