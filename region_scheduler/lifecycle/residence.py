"""Keep resident data in the regions that it may lie in, and have it where it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from region_scheduler.domain.admission import Plan
from region_scheduler.domain.residence import (
    MARK,
    blob_of,
    is_reference,
    key_of,
    reference_to,
    residence_problems,
    value_in,
    without_resident,
)
from region_scheduler.domain.task import Exit, Json, Task, TaskSpec
from region_scheduler.errors import InvalidGraph, RegionSchedulerError, Unavailable
from region_scheduler.ports.blobs import Blobs
from region_scheduler.ports.time import Ids


class Residence:
    """One region's way to resident data.

    What is sealed here lies in this region's own storage, and in that of the other regions that it
    may lie in as far as they answer: so one of them can go on when this one is lost. What is not
    here is asked of them.

    Args:
        region: The region.
        own: Its own storage.
        peers: That of the others, by name, through their APIs.
        ids: For salts.
    """

    def __init__(self, region: str, own: Blobs, peers: Mapping[str, Blobs], ids: Ids) -> None:
        self._region = region
        self._own = own
        self._peers = peers
        self._ids = ids

    def check(self, plan: Plan) -> None:
        """Go on if all resident data of a plan can stay where it has to.

        Raises:
            InvalidGraph: It cannot; every problem. Nothing was kept.
        """
        problems = list(residence_problems(plan, self._region))
        if problems:
            raise InvalidGraph(problems=problems)

    def sealed_plan(self, plan: Plan) -> Plan:
        """Return a plan with references in the place of its resident inputs, which are kept.

        Raises:
            Unavailable, OutcomeUnknown: Not all were kept; call again.
        """
        if not any(spec.is_resident for spec in plan.tasks):
            return plan
        silent: set[str] = set()
        return replace(plan, tasks=tuple(self._sealed_spec(spec, silent) for spec in plan.tasks))

    def sealed_exit(self, task: Task, ended: Exit) -> Exit:
        """Return the end of an attempt as it may be written down; its outputs are kept.

        Raises:
            Unavailable, OutcomeUnknown: They were not kept; call again.
        """
        if not task.spec.is_resident:
            return ended
        outputs = self.seal(ended.outputs, task.spec.allowed_regions) if ended.outputs else {}
        return without_resident(ended, outputs, self._region)

    def seal(
        self, value: Json, regions: Sequence[str], silent: set[str] | None = None
    ) -> dict[str, Json]:
        """Keep a value here and in the other `regions`, and return what stands for it.

        Args:
            value: JSON.
            regions: Where it may lie.
            silent: Regions that did not answer a moment ago; they are left out, and added to.

        Raises:
            Unavailable, OutcomeUnknown: It was not kept here; call again.
        """
        blob = blob_of(value, regions, self._ids.new())
        self._own.put(key_of(blob), blob)
        left_out = set() if silent is None else silent
        for region in sorted(set(regions) - {self._region} - left_out):
            if region in self._peers and not self._copy(self._peers[region], blob):
                left_out.add(region)
        return reference_to(blob)

    def opened(self, value: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return what a mapping stands for: itself if it is no reference, or not for this region.

        Raises:
            Unavailable: No region that has it answers.
        """
        if not is_reference(value) or self._region not in value["regions"]:
            return value
        key = str(value[MARK])
        blob = self._own.get(key)
        if blob is None:
            blob = self._fetched(key, [str(name) for name in value["regions"]])
        opened: Mapping[str, Json] = value_in(blob)
        return opened

    def _sealed_spec(self, spec: TaskSpec, silent: set[str]) -> TaskSpec:
        if not spec.is_resident or not spec.inputs or is_reference(spec.inputs):
            return spec
        return replace(spec, inputs=self.seal(spec.inputs, spec.allowed_regions, silent))

    def _copy(self, peer: Blobs, blob: bytes) -> bool:
        """Put a copy there; what is not there is asked for when it is needed."""
        try:
            peer.put(key_of(blob), blob)
        except RegionSchedulerError:
            return False
        return True

    def _fetched(self, key: str, regions: Sequence[str]) -> bytes:
        for region in regions:
            peer = self._peers.get(region)
            try:
                blob = peer.get(key) if peer is not None else None
            except Unavailable:
                continue
            if blob is not None and key_of(blob) == key:
                self._own.put(key, blob)
                return blob
        detail = f"blob {key} is in none that answers of {', '.join(regions)}"
        raise Unavailable(dependency="resident store", detail=detail)
