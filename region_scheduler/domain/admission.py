"""Admissions: the promise "accepted", kept whatever dies (docs/protocol.md section 6)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from region_scheduler.domain.grant import RunGrant
from region_scheduler.domain.ids import Incarnation, RunId, digest_of
from region_scheduler.domain.run import Run, RunMode
from region_scheduler.domain.states import RunState
from region_scheduler.domain.task import SCHEMA, TaskSpec
from region_scheduler.errors import Fenced, KeyReused, LostRace


class AdmissionState(StrEnum):
    """How far an admission has come.

    `VOID` is none yet: whoever tried to make it was lost, and its grant was given to others. What
    it may still send finds the document there; the next who asks with the key takes its place.
    """

    ACCEPTED = "accepted"
    DONE = "done"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    VOID = "void"


NEVER_PUBLISHED: Final = frozenset({AdmissionState.REFUSED, AdmissionState.CANCELLED})
"""Its run document stands, but nothing of the run may ever start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An expanded and checked graph, ready to be admitted.

    Attributes:
        tasks: Specs in the order given.
        edges: (before, after) names, each pair once.
        deadline_s: How long a round of the run may take, seconds; None if as long as it likes.
    """

    name: str
    tenant: str
    zone: str = ""
    zone_type: str = ""
    catalog_version: str = ""
    mode: RunMode = RunMode.APPLY
    home_region: str
    regions: tuple[str, ...]
    tasks: tuple[TaskSpec, ...]
    edges: tuple[tuple[str, str], ...]
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What every epoch needs to write the same documents.

    Attributes:
        id: Key; see `admission_key`.
        key: The idempotency key as given.
        body_digest: Of the request as it came, not of what it was expanded to: the same request is
            the same run though the catalogue has changed. Another one under the key is refused.
        epoch: Rises with every take-over; writes of an old epoch change nothing.
        cause: What made the request, if no person did: `schedule NAME@INSTANT`.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    tenant: str
    key: str
    body_digest: str
    run: RunId
    plan: Plan
    trace: str = ""
    instance: Incarnation
    epoch: int = 1
    state: AdmissionState = AdmissionState.ACCEPTED
    created_at: datetime
    cause: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSummary:
    """An admission without its graph, which may be big; attributes as there.

    Attributes:
        name: Of its run.
        task_count: Nodes of its graph.
        edge_count: Dependencies of its graph.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    tenant: str
    key: str
    body_digest: str
    run: RunId
    name: str
    home_region: str
    task_count: int
    edge_count: int
    trace: str = ""
    instance: Incarnation
    epoch: int = 1
    state: AdmissionState = AdmissionState.ACCEPTED
    created_at: datetime
    reason: str = ""


def admission_key(namespace: str, tenant: str, key: str) -> str:
    """Return the document key: uniqueness of the idempotency key lives in it."""
    return digest_of(namespace, tenant, key)


def body_digest(body: bytes, *asked: str) -> str:
    """Return the digest of a request: of its body as it came, and of what was asked for besides."""
    return digest_of(hashlib.blake2b(body, digest_size=16).hexdigest(), *asked)


def same_or_refused(existing: Admission, body_digest: str) -> Admission:
    """Return the earlier admission of the same request.

    Raises:
        KeyReused: The key came with another body.
    """
    if existing.body_digest != body_digest:
        raise KeyReused(key=existing.key, run_id=existing.run)
    return existing


def run_of(admission: Admission, state: RunState = RunState.RUNNING, reason: str = "") -> Run:
    """Return the run of an admission as it is published, or refused, as every epoch writes it."""
    plan = admission.plan
    return Run(
        id=admission.run,
        tenant=admission.tenant,
        name=plan.name,
        zone=plan.zone,
        zone_type=plan.zone_type,
        mode=plan.mode,
        home_region=plan.home_region,
        regions=plan.regions,
        state=state,
        task_count=len(plan.tasks),
        edge_count=len(plan.edges),
        digest=admission.body_digest,
        trace=admission.trace,
        deadline_s=plan.deadline_s,
        cause=admission.cause,
        created_at=admission.created_at,
        reason=reason,
    )


def tombstone_of(admission: Admission, reason: str, at: datetime) -> Run:
    """Return the run of an admission that is cancelled before anybody published it.

    It stands where the published one would, so that whoever carries the admission out, however
    late, finds it there and starts nothing.
    """
    run = run_of(admission, RunState.CANCELLED, reason)
    return replace(run, task_count=0, edge_count=0, ended_at=at)


def end_of(run: Run) -> AdmissionState:
    """Return how the admission ends whose run document now stands."""
    if run.is_tombstone:
        return AdmissionState.CANCELLED
    return AdmissionState.REFUSED if run.state is RunState.REFUSED else AdmissionState.DONE


def finished(
    admission: Admission, epoch: int, state: AdmissionState, reason: str = ""
) -> Admission:
    """Close the admission, by the epoch that did the work.

    Raises:
        Fenced: Another epoch took over.
    """
    if admission.state is state:
        return admission
    if admission.epoch != epoch:
        raise Fenced(held=f"epoch {epoch}", current=f"epoch {admission.epoch}")
    return replace(admission, state=state, reason=reason)


def withdrawn(admission: Admission, reason: str) -> Admission:
    """Close an admission whose run was cancelled before it was published, whatever its epoch."""
    if admission.state is not AdmissionState.ACCEPTED:
        return admission
    return replace(admission, state=AdmissionState.CANCELLED, reason=reason)


def void_of(grant: RunGrant, tenant: str, at: datetime) -> Admission:
    """Return what keeps the place of an admission that was granted, so that it cannot come late."""
    nothing = Plan(name="", tenant=tenant, home_region="", regions=(), tasks=(), edges=())
    return Admission(
        id=grant.admission,
        tenant=tenant,
        key="",
        body_digest="",
        run=grant.run,
        plan=nothing,
        instance=grant.instance,
        state=AdmissionState.VOID,
        created_at=at,
        reason="its submitter was lost before it was accepted",
    )


def voided_again(admission: Admission) -> Admission:
    """Move a void admission, so that a write that is on its way to it comes too late."""
    if admission.state is not AdmissionState.VOID:
        return admission
    return replace(admission, epoch=admission.epoch + 1)


def in_place_of(void: Admission, known: Admission, wanted: Admission) -> Admission:
    """Return an admission in the place of a void one; another that stands there by now stays.

    Args:
        void: As it is now.
        known: As it was before `wanted` was granted.
        wanted: Granted after that.

    Raises:
        LostRace: It was moved since: the grant was revoked.
    """
    if void.state is not AdmissionState.VOID:
        return void
    if void.rev != known.rev:
        raise LostRace(thing=f"admission {void.id}", winner="who revoked its grant")
    return replace(wanted, rev=void.rev, epoch=void.epoch + 1)


def taken_over(admission: Admission, by: Incarnation) -> Admission:
    """Hand an unfinished admission to a live instance, one epoch higher."""
    if admission.state is not AdmissionState.ACCEPTED:
        return admission
    return replace(admission, instance=by, epoch=admission.epoch + 1)
