"""Picks the drivers that stand behind the ports; each process loads only those that it asks for."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from region_scheduler.config.settings import Settings
from region_scheduler.errors import Misconfigured, OutcomeUnknown, Unavailable
from region_scheduler.ports.consistency import Reads
from region_scheduler.ports.queue import WakeUps
from region_scheduler.runtime.lanes import side_by_side
from region_scheduler.runtime.system import SystemChance, SystemClock, UuidIds

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from region_scheduler.assembly.services import Ports
    from region_scheduler.drivers.arango.graph import ArangoGraph
    from region_scheduler.lifecycle.residence import Residence
    from region_scheduler.ports.blobs import Blobs

    T = TypeVar("T")


def patiently(call: Callable[[], T], patience_s: float) -> T:
    """Return what `call` returns, called again with growing pauses while nothing can be known.

    For what may be repeated: opening a store, inserting under an id of one's own.

    Raises:
        Unavailable, OutcomeUnknown: Still so after `patience_s` seconds.
    """
    retrying = Retrying(
        retry=retry_if_exception_type((Unavailable, OutcomeUnknown)),
        wait=wait_random_exponential(multiplier=0.05, max=1.0),
        stop=stop_after_delay(patience_s),
        reraise=True,
    )
    return retrying(call)


def open_graph(
    settings: Settings,
    closing: ExitStack,
    patience_s: float = 0.0,
    reads: Reads = Reads.AS_STATED,
    answer_s: float = 10.0,
) -> ArangoGraph:
    """Return the replicated graph store as reached from this process's region.

    Args:
        settings: Of this process.
        closing: Closes it.
        patience_s: How long to wait for a store that is not there yet, seconds.
        reads: Where its reads go.
        answer_s: Longest silence of the store within an answer, seconds.

    Raises:
        Misconfigured: No address is set, or the store refuses us.
        Unavailable: Not reached in time.
    """
    from region_scheduler.drivers.arango.graph import Place, open_graph

    arango = settings.arango
    if not arango.url:
        raise Misconfigured(problems=["arango.url is not set: name a graph store, or run `up`"])
    place = Place(
        urls=tuple(arango.url.split(",")),
        database=arango.database,
        user=arango.user,
        password=arango.password.get_secret_value(),
        read_timeout_s=answer_s,
    )
    graph = patiently(lambda: open_graph(place), patience_s)
    graph.read_all(reads)
    closing.callback(graph.close)
    return graph


def open_broker(settings: Settings, handle: Callable[[bytes], None] | None = None) -> Any:
    """Return the Celery app of this region's broker; nothing is connected yet.

    Args:
        settings: Of this process.
        handle: What a worker does with a message; None where messages are only published.

    Raises:
        Misconfigured: No address is set.
    """
    from region_scheduler.drivers.celery.app import build_app

    if not settings.broker.url:
        raise Misconfigured(problems=["broker.url is not set: name this region's broker"])
    timeout_s = settings.broker.visibility_timeout_s
    return build_app(settings.broker.url, visibility_timeout_s=timeout_s, handle=handle)


def open_wake_ups(settings: Settings, broker: Any, closing: ExitStack) -> WakeUps:
    """Return wake-ups of this region by its broker, and of the others by their APIs.

    Args:
        settings: Of this process.
        broker: From `open_broker`.
        closing: Sends what waits, and closes them.
    """
    from region_scheduler.drivers.celery.wakeups import BrokerWakeUps
    from region_scheduler.drivers.http.wakeups import CompositeWakeUps, HttpWakeUps

    others = {name: url for name, url in settings.peers.items() if name != settings.region}
    here = BrokerWakeUps(broker)
    elsewhere = HttpWakeUps(others, settings.signing_key_bytes())
    closing.callback(here.close)
    closing.callback(elsewhere.close)
    return CompositeWakeUps(settings.region, here, elsewhere)


def open_blobs(settings: Settings) -> Blobs:
    """Return this region's own storage of resident data."""
    from region_scheduler.drivers.files.blobs import DirectoryBlobs

    return DirectoryBlobs(settings.region, Path(settings.paths.state_dir).absolute() / "resident")


def open_residence(settings: Settings, closing: ExitStack) -> Residence:
    """Return this region's way to resident data: its own storage, and the other regions' APIs."""
    from region_scheduler.drivers.http.blobs import HttpBlobs
    from region_scheduler.lifecycle.residence import Residence

    region, key = settings.region, settings.signing_key_bytes()
    others = {name: url for name, url in settings.peers.items() if name != region}
    peers = {name: HttpBlobs(region, url, key) for name, url in others.items()}
    for peer in peers.values():
        closing.callback(peer.close)
    return Residence(region, open_blobs(settings), peers, UuidIds())


def open_ports(settings: Settings, closing: ExitStack, patience_s: float = 0.0) -> Ports:
    """Return everything that a scheduling or submitting process of a region reaches.

    Args:
        settings: Of this process.
        closing: Closes all of it.
        patience_s: How long to wait for stores that are not there yet, seconds.

    Raises:
        Misconfigured: An address is missing, or a store refuses us.
        Unavailable: A store was not reached in time.
    """
    from region_scheduler.assembly.relational import relational
    from region_scheduler.assembly.services import Ports
    from region_scheduler.drivers.celery.queue import CeleryQueue

    if not settings.region:
        raise Misconfigured(problems=["region is not set"])
    graph = open_graph(settings, closing, patience_s)
    store = closing.enter_context(relational(settings.relational_url, settings.scheduler.ownership))
    patiently(store.backlog.prepare, patience_s)
    broker = open_broker(settings)
    queue = CeleryQueue(broker, settings.region, settings.signing_key_bytes())
    closing.callback(queue.close)
    return Ports(
        graph=graph,
        backlog=store.backlog,
        metadata=store.metadata,
        queue=queue,
        wake_ups=open_wake_ups(settings, broker, closing),
        clock=SystemClock(),
        ids=UuidIds(),
        chance=SystemChance(),
        carry=side_by_side,
        residence=open_residence(settings, closing),
    )
