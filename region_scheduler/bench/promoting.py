"""A region with one scheduler, ready tasks, and a stand-in for its workers."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from region_scheduler.assembly.environment import inherited
from region_scheduler.assembly.member import new_instance
from region_scheduler.assembly.production import open_graph, open_ports
from region_scheduler.assembly.services import Ports, lease_keeper, region_services
from region_scheduler.bench.engine import server
from region_scheduler.bench.engine_client import RawClient
from region_scheduler.commit.create import create
from region_scheduler.config.load import load
from region_scheduler.config.settings import Settings
from region_scheduler.domain.ids import RunId, task_id
from region_scheduler.domain.instance import Role
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.region import Region
from region_scheduler.domain.task import LockNeed, Task, TaskSpec
from region_scheduler.domain.transitions import Stamp, unlock
from region_scheduler.local import broker
from region_scheduler.local.addresses import HOST, free_ports
from region_scheduler.local.supervisor import Program, Supervisor
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.ports.queue import queue_name
from region_scheduler.resources.assign import slots_of
from region_scheduler.runtime.system import SystemClock, UuidIds, collect_seldom
from region_scheduler.scheduling.scheduler import Scheduler
from region_scheduler.scheduling.settings import SchedulerSettings

REGION: Final = "eu-west"
_POOL: Final = "default"
_PASSWORD: Final = "bench"  # noqa: S105 - of a server that lives for seconds, on loopback
_ROOM: Final = 1_000_000
_NAMES: Final = 2_000
_STOP_S: Final = 20.0
_END = """
FOR task IN tasks
  FILTER task.region == @region && task.state == "claimed"
  UPDATE task WITH { state: "done", holder: null } IN tasks
"""
_FREE = """
FOR slot IN slots
  FILTER slot.holder.task > null
  UPDATE slot WITH { holder: null } IN slots
"""


class RawBroker:
    """One connection to a Valkey, for what takes a word or two."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=30)
        self("AUTH", _PASSWORD)

    def __call__(self, *words: str) -> bytes:
        """Send a command and return the line that answers it."""
        parts = [f"*{len(words)}\r\n", *(f"${len(word)}\r\n{word}\r\n" for word in words)]
        self._socket.sendall("".join(parts).encode())
        answer = b""
        while not answer.endswith(b"\r\n"):
            answer += self._socket.recv(4096)
        return answer

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


@dataclass(slots=True)
class Yard:
    """The region, with room for a million attempts.

    Attributes:
        ports: What its scheduler reaches.
        round_trips: Counts what was sent to the graph store on its behalf.
        scheduler: Promotes as many at once as it was made for.
    """

    ports: Ports
    round_trips: Callable[[], int]
    scheduler: Scheduler
    keeper: LeaseKeeper
    engine: RawClient
    messages: RawBroker
    _numbers: Iterator[int]

    def fill(self, tasks: int, *, is_locking: bool) -> None:
        """Make so many tasks ready, each with a lock that others near it do not need, or none.

        Args:
            tasks: At most a thousand.
            is_locking: Whether they need locks, which are made as well.
        """
        run, stamp = RunId(UuidIds().new()), Stamp("bench", self.ports.clock.now())
        names = [f"t{number % _NAMES}" for number in islice(self._numbers, tasks)]
        values = [unlock(_task(run, name, is_locking), {}, stamp) for name in names]
        self.ports.graph.tasks.insert(values)
        slots_of(self.ports.graph.slots, [need for task in values for need in task.spec.locks])

    def work_off(self) -> None:
        """Do what workers would have done since the last call: all that was dispatched ends."""
        self.messages("DEL", queue_name(REGION, _POOL))
        self.end()
        self.keeper.renew()

    def end(self) -> None:
        """End the claimed tasks, and free their slots."""
        for query, parameters in ((_END, {"region": REGION}), (_FREE, {})):
            body = {"query": query, "bindVars": parameters}
            self.engine("POST", "/_db/region_scheduler/_api/cursor", body)


@contextmanager
def yard(batch_max: int) -> Iterator[Yard]:
    """Run an engine and a Valkey, and yield the region.

    Args:
        batch_max: Most tasks that its scheduler promotes in one tick.

    Raises:
        Misconfigured: There is no Valkey to be had.
    """
    collect_seldom()  # as a serving process does
    with TemporaryDirectory() as text, ExitStack() as closes:
        directory = Path(text)
        port, _ = closes.enter_context(server(directory / "engine"))
        broker_port = closes.enter_context(_valkey(directory / "broker"))
        settings = load(
            {
                "region": REGION,
                "signing_key": "0123456789abcdef",
                "arango": {"url": f"http://{HOST}:{port}"},
                "relational": {"url": f"sqlite:///{directory}/{REGION}.db"},
                "broker": {"url": f"redis://:{_PASSWORD}@{HOST}:{broker_port}/0"},
            }
        ).settings
        graph = open_graph(settings, closes)
        ports = replace(open_ports(settings, closes), graph=graph)
        keeper = _members(settings, ports)
        here = SchedulerSettings(REGION, batch_max=batch_max, in_flight_max=_ROOM)
        services = region_services(ports, here, LeaseTimings(), keeper)
        messages = closes.enter_context(closing(RawBroker(broker_port)))
        engine = closes.enter_context(closing(RawClient(port)))
        yield Yard(
            ports, lambda: graph.round_trips, services.scheduler, keeper, engine, messages, count()
        )


def _members(settings: Settings, ports: Ports) -> LeaseKeeper:
    """Put in place the region, a worker of it and its scheduler; return the lease of that."""
    create(ports.graph.regions, [Region(id=REGION)])
    capacity = {_POOL: _ROOM}
    clock, ids = ports.clock, ports.ids
    worker = new_instance(settings, "worker", [Role.WORKER], clock, ids, capacity=capacity)
    create(ports.graph.instances, [worker])
    scheduler = new_instance(settings, "serve", [Role.SCHEDULER], clock, ids)
    keeper = lease_keeper(ports, scheduler, LeaseTimings())
    keeper.register()
    return keeper


@contextmanager
def _valkey(directory: Path) -> Iterator[int]:
    (port,) = free_ports(1)
    config = broker.write_config(directory, port, _PASSWORD)
    program = Program(
        name="broker",
        argv=[broker.find_server(), str(config)],
        environ=inherited(),
        log_path=directory / "log",
        is_ready=lambda _pid: broker.answers(port, _PASSWORD),
    )
    supervisor = Supervisor([program], SystemClock(), lambda _: None)
    supervisor.start()
    try:
        yield port
    finally:
        supervisor.stop()
        supervisor.join(_STOP_S)


def _task(run: RunId, name: str, is_locking: bool) -> Task:
    spec = TaskSpec(
        name=name,
        runner="simulate",
        inputs={"duration_s": 1},
        region=REGION,
        allowed_regions=(REGION,),
        locks=(LockNeed(f"acme/{name}"),) if is_locking else (),
    )
    return Task(id=task_id(run, name), run=run, tenant="acme", spec=spec, needs=0, region=REGION)
