"""Everything that can be set, its default and its range. Durations in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from region_scheduler.domain.ids import QUEUE_NAME
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.limits import LIMITS, Limits
from region_scheduler.domain.ownership import Ownership
from region_scheduler.domain.region import REPLICA_AGE_MAX_S
from region_scheduler.domain.retention import RETENTION, Retention
from region_scheduler.errors import Misconfigured

SIGNING_KEY_BYTES_MIN: Final = 16
_NO_SECRET: Final = SecretStr("")


def _split(value: Any) -> Any:
    """Accept `a,b` where a list is expected."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _pairs(value: Any) -> Any:
    """Accept `a=x,b=y` where a table is expected."""
    if isinstance(value, str):
        parts = [part.partition("=") for part in _split(value)]
        return {name.strip(): rest.strip() for name, _, rest in parts}
    return value


Name = Annotated[str, Field(pattern=f"^{QUEUE_NAME}$")]
"""A region or pool: it becomes part of queue names and file names."""
Names = Annotated[tuple[Name, ...], BeforeValidator(_split)]
Peers = Annotated[dict[Name, str], BeforeValidator(_pairs)]
Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, slots=True)
class Arango:
    """The replicated graph store.

    Attributes:
        url: Base address; empty lets local commands start the embedded engine.
        is_embedded: Whether `url` is an embedded engine; short leases are allowed only there.
    """

    url: str = ""
    user: str = "root"
    password: SecretStr = _NO_SECRET
    database: str = "region_scheduler"
    is_embedded: bool = False


@dataclass(frozen=True, slots=True)
class Relational:
    """This region's relational store; `url` empty is an SQLite file in the state directory."""

    url: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Broker:
    """This region's broker.

    Attributes:
        visibility_timeout_s: A message unacknowledged for this long is delivered again; above the
            longest cap, or steps are delivered twice while they run.
    """

    url: str = field(default="", repr=False)
    visibility_timeout_s: Seconds = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class Http:
    """Where this process's API answers; port 0 takes a free one."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Promotion.

    Attributes:
        look_ahead: Tasks promoted beyond what live workers can take now, for each of their slots.
        in_flight_max: Claimed and running tasks of this region, at most.
        ownership: How several schedulers of a region share its work: by run, tenant or task (each
            promotes its part), leader (one promotes all) or none (overlap costs conflicts).
        replica_age_max_s: A local follower of the graph store whose view is older is not read from.
    """

    look_ahead: Annotated[int, Field(ge=0)] = 1
    in_flight_max: Count = 10_000
    ownership: Ownership = Ownership.RUN
    replica_age_max_s: Seconds = REPLICA_AGE_MAX_S


@dataclass(frozen=True, slots=True)
class Failover:
    """What happens to a region of which no process has a lease.

    Attributes:
        is_automatic: It is given up and its work moves where residency allows, and it returns by
            itself; else only operators do so.
    """

    is_automatic: bool = True


@dataclass(frozen=True, slots=True)
class Tenants:
    """What holds for tenants that have no document of their own.

    Attributes:
        level_default: Their subscription level.
    """

    level_default: Literal["trial", "standard", "premium"] = "standard"


@dataclass(frozen=True, slots=True)
class Worker:
    """What one worker process takes on.

    Attributes:
        pools: Queue pools that it is fed from.
        concurrency: Attempts at once.
        kind: Child processes, or threads of one process.
        cap_s_max: Longest time that any step may run.
        memory_mib_max: Of all processes of a step, MiB, unless its task says otherwise; 0 for no
            bound.
        log_mib_max: Output kept of one attempt, MiB; what is beyond it is left out, and said so.
    """

    pools: Names = ("default",)
    concurrency: Count = 4
    kind: Literal["prefork", "threads"] = "prefork"
    cap_s_max: Seconds = 4 * 3600.0
    memory_mib_max: Annotated[int, Field(ge=0)] = 4096
    log_mib_max: Count = 16


@dataclass(frozen=True, slots=True)
class Paths:
    """Directories of this process; relative ones count from where it was started."""

    state_dir: str = ".state"
    work_dir: str = ".state/work"
    log_dir: str = ".state/logs"


class Settings(BaseModel):
    """All settings of one process.

    Attributes:
        region: The region that this process belongs to; empty for commands that need none.
        regions: All regions of the cluster.
        peers: Base address of each region's API, for wake-ups.
        signing_key: Signs messages and wake-ups; the same in all regions.
        time_scale: Durations of simulated steps are multiplied by this; 0 means at once.
        log_level: Lowest level that is logged.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    region: Annotated[str, Field(pattern=f"^({QUEUE_NAME})?$")] = ""
    regions: Names = ()
    peers: Peers = {}
    signing_key: SecretStr = _NO_SECRET
    time_scale: Annotated[float, Field(ge=0)] = 1.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    arango: Arango = Arango()
    relational: Relational = Relational()
    broker: Broker = Broker()
    http: Http = Http()
    scheduler: Scheduler = Scheduler()
    failover: Failover = Failover()
    tenants: Tenants = Tenants()
    worker: Worker = Worker()
    limits: Limits = LIMITS
    paths: Paths = Paths()
    lease: LeaseTimings = LeaseTimings()
    retention: Retention = RETENTION

    @property
    def relational_url(self) -> str:
        """Address of this region's relational store, with the default filled in."""
        return self.relational.url or f"sqlite:///{self.paths.state_dir}/{self.region}.db"

    def signing_key_bytes(self) -> bytes:
        """Return the key with which messages and wake-ups are signed.

        Raises:
            Misconfigured: There is none, or it is too short.
        """
        key = self.signing_key.get_secret_value().encode()
        if len(key) < SIGNING_KEY_BYTES_MIN:
            raise Misconfigured(
                problems=[f"signing_key must have at least {SIGNING_KEY_BYTES_MIN} bytes"]
            )
        return key
