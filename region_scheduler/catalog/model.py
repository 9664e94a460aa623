"""What the catalogue's files say, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from region_scheduler.catalog.parameters import Parameter
from region_scheduler.domain.task import Json, WhenHolderLost


class StepKind(StrEnum):
    """The nature of a step; decides its runner."""

    TERRAFORM = "terraform"
    API_ASYNC = "api-async"
    VERIFY = "verify"
    CHECK = "check"
    SCAN = "scan"
    GUARDRAIL = "guardrail"
    APPROVAL = "approval"
    EXTERNAL_WAIT = "external-wait"
    TASK = "task"
    EVIDENCE = "evidence"


class LockScope(StrEnum):
    """Who shares a lock."""

    ORGANISATION = "organisation"
    TENANT = "tenant"
    ZONE = "zone"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockDefinition:
    """One entry of the lock catalogue.

    Attributes:
        capacity: Holders at once; 1 is an exclusive lock.
        reason: Why the cloud takes no more.
    """

    key: str
    scope: LockScope
    capacity: int
    when_holder_lost: WhenHolderLost
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDefinition:
    """One step as its subgraph defines it.

    Attributes:
        after: Ids of steps, and placeholders, that come before it.
        p50_min: Median duration, minutes.
        p90_min: Duration that nine of ten stay below, minutes.
        locks: Keys of the lock catalogue, `{region}` not yet replaced.
        module: Stand-in terraform module; of terraform steps only.
        program: Stand-in program of `steps/`; of commands and polls only.
        assertions: What a check asserts besides the delivery of its predecessors.
        controls: Pointers into the framework.
        source: Where order or duration come from; empty for an estimate.
    """

    id: str
    purpose: str
    kind: StepKind
    after: tuple[str, ...] = ()
    p50_min: float
    p90_min: float
    is_per_region: bool = False
    is_irreversible: bool = False
    needs_approval: bool = False
    locks: tuple[str, ...] = ()
    module: str = ""
    program: str = ""
    assertions: tuple[Mapping[str, Json], ...] = ()
    controls: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgraph:
    """Steps that belong together and are shared by zone types; an overlay has the same form."""

    id: str
    purpose: str
    steps: tuple[StepDefinition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """What a placeholder means on one cloud.

    Attributes:
        gate: The step that `@cloudgate` stands for.
        backup: The step that `@backup` stands for.
        region_pattern: Regular expression of the cloud's own region names.
        region_example: One of them.
        foundation: Subgraphs that one organisation needs only once.
    """

    id: str
    name: str
    gate: str
    backup: str
    region_pattern: str
    region_example: str
    foundation: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """What a framework's owner asks for, in short.

    Attributes:
        evidence: The step that `@evidence` stands for.
        residency: Where data may be, in words.
        retention: How long evidence is kept, in words.
    """

    id: str
    name: str
    version: str
    evidence: str
    residency: str
    retention: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneType:
    """A versioned template.

    Attributes:
        subgraphs: Ids, in order.
        overlays: Ids of the overlays that a zone of this type may add.
        parameters: What it asks for, with its own defaults, in order.
    """

    id: str
    version: str
    cloud: str
    framework: str
    subgraphs: tuple[str, ...]
    overlays: tuple[str, ...]
    parameters: tuple[Parameter, ...]
