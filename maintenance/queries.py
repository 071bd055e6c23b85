"""The facts of cases, from rows of nodes, operations and findings."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import F, Max, Q
from django.utils import timezone

from fleet.models import ClusterMode, GoneNode, Node, Pool
from health.lifecycle import FindingState
from health.models import Finding
from health.rules.base import Severity
from maintenance.actors import ACTORS
from maintenance.actors.base import ActorPlace, RepairActor
from maintenance.chosen_steps import waits_until
from maintenance.fault_tests import choose_test, covers, needed_tests
from maintenance.lifecycle import (
    CaseFacts,
    CaseState,
    ChosenAfterRepair,
    NodeOperation,
    RepairFacts,
    RepairKind,
    TestFacts,
)
from maintenance.models import NodeCase, Repair, RepairKinds, RepairReceiver
from operations.external_owner import external_owner_of
from operations.kinds import CASE_ACTS, CASE_KINDS
from operations.lifecycle import NodeProgress
from operations.models import Disruption, NodeTestJob, OperationNode, Quarantine
from operations.models.operation import is_of_kinds
from operations.pool_tests import PoolTests, tests_of
from operations.steps import offers_on
from operations.test_jobs.allocated_gpus import device_request_of, why_not_testable_yet
from operations.test_jobs.device_requests import WITHOUT_MIG, TestedDevices
from operations.test_jobs.node_tests import NODE_TESTS, OF_DEVICES, OWN
from wording.instants import to_the_minute

QUARANTINE_COLUMNS = ("node_uid", "placed_at", "removed_at")
COLUMNS = (
    "uid", "name", "is_unschedulable", "is_ready", "boot_id", "booted_at", "layout", "allocatable", "expected",
    "slices_expected", "shares_expected", "physical_gpus", "annotations", "gpu_product", "gpu_allocatable",
    "gpu_expected",
)  # fmt: skip


def facts_of(cases: Sequence[NodeCase]) -> dict[int, CaseFacts]:
    """Returns the facts by case. Nine queries at most, whatever the number of cases; none for no cases."""
    if not cases:
        return {}
    uids = {case.node_uid for case in cases}
    nodes = {node.uid: node for node in Node.objects.filter(uid__in=uids).only(*COLUMNS)}
    offers = offers_on(list(nodes.values()), CASE_ACTS)
    gone = _removal_reasons(uids - set(nodes), cases)
    begun, newest = _operations(uids)
    quarantines = {row.node_uid: row for row in Quarantine.objects.of_nodes(uids).only(*QUARANTINE_COLUMNS)}
    findings = _findings(cases)
    faults = {case.pk: newest_fault(case, findings.get(case.node_uid, ())) for case in cases}
    tests = _tests(uids)
    open_or_chosen = Repair.objects.filter(Q(ended_at=None) | Q(then_test=True), case__in=cases).order_by("pk")
    newest_repairs = {row.case_id: row for row in open_or_chosen}
    repairs = {key: row for key, row in newest_repairs.items() if row.ended_at is None}
    return {
        case.pk: CaseFacts(
            state=CaseState(case.state),
            since=case.state_since,
            node_name=case.node_name,
            fault=(faults[case.pk] or {}).get("title", ""),
            fault_seen_at=(faults[case.pk] or {}).get("opened_at"),
            is_fault_open=any(
                each["pk"] == case.finding_id and each["resolved_at"] is None
                for each in findings.get(case.node_uid, ())
            ),
            gone=gone.get(case.node_uid, ""),
            is_seen=case.node_uid in nodes,
            is_unschedulable=case.node_uid in nodes and nodes[case.node_uid].is_unschedulable,
            offers=offers.get(case.node_uid, {}),
            is_ready=case.node_uid in nodes and nodes[case.node_uid].is_ready is True,
            lacks=why_not_testable_yet(nodes[case.node_uid]) if case.node_uid in nodes else "",
            boot_id=nodes[case.node_uid].boot_id if case.node_uid in nodes else "",
            booted_at=nodes[case.node_uid].booted_at if case.node_uid in nodes else None,
            fault_at=(faults[case.pk] or {}).get("opened_at") or case.fault_at,  # also before a round records it
            repaired_at=case.repaired_at,
            passed_at=case.passed_at,
            failed_at=_failed_at(case, tests.get(case.node_uid)),
            overridden_at=case.overridden_at,
            overridden_by=case.overridden_by,
            is_automatic=case.is_automatic,
            waits_for=case.waits_for,
            handed_over=_handed_over(case),
            repair=_repair(repairs.get(case.pk)),
            chosen=_chosen(case, newest_repairs.get(case.pk)),
            needs=_needs(case, _needed_by_gate(case, nodes.get(case.node_uid))),
            test=_new_test(case, tests.get(case.node_uid)),
            has_quarantine=case.node_uid in quarantines,
            is_quarantined=case.node_uid in quarantines and quarantines[case.node_uid].placed_at is not None,
            is_cordon_removed=case.node_uid in quarantines and quarantines[case.node_uid].removed_at is not None,
            begun=_operation_of_case(case, begun.get(case.node_uid)),
            newest=newest.get(case.node_uid),
        )
        for case in cases
    }


def _handed_over(case: NodeCase) -> str:
    """Returns why the automatic steps ended. Blank: they did not, a person has the case, or it moved since."""
    is_waiting = case.handed_over_at and not case.handed_over_to and case.state_since <= case.handed_over_at
    return case.handed_over_reason if is_waiting else ""


def _removal_reasons(uids: Collection[str], cases: Sequence[NodeCase]) -> dict[str, str]:
    """Returns why each node left. A node without a row that nobody saw leave is not among them."""
    left = set(GoneNode.objects.filter(uid__in=uids).values_list("uid", flat=True)) if uids else set()
    if not left:
        return {}
    those = [case for case in cases if case.node_uid in left]
    clusters, names = {case.cluster_id for case in those}, {case.node_name for case in those}
    remade = set(Node.objects.filter(cluster__in=clusters, name__in=names).values_list("cluster_id", "name"))
    new = " A new node has its name, and starts without a case."
    return {
        case.node_uid: f"{case.node_name} left the cluster.{new if (case.cluster_id, case.node_name) in remade else ''}"
        for case in those
    }


def _operations(uids: Collection[str]) -> tuple[dict[str, NodeOperation], dict[str, NodeOperation]]:
    """Returns the newest operation that has begun and moves cases, and the newest one or test, by node UID."""
    moving = is_of_kinds(*CASE_KINDS)
    has_begun = Q(step_since__isnull=False) & moving
    of_cases = moving | is_of_kinds("test")
    keys = OperationNode.objects.filter(of_cases, node_uid__in=uids).order_by().values("node_uid")
    last = list(keys.annotate(newest=Max("pk"), begun=Max("pk", filter=has_begun)))
    wanted = {key for row in last for key in (row["newest"], row["begun"]) if key}
    rows = OperationNode.objects.select_related("operation").in_bulk(wanted)
    return (
        {row["node_uid"]: _operation(rows[row["begun"]]) for row in last if row["begun"]},
        {row["node_uid"]: _operation(rows[row["newest"]]) for row in last},
    )


def _operation_of_case(case: NodeCase, begun: NodeOperation | None) -> NodeOperation | None:
    """Returns the operation. None for one that was asked before the case of a new node began."""
    is_older = case.is_new and begun is not None and begun.asked_at is not None and begun.asked_at < case.opened_at
    return None if is_older else begun


def _operation(row: OperationNode) -> NodeOperation:
    steps, operation = row.operation.steps, row.operation
    return NodeOperation(
        number=operation.pk,
        kind=operation.kind,
        progress=NodeProgress(row.state),
        is_evicting=row.step < len(steps) and steps[row.step] == "drain",
        actor=operation.asked_by,
        reason=operation.reason,
        result=row.reason or (operation.waits if operation.is_in_progress else ""),
        asked_at=operation.asked_at,
        serves=row.progress.get("serves") is True,
    )


def _tests(uids: Collection[str]) -> dict[str, NodeTestJob]:
    """Returns the newest test Job with a result by node UID."""
    rows = NodeTestJob.objects.filter(node_uid__in=uids, told_at__isnull=False, test__in=list(NODE_TESTS))
    rows = rows.order_by("told_at", "pk")
    return {row.node_uid: row for row in rows}


def _new_test(case: NodeCase, row: NodeTestJob | None) -> TestFacts | None:
    """Returns the test, unless it is older than the case or the case has its result."""
    if row is None or row.told_at is None or row.intended_at < case.opened_at:
        return None
    if case.tested_at and row.told_at <= case.tested_at:
        return None
    sentence = f"{row.says} {row.said}".strip()
    test = NODE_TESTS[row.test]
    key = test.key if test.is_run_by(row.command) else OWN
    why = why_no_validation(case, key) if row.outcome == "passed" else ""
    return TestFacts(row.operation_id, test.title, row.outcome, sentence, row.intended_at, row.told_at, why)


def _failed_at(case: NodeCase, row: NodeTestJob | None) -> datetime | None:
    """Returns when the last test failed, also before a round of the case has taken its result."""
    test = _new_test(case, row)
    return test.ended_at if test and test.outcome == "failed" else case.failed_at


def wanted_test(case: NodeCase) -> str:
    """Returns the key of the test that exercises the fault of the case."""
    return wanted_tests([case])[case.pk]


def wanted_tests(cases: Sequence[NodeCase]) -> dict[int, str]:
    """Returns the keys of the tests that exercise the faults, by case. Two queries."""
    nodes = {node.uid: node for node in Node.objects.filter(uid__in={case.node_uid for case in cases})}
    by_node = tests_of(list(nodes.values()))
    found = {}
    for case in cases:
        node = nodes.get(case.node_uid)
        its = by_node[node.pk] if node else PoolTests({})
        with_image = {test.key for test in NODE_TESTS.values() if its.image(test.image)}
        found[case.pk] = _needed_by_gate(case, node) or choose_test(*_fault_of(case), with_image=with_image)
    return found


def why_no_validation(case: NodeCase, test: str) -> str:
    """Returns why a pass of this test does not validate the node (lifecycle R33). Blank: it does.

    The tests that we know need NVIDIA GPUs: nodes of other vendors are validated by their own.
    """
    node = Node.objects.filter(uid=case.node_uid).first()
    needed, is_foreign = _needed_by_gate(case, node), node is not None and node.gpu_vendor not in ("", "nvidia")
    if test == needed or covers(test, *_fault_of(case)) or (test == OWN and is_foreign):
        return ""
    request = device_request_of(node) if node and not needed else None
    way_out = f" {WITHOUT_MIG}" if isinstance(request, TestedDevices) and request.has_mig else ""
    return f"This test does not exercise what failed. {_needs(case, needed)}{way_out}"


def _needed_by_gate(case: NodeCase, node: Node | None) -> str:
    """Returns the key of the test that a new node needs. Blank: another case.

    The test of a node with MIG devices runs on each of them: the test of the gate may need whole GPUs.
    """
    if not case.needed_test or node is None or NODE_TESTS[case.needed_test].is_of_devices:
        return case.needed_test
    request = device_request_of(node)
    return OF_DEVICES if isinstance(request, TestedDevices) and request.has_mig else case.needed_test


def _needs(case: NodeCase, needed: str) -> str:
    if needed:
        return f"The new node needs {NODE_TESTS[needed].title}."
    return f"Test at least with {' or '.join(NODE_TESTS[key].title for key in needed_tests(*_fault_of(case)))}."


def _fault_of(case: NodeCase) -> tuple[str, int | None]:
    """Returns the rule and the Xid of the fault. Blank and None: nobody named one."""
    return (case.finding.rule, case.finding.xid) if case.finding else ("", None)


def _findings(cases: Sequence[NodeCase]) -> Mapping[str, list[dict[str, Any]]]:
    """Returns findings by node UID that are critical, or of a rule that opened a case.

    These are the open ones, and the ones that opened since the first case and ended before a round saw them.
    """
    rules = {case.finding.rule for case in cases if case.finding}
    came_and_went = Finding.objects.notified().filter(
        state=FindingState.RESOLVED, opened_at__gt=min(case.opened_at for case in cases)
    )
    either = Finding.objects.open() | came_and_went
    rows = either.filter(node__uid__in={case.node_uid for case in cases}).order_by("opened_at")
    rows = rows.filter(Q(severity=Severity.CRITICAL) | Q(rule__in=rules))
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows.values("pk", "node__uid", "rule", "severity", "title", "opened_at", "resolved_at"):
        found.setdefault(row["node__uid"], []).append(dict(row))
    return found


def newest_fault(case: NodeCase, findings: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Returns the newest finding that is a fault later than the case's last one."""
    rule = case.finding.rule if case.finding else ""
    newer = [each for each in findings if each["opened_at"] > case.fault_at]
    newer = [each for each in newer if each["resolved_at"] is None or each["opened_at"] > case.opened_at]
    counted = [each for each in newer if each["severity"] == Severity.CRITICAL or each["rule"] == rule]
    return counted[-1] if counted else None


def _repair(row: Repair | None) -> RepairFacts | None:
    if row is None:
        return None
    actor = ACTORS[row.by]
    return RepairFacts(
        kind=RepairKind(row.kind),
        answer=row.answer,
        asked_by=row.asked_by,
        deadline=row.deadline,
        boot_id=row.boot_id,
        came_from=CaseState(row.came_from),
        is_overdue=row.deadline < timezone.now(),
        by=actor.title,
        waiting=actor.waiting,
        ends_at_deadline=actor.is_asked,
        says=row.says,
    )


def _chosen(case: NodeCase, row: Repair | None) -> ChosenAfterRepair | None:
    """Returns the steps chosen with the newest repair, while they are to come, or ended early in the present state."""
    if row is None or not row.then_test or case.state == CaseState.PROBATION:
        return None
    if row.then_ended_at is not None and (not row.then_says or row.then_ended_at < case.state_since):
        return None
    until = to_the_minute(waits_until(case.state_since, case.passed_at))
    return ChosenAfterRepair(row.asked_by, row.then_release, row.then_ended_at is not None, row.then_says, until)


def repair_scope(case: NodeCase) -> ActorPlace:
    """Returns the facts that decide who may be asked for a repair. Two queries."""
    kinds = RepairKinds.objects.filter(cluster=case.cluster_id).values_list("why_not", flat=True).first()
    return ActorPlace(
        is_operated=case.cluster.mode == ClusterMode.OPERATE,
        has_receiver=receiver_of(case) is not None,
        kinds=kinds or {},
    )


def pool_scope(pool: Pool) -> ActorPlace:
    """Returns the facts that decide who may be asked for repairs in a pool. Two queries."""
    kinds = RepairKinds.objects.filter(cluster=pool.cluster_id).values_list("why_not", flat=True).first()
    receivers = RepairReceiver.objects.filter(cluster=pool.cluster_id).filter(Q(pool=None) | Q(pool=pool))
    return ActorPlace(
        is_operated=pool.cluster.mode == ClusterMode.OPERATE, has_receiver=receivers.exists(), kinds=kinds or {}
    )


def receiver_of(case: NodeCase) -> RepairReceiver | None:
    """Returns the receiver of the node's pool, else the one of its cluster. One query."""
    pools = Pool.nodes.through.objects.filter(node__uid=case.node_uid).values("pool")
    rows = RepairReceiver.objects.filter(cluster=case.cluster_id).filter(Q(pool=None) | Q(pool__in=pools))
    return rows.order_by(F("pool").asc(nulls_last=True)).first()


def other_owner(node_uid: str, *, now: datetime) -> str:
    """Returns who else changes the node now. Blank: nobody. Four queries."""
    own = [row.operation.mark for row in Quarantine.objects.of_nodes([node_uid]).select_related("operation")]
    other = Disruption.objects.in_force().filter(node_uid=node_uid).exclude(taken_by__in=own).first()
    if other:
        return other.not_free
    node = Node.objects.filter(uid=node_uid).first()
    external = node and external_owner_of(node, now=now)
    return external.sentence if external else ""


def offers_of(case: NodeCase) -> list[tuple[RepairActor, str]]:
    """Returns each actor with the reason why it cannot be asked. Blank: it can. Two queries."""
    place = repair_scope(case)
    return [(actor, actor.why_not(place)) for actor in ACTORS.values()]


def why_no_release(node_uids: Collection[str]) -> dict[str, str]:
    """Returns why nodes may not be released, by node UID. One query when none has a case.

    A node that left its cluster is not kept: its release then ends.
    """
    left = GoneNode.objects.filter(uid__in=node_uids).values("uid")
    rows = NodeCase.objects.filter(node_uid__in=node_uids).exclude(node_uid__in=left)
    newest = {case.node_uid: case for case in rows.select_related("finding").order_by("pk")}
    facts = facts_of([case for case in newest.values() if case.is_open])
    reasons = {case.node_uid: _why_kept(case, facts.get(case.pk)) for case in newest.values()}
    return {uid: reason for uid, reason in reasons.items() if reason}


def _why_kept(case: NodeCase, facts: CaseFacts | None) -> str:
    """Returns why the newest case of a node keeps it out of service. Blank: it does not."""
    if case.state == CaseState.RETIRED:
        return f"{case.node_name} was retired by case {case.pk}. Open another case to bring it back."
    if facts is None or not facts.why_no_return:
        return ""
    where = f"{case.node_name} is in case {case.pk}"
    if facts.repair and facts.state == CaseState.IN_REPAIR:
        return f"{where}: {facts.why_no_return} Answer the repair first."
    return f"{where}: {facts.why_no_return} Record a validation there, or return it without one."
