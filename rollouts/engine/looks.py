"""The record of the evidence of gates: pods, validators and GPU samples of changed nodes, whenever they change.

The rows of pods and samples are of now. This record lets a gate be evaluated again on a past moment
(`rollouts/backtest`). It is written after the decision of a round, and no decision rests on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
from django.db import transaction

from edges.digests import digest
from edges.slices import slices
from fleet.retention import delete
from rollouts.engine.snapshot import StageSnapshot
from rollouts.gates.base import (
    Evidence,
    GpuTelemetry,
    OperandEvidence,
    PodEvidence,
    TargetEvidence,
    ValidatorEvidence,
)
from rollouts.lifecycle import TargetState
from rollouts.models import GateLook, Plan, Stage
from rollouts.models.gate_look import MOST

MOST_PODS = 64  # of one node
RUNS_WITHIN = timedelta(minutes=1)
# The clock of the cluster is estimated, and another explanation of a pod is no change.
JITTERS = frozenset({"started_at", "driver_started_at", "ready_since", "unready_since", "why"})
RecordedLook = TypeVar("RecordedLook", "RecordedNode", "RecordedStage")


@dataclass(frozen=True)
class RecordedNode:
    """The evidence of a changed node that no other record has."""

    operands: tuple[OperandEvidence, ...]
    workloads: tuple[PodEvidence, ...]
    validator: ValidatorEvidence | None
    driver_started_at: datetime | None
    traits: dict[str, str]
    is_held_by_others: bool
    telemetry: GpuTelemetry | None = None  # None: no gate asked, or the node has none


@dataclass(frozen=True)
class RecordedStage:
    """The evidence of a stage that no other record has."""

    workloads_ready_now: dict[str, int]
    workloads_waiting_for_room: dict[str, int]
    workloads_refused: dict[str, str]
    has_health: bool = False  # a gate asked for it
    has_source: bool = False
    trouble: str = ""
    rules_ran: bool = False  # within the last minute


NODE_LOOKS, STAGE_LOOKS = msgspec.json.Decoder(RecordedNode), msgspec.json.Decoder(RecordedStage)


def record_looks(plan: Plan, stages: Sequence[Stage], seen: Iterable[StageSnapshot], *, now: datetime) -> None:
    """Records what changed since the last look. One query, and one for each thousand changes."""
    keys = {stage.index: stage.pk for stage in stages}
    looks: dict[tuple[int, str], Any] = {}
    for stage in seen:
        changed = [target for target in stage.targets if target.state is TargetState.CHANGED and target.is_seen]
        if changed:
            looks[keys[stage.index], ""] = msgspec.to_builtins(_stage_seen(stage.evidence, now=now))
        looks |= {(keys[stage.index], target.uid): msgspec.to_builtins(_node_seen(target)) for target in changed}
    if not looks:
        return
    last = GateLook.newest({key for key, _ in looks})
    rows = []
    for (stage_id, uid), its in looks.items():
        before = last.get((stage_id, uid))
        number = before.number + 1 if before else 1
        compared = digest(_steady(its))
        if number <= MOST and (before is None or before.digest != compared):
            its = its if number < MOST else {}
            rows.append(GateLook(stage_id=stage_id, node_uid=uid, at=now, number=number, seen=its, digest=compared))
    for some in slices(rows):
        with transaction.atomic():
            plan.keep_lease(now=now)
            GateLook.objects.bulk_create(some.whole())


def tidy(*, now: datetime, **_: object) -> int:
    return delete(GateLook.expired(now=now))


def read_seen(row: GateLook, decoder: msgspec.json.Decoder[RecordedLook]) -> RecordedLook | None:
    """Returns the recorded evidence of gates; None: not recorded."""
    return decoder.decode(msgspec.json.encode(row.seen)) if row.seen else None


def _node_seen(target: TargetEvidence) -> RecordedNode:
    return RecordedNode(
        target.operands,
        target.workloads[:MOST_PODS],
        target.validator,
        target.driver_started_at,
        dict(target.traits),
        target.is_held_by_others,
        target.telemetry,
    )


def _stage_seen(evidence: Evidence, *, now: datetime) -> RecordedStage:
    health = evidence.health
    at = health.evaluated_at if health else None
    return RecordedStage(
        dict(evidence.workloads_ready_now),
        dict(evidence.workloads_waiting_for_room),
        dict(evidence.workloads_refused),
        has_health=health is not None,
        has_source=health is not None and health.has_source,
        trouble=health.trouble if health else "",
        rules_ran=at is not None and abs(now - at) <= RUNS_WITHIN,
    )


def _steady(seen: Any) -> Any:
    if isinstance(seen, Mapping):
        return {key: _steady(value) for key, value in seen.items() if key not in JITTERS}
    if isinstance(seen, list | tuple):
        return sorted(seen) if all(isinstance(one, str) for one in seen) else [_steady(one) for one in seen]
    return seen
