"""What a local stack is: its regions, addresses and secrets, as one state directory keeps them."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from region_scheduler.config.load import Values
from region_scheduler.config.relations import BROKERS
from region_scheduler.config.settings import Arango
from region_scheduler.domain.ids import QUEUE_NAME
from region_scheduler.domain.lease import LOCAL_TIMINGS
from region_scheduler.errors import Misconfigured
from region_scheduler.local.addresses import HOST, PORT_MAX, free_ports
from region_scheduler.local.entries import Damaged, Entry, read
from region_scheduler.ports.time import Ids

SCHEMA = 1
FILE = "stack.json"
SECRETS_FILE = "secrets.json"
REGIONS = ("eu-west", "us-east", "ap-south")
PORTS_PER_REGION = 3
_BROKER_URL = rf"(({'|'.join(BROKERS)})\S+)?"
_PID_MAX = 2**22


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionPorts:
    """Where one region's parts listen, all on loopback.

    Attributes:
        engine: 0 if the stack uses a graph store that is not ours.
        broker: 0 if `broker_url` names one that is not ours.
        broker_url: A broker that somebody else runs; empty for our own.
    """

    engine: int
    api: int
    broker: int
    broker_url: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A graph store that somebody else runs.

    Its password is not kept: every process and command finds it in the settings, as `up` did.
    """

    url: str
    user: str
    database: str
    is_embedded: bool

    def __str__(self) -> str:
        """Return where it is, for people."""
        return f"database {self.database} at {self.url}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What only the owner of the state directory may read."""

    signing_key: str = field(repr=False)
    broker_password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of the stack; with `started_at` (clock ticks since boot) an id is told apart."""

    pid: int
    started_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A stack as `stack.json` tells it.

    Attributes:
        regions: By name, in order; the first is where submissions belong unless they say.
        store: None if the stack runs an engine of its own.
        up: The process that runs it, None if it was stopped in order.
        processes: Those that run now, by part.
    """

    state_dir: Path
    regions: Mapping[str, RegionPorts]
    secrets: Secrets
    store: Store | None = None
    up: Process | None = None
    processes: Mapping[str, Process] = field(default_factory=dict)

    def directory(self, region: str) -> Path:
        """Return where the files of a region are."""
        return self.state_dir / "regions" / region

    @property
    def logs(self) -> Path:
        """Where every part's output goes."""
        return self.state_dir / "logs"

    def engine_url(self, region: str) -> str:
        """Return the address of our own engine as reached from a region."""
        return f"http://{HOST}:{self.regions[region].engine}"

    def api_url(self, region: str) -> str:
        """Return the address of a region's API."""
        return f"http://{HOST}:{self.regions[region].api}"

    def broker_url(self, region: str) -> str:
        """Return the address of a region's broker, with its password."""
        ports = self.regions[region]
        own = f"redis://:{self.secrets.broker_password}@{HOST}:{ports.broker}/0"
        return ports.broker_url or own

    def settings(self, region: str) -> Values:
        """Return the settings of a process of a region, with all secrets that are ours."""
        directory = self.directory(region)
        is_embedded = self.store is None or self.store.is_embedded
        return {
            "region": region,
            "regions": list(self.regions),
            "peers": {name: self.api_url(name) for name in self.regions},
            "signing_key": self.secrets.signing_key,
            "arango": self._arango(region),
            "relational": {"url": f"sqlite:///{directory / 'region.db'}"},
            "broker": {"url": self.broker_url(region)},
            "http": {"host": HOST, "port": self.regions[region].api},
            "paths": {
                "state_dir": str(directory / "state"),
                "work_dir": str(directory / "work"),
                "log_dir": str(directory / "logs"),
            },
            "lease": asdict(LOCAL_TIMINGS) if is_embedded else {},
        }

    def save(self) -> None:
        """Write the stack down: the secrets once, the rest in one step.

        Raises:
            Misconfigured: The directory cannot be written.
        """
        try:
            self.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (self.state_dir / SECRETS_FILE).exists():
                _write(self.state_dir / SECRETS_FILE, asdict(self.secrets))
            _write(self.state_dir / FILE, self._shown())
        except OSError as refused:
            raise Misconfigured(
                problems=[f"state directory {self.state_dir}: {refused.strerror}"]
            ) from refused

    def _arango(self, region: str) -> dict[str, Any]:
        if self.store is not None:
            return asdict(self.store)
        own = {"user": "root", "password": "", "is_embedded": True}
        return {"url": self.engine_url(region), **own}

    def _shown(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "store": asdict(self.store) if self.store else None,
            "regions": {name: asdict(ports) for name, ports in self.regions.items()},
            "up": asdict(self.up) if self.up else None,
            "processes": {name: asdict(process) for name, process in self.processes.items()},
        }


def new_stack(
    state_dir: Path,
    regions: Sequence[str],
    ids: Ids,
    port: int = 0,
    broker_url: str = "",
    store: Store | None = None,
) -> Stack:
    """Return a stack that was not there before; nothing is written.

    Args:
        state_dir: Where it will be kept.
        regions: In order, at least one.
        ids: Source of the secrets.
        port: First of its ports, in a row; 0 takes free ones.
        broker_url: A broker that somebody else runs, for every region; none of ours is run then.
        store: A graph store that somebody else runs; ours is not run then.
    """
    count = PORTS_PER_REGION * len(regions)
    ports = iter(range(port, port + count) if port else free_ports(count))
    engines = [0 if store else next(ports) for _ in regions]
    apis = [next(ports) for _ in regions]
    brokers = [0 if broker_url else next(ports) for _ in regions]
    return Stack(
        state_dir=state_dir,
        store=store,
        regions={
            region: RegionPorts(engine=engine, api=api, broker=broker, broker_url=broker_url)
            for region, engine, api, broker in zip(regions, engines, apis, brokers, strict=True)
        },
        # 62 bits of chance an id.
        secrets=Secrets(
            signing_key="".join(ids.new() for _ in range(3)),
            broker_password="".join(ids.new() for _ in range(2)),
        ),
    )


def store_of(arango: Arango) -> Store | None:
    """Return the graph store that settings name; None if they leave it to us."""
    if not arango.url:
        return None
    return Store(
        url=arango.url,
        user=arango.user,
        database=arango.database,
        is_embedded=arango.is_embedded,
    )


def load_stack(state_dir: Path) -> Stack | None:
    """Return the stack that a state directory keeps; None if there is none.

    Raises:
        Misconfigured: What is there is no stack, or cannot be read.
    """
    try:
        is_there = stat.S_ISREG((state_dir / FILE).stat().st_mode)
    except FileNotFoundError:
        return None
    except NotADirectoryError as refused:
        raise _damaged(state_dir, "it is no directory") from refused
    except (OSError, ValueError) as refused:
        raise _damaged(state_dir, getattr(refused, "strerror", "") or str(refused)) from refused
    if not is_there:
        raise _damaged(state_dir, f"{FILE} is no file")
    try:
        return _stack_from(
            state_dir, read(state_dir / FILE), read(state_dir / SECRETS_FILE, is_secret=True)
        )
    except Damaged as damage:
        raise _damaged(state_dir, str(damage)) from damage


def _stack_from(state_dir: Path, told: Entry, secret: Entry) -> Stack:
    version = told.items().get("schema", Entry(f"{told.place}.schema", None))
    version.whole(SCHEMA, SCHEMA)
    said = told.fields(["schema", "regions", "up", "processes"], ["store"])
    secrets = secret.fields(["signing_key", "broker_password"])
    store = (
        _store_from(said["store"]) if "store" in said and said["store"].value is not None else None
    )
    return Stack(
        state_dir=state_dir,
        regions=_regions_from(said["regions"], has_engine=store is None),
        secrets=Secrets(
            signing_key=secrets["signing_key"].text("[!-~]{16,}", "at least 16 letters or digits"),
            broker_password=secrets["broker_password"].text(r"[\w-]+", "letters and digits"),
        ),
        store=store,
        up=_process_from(said["up"]) if said["up"].value is not None else None,
        processes={name: _process_from(one) for name, one in said["processes"].items().items()},
    )


def _regions_from(entry: Entry, *, has_engine: bool) -> dict[str, RegionPorts]:
    regions: dict[str, RegionPorts] = {}
    taken: set[int] = set()
    for name, one in entry.items().items():
        if not re.fullmatch(QUEUE_NAME, name):
            raise Damaged(f"{one.place}: a region is named by small letters, digits and hyphens")
        at = one.fields(["engine", "api", "broker", "broker_url"])
        url = at["broker_url"].text(_BROKER_URL, f"{' or '.join(BROKERS)}, or nothing,")
        ports = RegionPorts(
            engine=_port(at["engine"], is_ours=has_engine, taken=taken),
            api=_port(at["api"], is_ours=True, taken=taken),
            broker=_port(at["broker"], is_ours=not url, taken=taken),
            broker_url=url,
        )
        regions[name] = ports
    if not regions:
        raise entry.refusal("at least one region")
    return regions


def _port(entry: Entry, *, is_ours: bool, taken: set[int]) -> int:
    port = entry.whole(1, PORT_MAX) if is_ours else entry.whole(0, 0)
    if port in taken:
        raise entry.refusal("a port that no other part has")
    taken |= {port} - {0}
    return port


def _store_from(entry: Entry) -> Store:
    said = entry.fields(["url", "user", "database", "is_embedded"])
    return Store(
        url=said["url"].text(r"https?://[^\s@]+", "http:// or https:// without a user"),
        user=said["user"].text(r".+", "a name"),
        database=said["database"].text(r".+", "a name"),
        is_embedded=said["is_embedded"].flag(),
    )


def _process_from(entry: Entry) -> Process:
    said = entry.fields(["pid", "started_at"])
    # Never 0 or 1: a signal to those would reach more than one process.
    return Process(
        pid=said["pid"].whole(2, _PID_MAX), started_at=said["started_at"].whole(0, 2**63)
    )


def _damaged(state_dir: Path, what: str) -> Misconfigured:
    way_out = "mend it, remove the directory, or name another with --state-dir"
    return Misconfigured(problems=[f"state directory {state_dir} is damaged: {what}; {way_out}"])


def _write(path: Path, value: Mapping[str, Any]) -> None:
    """Put a whole file in the place of the old one, readable by its owner only."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
