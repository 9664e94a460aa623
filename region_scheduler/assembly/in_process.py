"""Ports onto an engine in this process: for the simulation and for tests."""

from __future__ import annotations

from pathlib import Path

from region_scheduler.assembly.services import Ports
from region_scheduler.drivers.arango.graph import ArangoGraph, Place, open_graph
from region_scheduler.drivers.files.blobs import DirectoryBlobs
from region_scheduler.drivers.sql.backlog import SqlBacklog
from region_scheduler.drivers.sql.engine import open_engine
from region_scheduler.drivers.sql.metadata import SqlMetadata
from region_scheduler.drivers.sql.schema import prepare
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.in_process import InProcessHTTPClient
from region_scheduler.ports.blobs import Blobs
from region_scheduler.ports.queue import TaskQueue, WakeUps
from region_scheduler.ports.time import Chance, Clock, Ids


def in_process_graph(engine: Engine, region: str) -> ArangoGraph:
    """Return the graph store of `engine` as `region` reaches it."""
    return open_graph(Place(), InProcessHTTPClient(engine, region))


def directory_blobs(region: str, directory: Path) -> Blobs:
    """Return the storage of `region` for resident data, in `directory`."""
    return DirectoryBlobs(region, directory)


def in_process_ports(
    engine: Engine,
    region: str,
    directory: Path,
    queue: TaskQueue,
    wake_ups: WakeUps,
    clock: Clock,
    ids: Ids,
    chance: Chance,
) -> Ports:
    """Return the ports of one process of `region`; its relational store lies in `directory`."""
    relational = open_engine(f"sqlite:///{directory / region}.db")
    prepare(relational)
    return Ports(
        graph=in_process_graph(engine, region),
        backlog=SqlBacklog(relational),
        metadata=SqlMetadata(relational),
        queue=queue,
        wake_ups=wake_ups,
        clock=clock,
        ids=ids,
        chance=chance,
    )
