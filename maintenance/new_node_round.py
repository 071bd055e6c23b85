"""Holds new nodes with a cordon until their checklist, labels and test workload are in order (L1, L2).

It starts the operations that people start. Each node is held once, before its first pod. Any doubt hands it to a
person.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import structlog
from django.db import IntegrityError, transaction

from edges.transition_errors import LostRace
from fleet.models import Cluster, Node
from maintenance.gate_steps import GateChoice, GateFacts, GateStep, choose_gate_step
from maintenance.lifecycle import CaseFacts, CaseState
from maintenance.models import NewNodeGate, NodeCase
from maintenance.models.case import LONGEST_REASON
from maintenance.new_nodes import ACTOR, facts_of_gate, joined_nodes, tenants_of, why_gate_waits, why_not_free
from maintenance.queries import facts_of, wanted_test
from maintenance.refusals import CaseRefused
from operations import commands as operations
from operations.impact import vetoes_of
from operations.kinds import KINDS
from operations.lifecycle import NEW_NODE
from operations.refusals import BadOperation, OperationRefused

log = structlog.get_logger()
MOST_A_ROUND = 100  # nodes that are held, and cases that go on; the next round takes the others
REASON = "The node is new. Pods start there after its checklist and a test."
REFUSALS = (CaseRefused, OperationRefused, BadOperation)


def run_new_nodes(*, now: datetime) -> None:
    """Holds nodes that joined, and takes the next step of those that are held. Two queries without a gate."""
    for gate in NewNodeGate.objects.exclude(on_since=None).select_related("pool__cluster").order_by("pk"):
        with suppress(LostRace):  # a person changed the gate; the next round reads it again
            _hold_joined(gate, now=now)
    rows = NodeCase.objects.open().filter(is_new=True, automatic_at__isnull=False, handed_over_at=None)
    by_cluster: dict[Cluster, list[NodeCase]] = defaultdict(list)
    for case in rows.select_related("cluster", "finding").order_by("?")[:MOST_A_ROUND]:
        by_cluster[case.cluster].append(case)
    for cluster, cases in by_cluster.items():
        if why := why_gate_waits(cluster, now=now):
            _wait(cases, why)
        else:
            _go_on(cases, now=now)


def _hold_joined(gate: NewNodeGate, *, now: datetime) -> None:
    """:raises LostRace: when somebody changed the gate"""
    cluster = gate.pool.cluster
    nodes = list(joined_nodes(gate, now=now).order_by("pk")[:MOST_A_ROUND])
    if not nodes or why_gate_waits(cluster, now=now):
        return
    serving, not_free = tenants_of(nodes), why_not_free(nodes, now=now)
    free = [node for node in nodes if node.name not in serving and node.uid not in not_free]
    vetoed = vetoes_of(free, KINDS["quarantine"].steps)
    others = [node for node in free if node.uid not in vetoed]
    if len(others) < len(free):
        _hold(gate, [node for node in free if node.uid in vetoed][:1], now=now)  # stores its refusal
    if others and not _hold(gate, others, now=now) and len(others) > 1:
        for node in others:  # one of them is refused
            _hold(gate, [node], now=now)


def _hold(gate: NewNodeGate, nodes: Sequence[Node], *, now: datetime) -> bool:
    """Opens the cases of new nodes and cordons them by one operation. All of it or nothing; returns whether it did.

    The refusal of a single node is stored.

    :raises LostRace: when somebody changed the gate
    """
    columns: dict[str, Any] = {"is_new": True, "gate": gate, "needed_test": gate.test, "automatic_at": now}
    epoch = gate.epoch
    try:
        with transaction.atomic():
            gate.change()
            cases = [
                NodeCase.objects.create(
                    cluster_id=node.cluster_id, node_uid=node.uid, node_name=node.name, state=CaseState.PROVISIONED,
                    state_since=now, state_reason=REASON, moved_by=ACTOR, opened_at=now, opened_by=ACTOR, reason=REASON,
                    fault_at=now, **columns,
                )
                for node in nodes
            ]  # fmt: skip
            for case in cases:
                evidence = {"pool": gate.pool_id, "test": gate.test, "node": case.node_name}
                case.record("opened", actor=ACTOR, reason=REASON, now=now, evidence=evidence)
            operations.start(
                gate.pool.cluster, "quarantine", nodes, actor=ACTOR, reason=REASON, typed_count=len(nodes), now=now,
                options={NEW_NODE: True, "failures_accepted": len(nodes)},  # nodes that serve already fail
                key=f"new-node-{cases[0].pk}-quarantine-{int(now.timestamp())}",
            )  # fmt: skip
    except (IntegrityError, *REFUSALS) as refusal:  # a person has a case of it, or an operation may not start
        gate.refresh_from_db()
        if gate.epoch != epoch:
            raise LostRace("The gate of the pool was changed at the same time.") from refusal
        if len(nodes) > 1:
            return False
        name = nodes[0].name
        log.info("a new node is not held", node=name, reason=str(refusal))
        why = "A case of the node was opened at the same time." if isinstance(refusal, IntegrityError) else str(refusal)
        gate.change(refused_at=now, refused_node=name, refusal=why[:LONGEST_REASON])
        return False
    return True


def _wait(cases: Sequence[NodeCase], why: str) -> None:
    for case in cases:
        if case.waits_for != why:
            with suppress(LostRace):  # a person moved it
                case.write(waits_for=why)


def _go_on(cases: Sequence[NodeCase], *, now: datetime) -> None:
    facts, gate_facts = facts_of(cases), facts_of_gate(cases, now=now)
    for case in cases:
        its = gate_facts.get(case.pk, GateFacts("The node is not seen in its cluster.", "", (), 0, needs_person=False))
        choice = choose_gate_step(facts[case.pk], its)
        try:
            _carry_out(case, facts[case.pk], choice, now=now)
        except LostRace as lost:
            log.info("a step of a new node did not start", case=case.pk, reason=str(lost))
        except REFUSALS as refusal:
            fresh = NodeCase.objects.get(pk=case.pk)
            with suppress(LostRace):
                fresh.hand_over("", actor=ACTOR, reason=f"The {choice.step} was refused. {refusal}", now=now)


def _carry_out(case: NodeCase, facts: CaseFacts, choice: GateChoice, *, now: datetime) -> None:
    """:raises LostRace: when a person changed the case
    :raises CaseRefused: BadOperation or OperationRefused: when the operation may not start
    """
    waits_for = choice.reason if choice.step is GateStep.WAIT else ""
    if case.waits_for != waits_for and not facts.is_busy:
        case.write(waits_for=waits_for[:1000])
    match choice.step:
        case GateStep.WAIT:
            return
        case GateStep.HAND_OVER:
            case.hand_over("", actor=ACTOR, reason=choice.reason, now=now)
            return
        case GateStep.MOVE if choice.to is not None:
            case.move(choice.to, actor=ACTOR, reason=choice.reason, now=now)
            return
        case GateStep.CLOSE:
            case.move(CaseState.CLOSED, actor=ACTOR, reason=choice.reason, now=now)
            return
    node = Node.objects.filter(cluster=case.cluster, uid=case.node_uid).first()
    if node is None:
        raise LostRace("The node is not seen in its cluster.")
    with transaction.atomic():
        same = NodeCase.objects.filter(pk=case.pk, state=case.state, automatic_at=case.automatic_at)
        untested = {"overridden_at": now, "overridden_by": ACTOR, "override_reason": choice.reason}
        columns = {"automatic_at": now} | (untested if choice.step is GateStep.RELEASE_UNTESTED else {})
        if not same.filter(handed_over_at=None).update(**columns):
            raise LostRace("The case moved, or a person took it over.")
        case.record(f"gate-{choice.step}", actor=ACTOR, reason=choice.reason, now=now)
        kind = "test" if choice.step is GateStep.TEST else "release"
        _start(case, node, kind, reason=choice.reason, now=now)


def _start(case: NodeCase, node: Node, kind: str, *, reason: str = REASON, now: datetime) -> None:
    """:raises BadOperation: or OperationRefused: when it may not start"""
    options: dict[str, Any] = {"test": wanted_test(case)} if kind == "test" else {}
    operations.start(
        case.cluster, kind, [node], actor=ACTOR, reason=reason, options=options | {NEW_NODE: True}, now=now,
        key=f"new-node-{case.pk}-{kind}-{int(now.timestamp())}",
    )  # fmt: skip
