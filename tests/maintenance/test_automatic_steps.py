"""Automatic drains and repairs with rows: their switches, guards, audit, and how a person takes a case over (L3)."""

from datetime import timedelta
from typing import Any

import pytest

from edges.transition_errors import LostRace
from fleet.models import Node, Pool
from maintenance import automatic, commands, step_round
from maintenance.automatic_cases import automatic_case, set_switches, would_do
from maintenance.automatic_round import run_automatic_quarantine
from maintenance.case_round import follow_cases
from maintenance.findings import WAITING
from maintenance.lifecycle import CaseState
from maintenance.models import AutomaticDecision, AutomaticQuarantine, NodeCase, RepairKinds
from maintenance.queries import facts_of
from maintenance.refusals import CaseRefused
from maintenance.step_choice import DRAINED_AFTER
from maintenance.step_round import _carry_out, run_automatic_steps
from maintenance.trials import DecisionAcceptance, acceptance_of
from maintenance.triggers import VERSION, BreakerState, Mode
from operations import commands as operations
from operations.models import Freeze, NodeTestJob, Operation, OperationNode, Quarantine
from people.models import AuditEntry
from tests.callers import calling
from tests.maintenance.test_automatic import LONG_AGO, a_pool_in, acting_with, strike
from tests.make import NOON, a_finding, a_pod, a_user
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
LATER = NOON + DRAINED_AFTER + timedelta(minutes=1)
ON = {"drain_since": LONG_AGO, "drain_by": "root", "repair_since": LONG_AGO, "repair_by": "root"}
ON |= {"repair_through": "nvsentinel-reboot"}


def a_pool_with_switches(**given: Any) -> Pool:
    pool = a_pool_in(Mode.ACT, **ON | given)
    RepairKinds.objects.create(cluster=pool.cluster, why_not={"RebootNode": ""}, looked_at=NOON)
    return pool


def end(kind: str, *, now=LATER) -> None:
    """The newest operation ends well, as its worker would record it."""
    operation = Operation.objects.order_by("-pk").first()
    assert operation is not None
    assert operation.kind == kind
    position = len(operation.steps) - 1
    OperationNode.objects.filter(operation=operation).update(state="done", step=position, step_since=now)
    Operation.objects.filter(pk=operation.pk).update(state="finished")
    Node.objects.filter(uid__in=operation.nodes.values("node_uid")).update(is_unschedulable=kind != "release")
    follow_cases(now=now)


def a_quarantined_case(pool: Pool) -> NodeCase:
    """One that automatic quarantine opened, whose cordon was read back."""
    strike(pool, 3)
    run_automatic_quarantine(now=NOON)
    operation = Operation.objects.get()
    Quarantine.objects.create(
        operation=operation, cluster=pool.cluster, node_uid=operation.nodes.get().node_uid, node_name="gpu-3",
        wanted_since=NOON, placed_at=NOON,
    )  # fmt: skip
    end("quarantine", now=NOON)
    return NodeCase.objects.get(state=CaseState.QUARANTINED)


def kinds() -> list[str]:
    return [operation.kind for operation in Operation.objects.order_by("pk")]


def see(pool: Pool, at) -> None:
    pool.cluster.bookmarks.update(last_seen_at=at, listed_at=at)


def step(pool: Pool, at=LATER) -> NodeCase:
    see(pool, at)
    run_automatic_steps(now=at)
    return NodeCase.objects.get()


def mend(case: NodeCase, *, boot_id: str) -> None:
    Node.objects.filter(uid=case.node_uid).update(boot_id=boot_id, booted_at=LATER)
    case.cluster.findings.update(state="resolved", resolved_at=LATER)


def passes(case: NodeCase, *, at) -> None:
    operation = Operation.objects.order_by("-pk")[0]
    NodeTestJob.objects.create(
        operation=operation, node_uid=case.node_uid, node_name=case.node_name, test="dcgm-3", command="dcgmi diag -r 3",
        outcome="passed", namespace="x", image="x", resource="nvidia.com/gpu", amount=8, deadline_s=3600,
        says="Passed.", intended_at=at, told_at=at, gone_at=at,
    )  # fmt: skip
    end("test", now=at)


def test_a_case_is_drained_repaired_tested_and_returned_with_its_rule_and_switch():
    pool = a_pool_with_switches()
    Node.objects.update(boot_id="first")
    case = a_quarantined_case(pool)
    step(pool, NOON + timedelta(minutes=5))
    assert kinds() == ["quarantine"], "a common cause shows first"
    step(pool)
    assert kinds() == ["quarantine", "drain"]
    assert Operation.objects.get(steps=["cordon", "drain"]).options == {"deadline_s": 1800}, "no consent to lose data"
    end("drain")
    case = step(pool)
    repair = case.repairs.get()
    assert (case.state, repair.by, repair.kind, repair.asked_by) == (
        "in-repair", "nvsentinel-reboot", "reboot", automatic.ACTOR,
    )  # fmt: skip
    mend(case, boot_id="second")
    follow_cases(now=LATER + timedelta(minutes=9))
    at = LATER + timedelta(minutes=10)
    case = step(pool, at)
    assert (case.state, kinds()[-1]) == ("validating", "test")
    remap = a_finding(
        pool.cluster, node=Node.objects.get(name="gpu-3"), rule="gpu-row-remap", title="A remap is pending."
    )
    passes(case, at=at + timedelta(minutes=1))
    step(pool, at + timedelta(minutes=2))
    assert kinds()[-1] == "test", "lifecycle section 9: no return without a look at the remap, or with a lower count"
    remap.delete()
    step(pool, at + timedelta(minutes=2))
    assert kinds()[-1] == "release"
    entry = case.moves.get(verb="case.automatic-drain")
    assert entry.reason.startswith("GPU lost. The fault is still there. Switched on by root, 2026-")
    assert (entry.evidence["rule"], entry.evidence["switch"]["by"]) == ("gpu-lost", "root")
    made = case.moves.filter(verb__startswith="case.automatic-").order_by("number").values_list("verb", flat=True)
    assert list(made) == [f"case.automatic-{name}" for name in ("drain", "repair", "test", "release")]


def test_without_the_switches_nothing_follows_the_cordon():
    pool = a_pool_with_switches(**dict.fromkeys(("drain_since", "repair_since"), None))
    a_quarantined_case(pool)
    step(pool)

    assert kinds() == ["quarantine"]


def test_a_drain_that_waits_for_another_controller_ends_with_the_fault():
    """A remediator reboots the node meanwhile: the drain would end pods for a fault that is over (lifecycle R18)."""
    pool = a_pool_with_switches()
    a_quarantined_case(pool)
    step(pool)
    held = "Held by another: Self Node Remediation reboots the node."
    OperationNode.objects.filter(state="pending").update(reason=held)
    assert step(pool).is_automatic, "the wait ends by itself, and a finding tells of it"

    case = NodeCase.objects.get()
    mend(case, boot_id="second")
    case = step(pool)
    assert case.handed_over_reason.startswith("The finding is resolved, and the drain has not begun.")
    drain = OperationNode.objects.get(operation__steps=["cordon", "drain"])
    assert (drain.state, drain.operation.state) == ("cancelled", "cancelled")


def test_a_drain_that_begins_at_that_moment_is_not_cancelled():
    pool = a_pool_with_switches()
    case = a_quarantined_case(pool)
    step(pool)
    mend(case, boot_id="second")
    facts = facts_of([case])[case.pk]
    its = automatic_case(case, facts, now=LATER)
    OperationNode.objects.filter(state="pending").update(state="running")
    with pytest.raises(LostRace):
        _carry_out(its, now=LATER)
    assert NodeCase.objects.get().is_automatic
    assert Operation.objects.get(steps=["cordon", "drain"]).state == "running"


def test_a_drain_that_begins_after_the_look_at_it_is_not_cancelled(monkeypatch: pytest.MonkeyPatch):
    """Its worker evicts pods already."""
    pool = a_pool_with_switches()
    a_quarantined_case(pool)
    step(pool)
    mend(NodeCase.objects.get(), boot_id="second")
    cancel = operations.cancel

    def begin_first(operation: Operation, **given: Any) -> None:
        OperationNode.objects.filter(state="pending").update(state="running")
        cancel(operation, **given)

    monkeypatch.setattr(step_round.operations, "cancel", begin_first)
    case = step(pool)
    assert case.is_automatic
    drain = OperationNode.objects.get(operation__steps=["cordon", "drain"])
    assert (drain.state, drain.operation.state) == ("pending", "running"), "rolled back, with what this test wrote"


def test_the_drain_alone_ends_with_a_person():
    pool = a_pool_with_switches(repair_since=None, repair_through="")
    a_quarantined_case(pool)
    step(pool)
    end("drain")
    case = step(pool)

    assert (case.handed_over_to, case.repairs.count()) == ("", 0)
    ((_, problem),) = WAITING.say(pool.cluster, now=LATER)
    assert problem.summary == "The node is drained. Repairs are not automatic in its pool."


def test_a_cause_that_shows_on_other_nodes_of_the_cluster_hands_the_case_over():
    pool = a_pool_with_switches()
    a_quarantined_case(pool)
    Pool.nodes.through.objects.filter(node__name__in=["gpu-4", "gpu-5"]).delete()  # nothing is decided about them
    strike(pool, 4, 5, opened_at=NOON + timedelta(minutes=3))
    case = step(pool)

    why = "3 nodes have the same cause within 10 min: gpu-3, gpu-4, gpu-5. Look for what they share."
    assert (kinds(), case.handed_over_reason) == (["quarantine"], why)


def test_a_node_that_left_the_pool_is_handed_over():
    pool = a_pool_with_switches()
    a_quarantined_case(pool)
    Pool.nodes.through.objects.filter(node__name="gpu-3").delete()
    case = step(pool)

    assert (kinds(), case.handed_over_reason) == (["quarantine"], "The node left pool h200.")


def _waits(case: NodeCase) -> None:  # its node is not seen
    decision = AutomaticDecision.objects.get()
    AutomaticDecision.objects.create(
        automatic=decision.automatic, at=NOON, node_uid="another", node_name="another", trigger="gpu-lost",
        verdict="acted", reason="x", case=case,
    )  # fmt: skip


def _is_back(case: NodeCase) -> None:
    NodeCase.objects.filter(pk=case.pk).update(state=CaseState.PROBATION)


@pytest.mark.parametrize("keep", [_waits, _is_back])
def test_an_earlier_case_that_waits_does_not_keep_a_later_one_from_its_step(keep, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(step_round, "MOST_A_ROUND", 1)
    pool = a_pool_with_switches()
    later = a_quarantined_case(pool)
    given = {field.attname: getattr(later, field.attname) for field in NodeCase._meta.fields if field.name != "id"}
    keep(NodeCase.objects.create(pk=later.pk - 1, **given | {"node_uid": "another", "finding_id": None}))
    see(pool, LATER)

    for _ in range(40):
        run_automatic_steps(now=LATER)

    assert kinds() == ["quarantine", "drain"]


def _is_frozen(pool: Pool) -> None:
    Freeze.objects.create(cluster=pool.cluster, by="ada", at=LATER, reason="x")


def _is_stopped(pool: Pool) -> None:
    Freeze.objects.create(is_stop=True, binds_rollbacks=True, by="ada", at=LATER, reason="x")


@pytest.mark.parametrize(
    "hinder",
    [
        _is_frozen,
        _is_stopped,
        lambda _: Node.objects.filter(name="gpu-3").update(labels={"dgxc.nvidia.com/nvsentinel-state": "remediating"}),
    ],
)
def test_a_stop_a_freeze_and_another_owner_only_delay(hinder):
    pool = a_pool_with_switches()
    a_quarantined_case(pool)
    hinder(pool)
    case = step(pool)

    assert (kinds(), case.handed_over_at) == (["quarantine"], None)


def test_a_delay_of_hours_is_a_finding():
    pool = a_pool_with_switches()
    a_quarantined_case(pool)
    _is_frozen(pool)
    step(pool)

    assert list(WAITING.say(pool.cluster, now=LATER)) == []
    ((_, problem),) = WAITING.say(pool.cluster, now=LATER + timedelta(hours=4))
    assert problem.summary == "The node is out of service without a next step for more than 4 h."


def test_a_cluster_that_is_not_seen_delays():
    pool = a_pool_with_switches()
    a_quarantined_case(pool)
    run_automatic_steps(now=LATER)

    assert (kinds(), NodeCase.objects.get().handed_over_at) == (["quarantine"], None)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"drain_since": None}, "Automatic steps of the pool were switched off."),
        ({"mode": Mode.SUGGEST}, "Automatic steps of the pool were switched off."),
        ({"drain_since": NOON + timedelta(minutes=1)}, "They were switched on after the case began."),
        ({"breaker": BreakerState.OPEN, "breaker_reason": "Storm."}, "The breaker is open: Storm."),
        ({"evidence_after": NOON + timedelta(minutes=1)}, "The breaker was reset since the case began."),
    ],
)
def test_a_switch_off_and_the_breaker_hand_the_case_over(change: dict[str, Any], why: str):
    pool = a_pool_with_switches()
    a_quarantined_case(pool)
    AutomaticQuarantine.objects.update(**change)
    case = step(pool)

    assert (kinds(), case.handed_over_reason) == (["quarantine"], why)


@pytest.mark.parametrize("switched", [{"epoch": 99}, {"mode": Mode.OFF}, {"breaker": BreakerState.OPEN}])
def test_a_step_loses_against_a_change_of_a_switch(switched, monkeypatch: pytest.MonkeyPatch):
    pool = a_pool_with_switches()
    case = a_quarantined_case(pool)
    _meanwhile(monkeypatch, lambda: AutomaticQuarantine.objects.update(**switched))
    step(pool)

    assert (kinds(), case.moves.filter(verb="case.automatic-drain").count()) == (["quarantine"], 0)


def test_a_step_loses_against_a_person_who_takes_the_case_over(monkeypatch: pytest.MonkeyPatch):
    pool = a_pool_with_switches()
    case = a_quarantined_case(pool)
    _meanwhile(monkeypatch, lambda: commands.take_over(case, actor="ada", reason="Mine.", now=LATER))
    step(pool)

    assert (kinds(), NodeCase.objects.get().handed_over_to) == (["quarantine"], "ada")
    assert AutomaticQuarantine.objects.get().epoch == 1, "of the quarantine alone: the step left nothing"


def _meanwhile(monkeypatch: pytest.MonkeyPatch, act) -> None:
    """Somebody acts after the choice of a step, and before its start."""
    start = step_round._start
    monkeypatch.setattr(step_round, "_start", lambda its, *, now: (act(), start(its, now=now)))


def test_a_node_that_became_the_last_of_a_service_is_not_drained_by_a_machine():
    """lifecycle R51: the other replica ended after the cordon."""
    pool = a_pool_with_switches()
    a_quarantined_case(pool)
    a_pod(Node.objects.get(name="gpu-3"), "chat-0", owner_kind="StatefulSet", owner_name="chat")
    case = step(pool)

    assert case.handed_over_reason == (
        "gpu-3 is the only node where StatefulSet team-a/chat is Ready. A person decides."
    )
    assert kinds() == ["quarantine"]


def test_a_take_over_happens_once_and_an_operation_of_a_person_is_one():
    pool = a_pool_with_switches()
    case = a_quarantined_case(pool)
    operations.start(pool.cluster, "drain", [Node.objects.get(name="gpu-3")], actor="ada", reason="x", now=LATER)
    case = step(pool)

    assert (case.handed_over_to, case.handed_over_reason) == ("ada", "ada started a drain.")
    with pytest.raises(CaseRefused):
        commands.take_over(case, actor="bob", reason="x", now=LATER)


def test_what_a_person_could_not_ask_for_is_handed_over_with_the_refusal():
    pool = a_pool_with_switches()
    a_quarantined_case(pool)
    step(pool)
    end("drain")
    RepairKinds.objects.update(why_not={"RebootNode": "The cluster serves no RebootNode."})
    case = step(pool)

    assert case.handed_over_reason == "The repair was refused. The cluster serves no RebootNode."
    assert (case.repairs.count(), case.moves.filter(verb="case.automatic-repair").count()) == (0, 0)


def test_a_case_that_no_person_had_is_no_accepted_one():
    row = acting_with([])
    NodeCase.objects.update(automatic_at=NOON)
    assert acceptance_of(row) == DecisionAcceptance(0, 0, 0), "the cases are over: nobody judges them any more"
    NodeCase.objects.update(handed_over_at=NOON)
    assert acceptance_of(row) == DecisionAcceptance(17, 17, 0)


def test_the_switches_need_mode_act_an_actor_and_each_other():
    pool = a_pool_in(Mode.SUGGEST)
    given = {"actor": "root", "reason": "Trust.", "now": NOON}
    for mode, switches, why in (
        (Mode.SUGGEST, {"drain": True}, "need mode act"),
        (Mode.ACT, {"drain": False, "repair": "webhook"}, "Switch the drain on too"),
        (Mode.ACT, {"drain": True, "repair": "webhook"}, "No receiver is set"),
        (Mode.ACT, {"drain": True, "repair": "nvsentinel-reboot"}, "has not looked for RebootNode"),
    ):
        AutomaticQuarantine.objects.update(mode=mode)
        with pytest.raises(CaseRefused, match=why):
            set_switches(pool, **switches, **given)
    set_switches(pool, drain=True, **given)
    row = AutomaticQuarantine.objects.get()
    assert (row.drain_since, row.drain_by, row.repair_since) == (NOON, "root", None)
    entry = AuditEntry.objects.get(verb="automatic-quarantine.switches")
    assert entry.evidence["to"] == {"drain": True, "repair": ""}
    automatic.change_mode(pool, mode=Mode.SUGGEST, **given)
    row.refresh_from_db()
    assert (row.drain_since, row.drain_by) == (None, "")


def test_a_switch_that_somebody_else_changes_at_the_same_time_is_refused(monkeypatch: pytest.MonkeyPatch):
    pool = a_pool_in(Mode.ACT)
    change = AutomaticQuarantine.change

    def later(row, **columns):
        AutomaticQuarantine.objects.update(epoch=7)
        change(row, **columns)

    monkeypatch.setattr(AutomaticQuarantine, "change", later)
    with pytest.raises(CaseRefused, match="changed at the same time"):
        set_switches(pool, drain=True, actor="root", reason="x", now=NOON)
    assert AutomaticQuarantine.objects.get().drain_since is None


def test_what_it_would_have_done_counts_drains_and_repairs_of_open_findings():
    pool = a_pool_in(Mode.ACT)
    strike(pool, 3)
    (found,) = would_do(pool, now=LATER)
    assert (found.is_drained, found.repair, found.sentence) == (True, "reboot", "cordoned, drained, reboot")
    (found,) = would_do(pool, now=found.act.at + DRAINED_AFTER - timedelta(seconds=1))
    assert (found.is_drained, found.repair, found.sentence) == (False, "", "cordoned")

    pool.cluster.findings.update(resolved_at=NOON, state="resolved")
    (found,) = would_do(pool, now=LATER)
    assert (found.is_drained, found.repair) == (False, "")


def test_pages_and_rest_set_the_switches_and_show_who_did():
    pool = a_pool_in(Mode.ACT)
    root, ada = calling(a_user("root", role="admin")), calling(a_user("ada", role="operator"))
    path = f"/api/v1/automatic-quarantines/{pool.pk}"
    sent = {"drain": True, "reason": "Trust."}
    assert ada.post(f"{path}/switches", sent, format="json").status_code == 403
    answer = root.post(f"{path}/switches", sent, format="json")
    assert (answer.status_code, answer.json()["drain_by"], answer.json()["repair_through"]) == (200, "root", "")
    assert [row["key"] for row in answer.json()["machines"]] == [
        "nvsentinel-reboot", "nvsentinel-gpu-reset", "metal3-reboot", "webhook",
    ]  # fmt: skip
    site = visiting(a_user("eva", role="admin"))
    assert "by root" in page(site, f"/maintenance/automatic/{pool.pk}").text
    site.post(f"/maintenance/automatic/{pool.pk}/switches", {"reason": "x"})
    assert AutomaticQuarantine.objects.get().drain_since is None


def test_the_case_page_shows_the_next_automatic_step_and_takes_it_over():
    pool = a_pool_with_switches()
    case = a_quarantined_case(pool)
    ada = visiting(a_user("ada", role="operator"))
    see(pool, LATER)
    text = page(ada, f"/cases/{case.pk}").text
    assert "Drain switched on by root" in text
    assert "Take over" in text
    rule = f"GPU lost, version {VERSION} of the rules. Source: Kubernetes and the exporter agree"
    assert rule in text, "lifecycle R58, R74"
    assert "closed. 0 of at most 1 node of the pool in automatic cases" in text
    ada.post(f"/cases/{case.pk}/take-over", {"reason": "I know this node."})
    assert "taken over by ada" in page(ada, f"/cases/{case.pk}").text
    told = calling(a_user("bob", role="operator")).get(f"/api/v1/cases/{case.pk}").json()
    assert told["handed_over_to"] == "ada"
    refused = calling(a_user("cy", role="operator")).post(
        f"/api/v1/cases/{case.pk}/takeovers", {"reason": "x"}, format="json"
    )
    assert refused.status_code == 409
    assert AutomaticDecision.objects.get().case_id == case.pk
