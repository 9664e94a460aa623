"""`config show` and `doctor`: is everything as it should be?"""

from __future__ import annotations

import typer

from region_scheduler.cli.options import Json, Region, StateDir
from region_scheduler.cli.output import Output

config_app = typer.Typer(help="Settings.", no_args_is_help=True)


@config_app.command(name="show")
def show_config(as_json: Json = False) -> None:
    """Print every setting, its value and where that came from; secrets are hidden."""
    from region_scheduler.config.load import load, show

    rows = [
        {"setting": key, "value": value, "source": source} for key, value, source in show(load())
    ]
    Output(as_json).items(rows, ["setting", "value", "source"], "there are no settings")


@config_app.callback()
def config() -> None:
    """Settings: defaults < region-scheduler.toml < REGION_SCHEDULER_… < flags."""


def doctor(state_dir: StateDir = None, region: Region = None, as_json: Json = False) -> int:
    """Look at graph store, regions, broker, terraform, leases and disk; 1 if anything is wrong."""
    from region_scheduler.assembly.doctor import examine
    from region_scheduler.cli.session import settings_for
    from region_scheduler.runtime.logs import set_up_logging

    set_up_logging(level="error")
    marks = {True: "ok", False: "BAD", None: "-"}
    found = list(examine(settings_for(state_dir, region)))
    is_well = all(one.is_ok is not False for one in found)
    rows = [{"subject": one.subject, "ok": one.is_ok, "detail": one.detail} for one in found]
    Output(as_json).result(
        {"items": rows, "ok": is_well},
        lambda: [f"{marks[one.is_ok]:<4} {one.subject:<17} {one.detail}" for one in found],
    )
    return 0 if is_well else 1
