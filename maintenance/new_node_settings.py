"""The settings of the gate of new nodes. Off by default, per pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from edges.transition_errors import LostRace
from fleet.models import ClusterMode, Pool
from maintenance.models import NewNodeGate
from maintenance.refusals import BadNewNodeGate, CaseRefused
from operations.pool_tests import has_image
from operations.test_jobs.allocated_gpus import REQUESTED_BY, why_never_testable
from operations.test_jobs.node_tests import NODE_TESTS, TEMPLATES
from people.models import AuditEntry
from wording.lists import names

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
MOST_WANTED, LONGEST_WANTED = 20, 320  # labels or taints; characters of one
GATE_TESTS = tuple(key for key in TEMPLATES if not NODE_TESTS[key].is_of_one_gpu)


@dataclass(frozen=True)
class GateSettings:
    is_on: bool
    test: str
    labels: Sequence[str] = ()
    taints: Sequence[str] = ()
    needs_person: bool = False


def settings_version(gate: NewNodeGate | None) -> str:
    """Returns the version of the settings that a person saw. A hold of a node does not change it."""
    return gate.changed_at.isoformat() if gate else "none"


def set_gate(
    pool: Pool, wanted: GateSettings, *, actor: str, reason: str, seen: str = "", now: datetime
) -> NewNodeGate:
    """Sets the gate of a pool. Nodes that joined before are not held, and held ones finish.

    `seen`: the version that the person saw; blank: not compared.

    :raises BadNewNodeGate: naming the field
    :raises CaseRefused: when the cluster may not be changed, or somebody changed the gate first
    """
    _check(pool, wanted)
    if wanted.is_on and pool.cluster.mode != ClusterMode.OPERATE:
        raise CaseRefused(f"Quarterdeck may not change {pool.cluster.name}: its mode is {pool.cluster.mode}.")
    nodes = pool.nodes.filter(is_gpu_node=True).only(*REQUESTED_BY)
    untestable = [why_never_testable(node) for node in nodes] if wanted.is_on else []
    if untestable and all(untestable):
        raise CaseRefused(f"No test has all GPUs of a node of pool {pool.name}. {untestable[0]} The gate stays off.")
    columns = {
        "test": wanted.test, "labels": list(wanted.labels), "taints": list(wanted.taints),
        "needs_person": wanted.needs_person, "changed_by": actor, "changed_at": now, "reason": reason,
    }  # fmt: skip
    with transaction.atomic():
        row, is_made = NewNodeGate.objects.get_or_create(pool=pool, defaults=columns)
        if seen and seen != settings_version(None if is_made else row):
            raise CaseRefused(f"{row.changed_by} changed the gate since you read it. Read it again.")
        was = {} if is_made else _as_audited(row)
        on_since = (row.on_since or now) if wanted.is_on else None
        try:
            row.change(**columns, on_since=on_since)
        except LostRace as lost:
            raise CaseRefused(f"{lost} Read it again.") from lost
        evidence = {"from": was, "to": _as_audited(row)}
        AuditEntry.record(row.mark, verb="new-node-gate.set", actor=actor, reason=reason, evidence=evidence, now=now)
    return row


def _as_audited(gate: NewNodeGate) -> dict[str, Any]:
    names_of_columns = ("test", "labels", "taints", "needs_person")
    return {"on": gate.on_since is not None} | {name: getattr(gate, name) for name in names_of_columns}


def _check(pool: Pool, wanted: GateSettings) -> None:
    """:raises BadNewNodeGate: naming the field"""
    if wanted.test not in GATE_TESTS:
        raise BadNewNodeGate("test", f"Choose one of {', '.join(GATE_TESTS)}.")
    test = NODE_TESTS[wanted.test]
    if wanted.is_on and not has_image(test.image, cluster_id=pool.cluster_id, pool_id=pool.pk):
        raise BadNewNodeGate(
            "test", f"{test.title} has no image. Set QUARTERDECK_TEST_IMAGES or the pool's images first."
        )
    for field, given in (("labels", wanted.labels), ("taints", wanted.taints)):
        if len(given) > MOST_WANTED or any(len(each) > LONGEST_WANTED for each in given):
            raise BadNewNodeGate(field, f"At most {MOST_WANTED}, each of at most {LONGEST_WANTED} characters.")
    for label in wanted.labels:
        if not label.partition("=")[0]:
            raise BadNewNodeGate("labels", "A label is key or key=value.")
    for taint in wanted.taints:
        key, _, effect = taint.rpartition(":")
        if not key.partition("=")[0] or effect not in EFFECTS:
            raise BadNewNodeGate("taints", f"A taint is key:Effect or key=value:Effect, with {names(EFFECTS)}.")
