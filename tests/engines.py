"""Graph servers for tests: the embedded engine in process and over HTTP, and a real ArangoDB.

All are reached through the one graph driver. The engine's faults are the same over both ways.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

from arango.client import ArangoClient
from arango.http import HTTPClient

from region_scheduler.drivers.arango.graph import ArangoGraph, Place, open_graph
from region_scheduler.drivers.arango.schema import INDEXES
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.faults import Fault, FaultKind
from region_scheduler.embedded.arango.in_process import InProcessHTTPClient
from tests.ties import tied

REGIONS: Final = ("eu", "us", "ap")
"""Regions of the engine; the leader of everything is in the first."""
REAL_URL_VARIABLE: Final = "REGION_SCHEDULER_ARANGO_URL"
REAL_USER_VARIABLE: Final = "REGION_SCHEDULER_ARANGO_USER"
REAL_PASSWORD_VARIABLE: Final = "REGION_SCHEDULER_ARANGO_PASSWORD"


class GraphServer(ABC):
    """Something that the graph driver can be pointed at."""

    tells_not_sent = False
    """Whether a request that a fault keeps from arriving is known not to have."""

    def __init__(self) -> None:
        self._opened: list[ArangoGraph] = []

    def open(
        self, region: str = REGIONS[0], database: str = "test", read_timeout_s: float = 5.0
    ) -> ArangoGraph:
        """Return the stores of a database, as reached from `region`; closed with the server."""
        place = Place(
            urls=(self._url(region),),
            database=database,
            user=self._user()[0],
            password=self._user()[1],
            read_timeout_s=read_timeout_s,
        )
        graph = open_graph(place, self._http_client(region, read_timeout_s))
        self._opened.append(graph)
        return graph

    def close(self) -> None:
        """Close what was opened."""
        for graph in self._opened:
            graph.close()

    def _user(self) -> tuple[str, str]:
        return "root", ""

    @abstractmethod
    def _url(self, region: str) -> str: ...

    def _http_client(self, region: str, read_timeout_s: float) -> HTTPClient | None:
        return None

    @abstractmethod
    def inject(self, kind: FaultKind, **more: Any) -> None:
        """Let requests meet a fault; see `embedded.arango.faults.Fault`."""

    @abstractmethod
    def change(self, region: str, **wishes: Any) -> None:
        """Set lag_s, rtt_s, is_frozen, is_cut, is_refusing or is_deposed of a region."""

    @abstractmethod
    def heal(self) -> None:
        """End all faults, cuts and lags."""


class EngineInProcess(GraphServer):
    """The engine without a socket."""

    tells_not_sent = True

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine(is_cluster=True, regions=REGIONS, seed=1)
        self._control = FaultControl(self.engine)

    def close(self) -> None:
        super().close()
        self.engine.close()

    def _url(self, region: str) -> str:
        return f"http://{region}"

    def _http_client(self, region: str, read_timeout_s: float) -> HTTPClient:
        return InProcessHTTPClient(self.engine, region, timeout_s=read_timeout_s)

    def inject(self, kind: FaultKind, **more: Any) -> None:
        self._control.inject(Fault(kind, **more))

    def change(self, region: str, **wishes: Any) -> None:
        acts: dict[str, Callable[[Any], object]] = {
            "lag_s": lambda lag_s: self._control.set_lag(region, lag_s),
            "rtt_s": lambda rtt_s: self._control.set_rtt(region, rtt_s),
            "is_frozen": lambda is_on: (self._control.freeze if is_on else self._control.thaw)(
                region
            ),
            "is_cut": lambda is_on: (
                self._control.cut(region, is_refusing=bool(wishes.get("is_refusing")))
                if is_on
                else self._control.heal(region)
            ),
            "is_deposed": lambda is_on: (
                self._control.depose if is_on else self._control.heal_leader
            )(region),
            "is_refusing": lambda is_on: None,
        }
        for wish, value in wishes.items():
            acts[wish](value)

    def heal(self) -> None:
        self._control.clear()
        for region in REGIONS:
            self.change(
                region, lag_s=0.0, rtt_s=0.0, is_frozen=False, is_cut=False, is_deposed=False
            )


class EngineOverHTTP(GraphServer):
    """The engine as a server process of its own, one port a region."""

    def __init__(self) -> None:
        super().__init__()
        self._process = subprocess.Popen(
            tied(
                [
                    *(sys.executable, "-m", "region_scheduler.embedded.arango"),
                    *("--ports", ",".join("0" for _ in REGIONS), "--regions", ",".join(REGIONS)),
                    *("--cluster-rules", "--fault-control", "--seed", "1"),
                ]
            ),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._urls: dict[str, str] = {}
        for _ in REGIONS:
            line = self._process.stdout.readline().split()
            assert line[:1] == ["ready"], f"the engine did not start: {line}"
            self._urls[line[2]] = f"http://{line[1]}"

    def close(self) -> None:
        super().close()
        self._process.terminate()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def url(self, region: str = REGIONS[0]) -> str:
        """Return where the coordinator of `region` listens."""
        return self._url(region)

    def _url(self, region: str) -> str:
        return self._urls[region]

    def inject(self, kind: FaultKind, **more: Any) -> None:
        self._ask("POST", "", {"kind": kind, **more})

    def change(self, region: str, **wishes: Any) -> None:
        self._ask("PATCH", f"/{region}", wishes)

    def heal(self) -> None:
        self._ask("DELETE", "/all", {})
        for region in REGIONS:
            self.change(region, lag_s=0, rtt_s=0, is_frozen=False, is_cut=False, is_deposed=False)

    def _ask(self, method: str, path: str, body: dict[str, Any]) -> None:
        request = urllib.request.Request(
            f"{self._url(REGIONS[0])}/_admin/faults{path}",
            json.dumps(body).encode(),
            {"content-type": "application/json", "authorization": "Basic cm9vdDo="},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()


class RealArangoDB(GraphServer):
    """The server that the environment names, as the product's own settings do.

    Its databases are thrown away in the end.
    """

    def __init__(self) -> None:
        super().__init__()
        self._mark = secrets.token_hex(4)
        self._databases: set[str] = set()

    def open(
        self, region: str = REGIONS[0], database: str = "test", read_timeout_s: float = 5.0
    ) -> ArangoGraph:
        name = f"rs_{self._mark}_{database}"
        self._databases.add(name)
        return super().open(region, name, read_timeout_s)

    def close(self) -> None:
        super().close()
        with closing(ArangoClient(self._url(REGIONS[0]))) as client:
            system = client.db("_system", *self._user())
            for name in self._databases:
                system.delete_database(name, ignore_missing=True)

    def _user(self) -> tuple[str, str]:
        user = os.environ.get(REAL_USER_VARIABLE, "root")
        return user, os.environ.get(REAL_PASSWORD_VARIABLE, "")

    def _url(self, region: str) -> str:
        return os.environ[REAL_URL_VARIABLE]

    def inject(self, kind: FaultKind, **more: Any) -> None:
        raise NotImplementedError("a real server has no switch for its faults")

    def change(self, region: str, **wishes: Any) -> None:
        raise NotImplementedError("a real server has no switch for its faults")

    def heal(self) -> None:
        """Do nothing: nothing was done."""


ENGINES: Final[dict[str, type[GraphServer]]] = {
    "in process": EngineInProcess,
    "over HTTP": EngineOverHTTP,
}


def servers() -> dict[str, type[GraphServer]]:
    """Return all kinds of server that there are here."""
    real: dict[str, type[GraphServer]] = {"real ArangoDB": RealArangoDB}
    return ENGINES | (real if REAL_URL_VARIABLE in os.environ else {})


@contextmanager
def serving(kind: str) -> Iterator[GraphServer]:
    """Run a server of the kind named."""
    server = servers()[kind]()
    try:
        yield server
    finally:
        server.close()


def empty(graph: ArangoGraph) -> None:
    """Remove all documents, but not the mark that says that the schema is there."""
    for name in INDEXES:
        if name != "schema":
            graph.db.collection(name).truncate()
