"""The `serve` process. Also a program of its own, so that it loads no command line."""

from __future__ import annotations

import sys
from contextlib import ExitStack

from region_scheduler.cli.edge import guarded, keep_private
from region_scheduler.config.load import Values, load
from region_scheduler.errors import Fenced, Misconfigured
from region_scheduler.runtime.logs import set_up_logging


def run(flags: Values) -> int:
    """Serve a region until told to end; return the exit code.

    Raises:
        Misconfigured: The settings do not do, or the port is taken.
        Unavailable: A store was not reached for a minute.
    """
    from region_scheduler.api.app import Health, build_api
    from region_scheduler.api.surface import HttpSurface, listen
    from region_scheduler.assembly.production import open_blobs
    from region_scheduler.assembly.serving import ROLES, serve_region
    from region_scheduler.runtime.service import Service

    keep_private()
    settings = load(flags).settings
    if not settings.region:
        raise Misconfigured(problems=["region is not set: name it with --region"])
    set_up_logging(level=settings.log_level, region=settings.region, role="serve")
    key = settings.signing_key_bytes()
    codes: list[int] = []
    with ExitStack() as closing:
        listening = closing.enter_context(listen(settings.http.host, settings.http.port))
        host, port = listening.getsockname()[:2]

        def on_fenced() -> None:
            codes.append(Fenced.exit_code)
            service.stop()

        serving = serve_region(settings, f"http://{host}:{port}", closing, on_fenced)
        keeper, clock = serving.keeper, serving.clock

        def health() -> Health:
            replica = serving.replica.age
            return Health(
                is_ok=keeper.may_act(),
                region=settings.region,
                instance=keeper.instance.id,
                roles=tuple(role.value for role in ROLES),
                lease_left_s=keeper.deadline - clock.monotonic(),
                replica_age_s=replica.seconds,
                is_replica_stale=replica.is_stale,
            )

        blobs = open_blobs(settings)
        app = build_api(settings.region, key, health, serving.wake, serving.views, blobs)
        surface = HttpSurface(app, listening)
        service = Service([*serving.parts, surface])
        service.run()
    return codes[0] if codes else 0


if __name__ == "__main__":
    sys.exit(guarded(lambda: run({})))
