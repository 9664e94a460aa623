"""The tree of commands. The modules that hold them import nothing heavy before they run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import typer
from typer.exceptions import Abort, Exit, TyperException

from region_scheduler.cli import (
    INTERRUPTED,
    admissions,
    bench,
    calendars,
    collecting,
    explaining,
    importing,
    inspect,
    pausing,
    processes,
    regions,
    resources,
    runs,
    schedules,
    simulating,
    stores,
    submit,
    tasks,
    tenants,
    verifying,
    zones,
)
from region_scheduler.cli.edge import guarded
from region_scheduler.errors import InvalidInput

PROGRAM = "region-scheduler"
_GROUPS = (
    ("zones", zones.app),
    ("runs", runs.app),
    ("tasks", tasks.app),
    ("admissions", admissions.app),
    ("schedules", schedules.app),
    ("calendars", calendars.app),
    ("regions", regions.app),
    ("resources", resources.app),
    ("tenants", tenants.app),
    ("audit", tenants.audit_app),
    ("bench", bench.app),
)


def build() -> typer.Typer:
    """Return the whole tree."""
    app = typer.Typer(
        name=PROGRAM,
        help="Provisions landing zones as dependency graphs over several regions.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    for name, group in _GROUPS:
        app.add_typer(group, name=name)
    app.add_typer(inspect.config_app, name="config")
    app.command("import")(importing.import_)
    for command in (
        processes.demo,
        processes.up,
        processes.serve,
        processes.worker,
        submit.submit,
        runs.watch,
        runs.resume,
        explaining.explain,
        pausing.pause,
        pausing.unpause,
        pausing.step,
        inspect.doctor,
        verifying.verify,
        simulating.simulate,
        stores.rebuild_backlog,
        collecting.gc,
    ):
        app.command()(command)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    return guarded(lambda: _run(arguments), as_json="--json" in arguments)


def _run(arguments: Sequence[str]) -> int:
    _refuse_blank(arguments)
    command = typer.main.get_command(build())
    try:
        code = command.main(list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except Exit as ended:
        code = ended.exit_code
    except Abort:
        code = INTERRUPTED
    except TyperException as refused:
        if refused.format_message().startswith("Usage:"):  # a group without a command asks for help
            typer.echo(refused.format_message())
            return 0
        raise _bad_usage(refused, arguments) from refused
    if code == INTERRUPTED:  # what typer makes of it; no command returns that itself
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _refuse_blank(arguments: Sequence[str]) -> None:
    """Go on unless something was typed that holds nothing: it must not mean `as if not typed`.

    Raises:
        InvalidInput: Names the option that it follows, if any.
    """
    for before, argument in pairwise(["", *arguments]):
        name, equals, value = argument.partition("=")
        is_option = name.startswith("--")
        if not (value if is_option and equals else argument).strip():
            field = name if is_option else before if before.startswith("-") else "command line"
            expected = "give it a value, or leave it out"
            raise InvalidInput(field=field, value=value if equals else argument, expected=expected)


def _bad_usage(refused: TyperException, arguments: Sequence[str]) -> InvalidInput:
    return InvalidInput(
        field="command line",
        value=" ".join(arguments),
        expected=f"{refused.format_message()} (see --help)",
    )
