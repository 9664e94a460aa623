"""From the command line to settings, and to the stores that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from region_scheduler.cli import close_on_interrupt
from region_scheduler.cli.hints import Hints
from region_scheduler.cli.output import print_line
from region_scheduler.errors import InvalidInput, Misconfigured, Unavailable

if TYPE_CHECKING:
    from region_scheduler.admission.capacities import CapacityOf
    from region_scheduler.assembly.operator import Operator
    from region_scheduler.config.load import Values
    from region_scheduler.config.settings import Settings
    from region_scheduler.local.stack import Stack


@contextmanager
def session(state_dir: Path | None = None, region: str | None = None) -> Iterator[Operator]:
    """Yield an operator with the stores that the settings name, or else with the local stack's.

    Raises:
        Misconfigured: There is neither, or the state directory is damaged.
        InvalidInput: The local stack has no such region.
    """
    from region_scheduler.assembly.operator import Operator
    from region_scheduler.runtime.logs import set_up_logging

    set_up_logging(level="error")
    close_on_interrupt()
    with ExitStack() as closing:
        yield Operator(settings_for(state_dir, region), closing)


def capacities_where_running(state_dir: Path | None) -> CapacityOf:
    """Return what tells the units of resources, where a stack answers; else none are known.

    For what needs no stack: it is told on standard error that they were not looked up.
    """

    def ask(names: Sequence[str]) -> Mapping[str, int]:
        from region_scheduler.assembly.operator import Operator
        from region_scheduler.runtime.logs import set_up_logging

        set_up_logging(level="error")
        try:
            with ExitStack() as closing:
                opened = Operator(settings_for(state_dir, None), closing, patience_s=0.0)
                return opened.graph.slots.capacities(names)
        except (Misconfigured, Unavailable):
            told = "no stack answers: resources are taken to be as the graph says"
            print_line(told, is_aside=True)
            return {}

    return ask


def region_names(state_dir: Path | None) -> list[str]:
    """Return the regions that a submission would find, without asking a store.

    They are those of the settings, else those of the local stack, else those that `up` would make.
    """
    from region_scheduler.config.load import load
    from region_scheduler.local.stack import REGIONS, load_stack

    settings = load().settings
    if settings.regions and state_dir is None:
        return list(settings.regions)
    stack = load_stack((state_dir or Path(settings.paths.state_dir)).absolute())
    return list(stack.regions if stack is not None else REGIONS)


def settings_for(state_dir: Path | None, region: str | None) -> Settings:
    """Return the settings that `flags_for` leads to.

    Raises:
        Misconfigured: No store is named and there is no local stack.
        InvalidInput: The local stack has no such region.
    """
    from region_scheduler.config.load import load

    return load(flags_for(state_dir, region)).settings


def flags_for(state_dir: Path | None, region: str | None, more: Values | None = None) -> Values:
    """Return what comes before all other settings: what was typed, and the local stack's.

    Args:
        state_dir: Where the local stack is; by default the setting says. A stack counts if this is
            given, if no graph store is named elsewhere, or if it uses the one that is.
        region: By default the setting says, else it is the stack's first.
        more: Typed as well; values that are None were not.

    Raises:
        Misconfigured: No store is named and there is no local stack.
        InvalidInput: The local stack has no such region.
    """
    from region_scheduler.config.load import load

    typed = {**(more or {}), "region": region}
    settings = load(typed).settings
    stack, is_used = _stack_of(state_dir, settings)
    if not is_used:
        return typed
    if stack is None:
        way_out = f"start one with `{Hints(state_dir).command('up')}`, or set arango.url"
        directory = _directory(state_dir, settings)
        raise Misconfigured(problems=[f"there is no stack in {directory}: {way_out}"])
    name = settings.region or next(iter(stack.regions))
    if name not in stack.regions:
        expected = f"the stack in {stack.state_dir} has {', '.join(stack.regions)}"
        raise InvalidInput(field="--region", value=name, expected=expected)
    return _merged(stack.settings(name), {**typed, "region": name})


def used_stack(state_dir: Path | None) -> Stack | None:
    """Return the local stack that a command with these options acts on; None if on another store.

    Raises:
        Misconfigured: The state directory is damaged.
    """
    from region_scheduler.config.load import load

    stack, is_used = _stack_of(state_dir, load().settings)
    return stack if is_used else None


def _stack_of(state_dir: Path | None, settings: Settings) -> tuple[Stack | None, bool]:
    """Return the stack that the directory keeps, if any, and whether the settings lead to it."""
    from region_scheduler.local.stack import load_stack, store_of

    stack = load_stack(_directory(state_dir, settings))
    store = store_of(settings.arango)
    is_elsewhere = store and state_dir is None and (stack is None or stack.store != store)
    return stack, not is_elsewhere


def _directory(state_dir: Path | None, settings: Settings) -> Path:
    return (state_dir or Path(settings.paths.state_dir)).absolute()


def _merged(below: Values, above: Values) -> dict[str, Any]:
    """Return `below` with what `above` says on top, tables key by key; None says nothing."""
    merged = dict(below)
    for name, value in above.items():
        if isinstance(value, Mapping):
            merged[name] = _merged(merged.get(name) or {}, value)
        elif value is not None:
            merged[name] = value
    return merged
