"""Cases follow real operations against the API server."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine

from edges.transition_errors import LostRace
from fleet.models import GoneNode, Node
from health.models import EvaluationRun
from maintenance import commands
from maintenance.acts import acts_of
from maintenance.case_round import _take_test, follow_cases
from maintenance.fault_tests import choose_test, covers
from maintenance.findings import WAITING
from maintenance.lifecycle import PROBATION_FOR, CaseState
from maintenance.models import NodeCase
from maintenance.probation import why_longer
from maintenance.queries import facts_of, why_no_release
from maintenance.refusals import CaseRefused
from operations import commands as operations
from operations.lifecycle import NodeProgress
from operations.models import Disruption, NodeTestJob, Operation, Quarantine
from operations.operation_round import end_gone_quarantines
from operations.quarantine_round import follow_quarantines
from operations.refusals import OperationRefused
from operations.test_jobs.node_tests import NODE_TESTS
from people.models.audit_entry import broken_links
from simulator.kinds import NODE
from tests.make import NOON, a_case, a_cluster, a_finding, a_node, an_operation
from tests.operations.test_rounds import a_budget, a_pod, begin, end_pods, is_cordoned, rounds
from tests.operations.test_test_job_step import ends, finished
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db


def suspect(ground: Ground) -> NodeCase:
    node = Node.objects.get(cluster=ground.cluster, name=CANARY)
    return commands.open_case(node, actor="ada", reason="Xid 79.", now=ground.clock())


def followed(ground: Ground, case: NodeCase) -> NodeCase:
    """The case after the node was observed again, and all moves were made."""
    name = {"cluster": ground.cluster, "name": CANARY}
    Node.objects.filter(**name).update(is_unschedulable=is_cordoned(ground))
    while follow_cases(now=ground.clock()):
        pass
    return NodeCase.objects.get(pk=case.pk)


def validate(ground: Ground, case: NodeCase, result: str) -> None:
    ground.clock.move(seconds=1)
    given = {"result": result, "test": "dcgmi diag -r 3", "reason": "8 GPUs.", "now": ground.clock()}
    commands.record_validation(NodeCase.objects.get(pk=case.pk), actor="ada", **given)


def drained(**given) -> NodeCase:
    cluster = a_cluster()
    node = a_node(cluster, "gpu-1", boot_id="first", is_unschedulable=True)
    operation = an_operation(cluster, steps=("cordon", "drain"))
    operation.nodes.update(node_uid=node.uid, node_name=node.name, state="done", step=1, step_since=NOON)
    Quarantine.objects.create(
        cluster=cluster, operation=operation, node_uid=node.uid, node_name=node.name, wanted_since=NOON, placed_at=NOON
    )
    return a_case(node, **{"state": "drained"} | given)


def at(minutes: int):
    return NOON + timedelta(minutes=minutes)


def test_a_case_follows_its_node_from_suspect_to_probation_and_closes(ground: Ground):
    """L1, lifecycle R38, R41: each move with who, why and evidence."""
    a_pod(ground, "web-1")
    case = suspect(ground)
    states = [case.state]
    quarantine = rounds(ground, begin(ground, "quarantine", CANARY))
    states.append(followed(ground, case).state)
    drain = rounds(ground, begin(ground, "drain", CANARY))
    states.append(followed(ground, case).state)
    for _ in range(2):  # services, then GPU pods
        end_pods(ground)
        rounds(ground, drain)
    rounds(ground, drain, 2)
    states.append(followed(ground, case).state)
    validate(ground, case, "passed")
    states.append(followed(ground, case).state)
    rounds(ground, begin(ground, "release", CANARY))
    states.append(followed(ground, case).state)
    ground.clock.move(seconds=PROBATION_FOR.total_seconds())
    ground.cluster.bookmarks.update(last_seen_at=ground.clock())
    case = followed(ground, case)

    assert [*states, case.state] == [
        "suspect",
        "quarantined",
        "draining",
        "drained",
        "validating",
        "probation",
        "closed",
    ]
    moves = list(case.moves.order_by("number"))
    assert [entry.verb for entry in moves] == [
        "case.opened", "case.quarantined", "case.draining", "case.drained", "case.validating", "case.probation",
        "case.closed",
    ]  # fmt: skip
    assert (moves[1].actor, moves[1].evidence) == ("ada", {"from": "suspect", "operation": quarantine.pk})
    assert moves[-1].actor == "engine"
    assert list(broken_links(case.moves)) == []
    assert not is_cordoned(ground)


def test_a_blocked_drain_blocks_its_case_and_a_retry_continues_it(ground: Ground):
    """lifecycle R29: nothing is forced, and the case names the pod."""
    a_pod(ground, "web-1")
    a_budget(ground)
    case = suspect(ground)
    drain = rounds(ground, begin(ground, "drain", CANARY))
    assert followed(ground, case).state == CaseState.DRAINING
    ground.clock.move(minutes=31)
    drain = rounds(ground, drain)

    case = followed(ground, case)
    assert case.state == CaseState.DRAIN_BLOCKED
    assert "The budget of team-a/web-1 prevents its eviction" in facts_of([case])[case.pk].obstacle
    operations.retry(drain, actor="ada", reason="Again.", now=ground.clock())
    rounds(ground, drain)
    assert followed(ground, case).state == CaseState.DRAINING
    operations.cancel(rounds(ground, drain), actor="bob", reason="Stop.", now=ground.clock())
    assert followed(ground, case).state == CaseState.QUARANTINED


def test_a_foreign_cordon_leaves_the_case_suspect_and_says_whose_it_is(ground: Ground):
    """lifecycle R1, Z43: the node has another owner."""
    ground.cordon(CANARY)
    case = suspect(ground)
    rounds(ground, begin(ground, "quarantine", CANARY))

    case = followed(ground, case)
    assert case.state == CaseState.SUSPECT
    assert facts_of([case])[case.pk].obstacle.startswith("Already cordoned")


def test_an_uncordon_by_somebody_else_is_shown_with_two_ways_out(ground: Ground):
    """lifecycle R40."""
    case = suspect(ground)
    rounds(ground, begin(ground, "quarantine", CANARY))
    followed(ground, case)
    ground.store.patch(NODE, CANARY, {"spec": {"unschedulable": None}}, how="merge")
    followed(ground, case)
    follow_quarantines(clock=ground.clock)

    case = followed(ground, case)
    assert case.state == CaseState.QUARANTINED
    assert facts_of([case])[case.pk].obstacle.startswith("Somebody else uncordoned the node.")
    rounds(ground, begin(ground, "quarantine", CANARY))
    assert is_cordoned(ground)
    assert facts_of([followed(ground, case)])[case.pk].obstacle == ""


def test_a_node_that_left_or_was_remade_ends_its_case_and_gives_its_place_back(ground: Ground):
    """lifecycle R11."""
    case = suspect(ground)
    rounds(ground, begin(ground, "quarantine", CANARY))
    followed(ground, case)
    assert Disruption.objects.in_force().exists()
    Node.objects.filter(uid=case.node_uid).delete()
    case = followed(ground, case)
    assert case.state == CaseState.QUARANTINED, "unknown is not gone"
    assert facts_of([case])[case.pk].obstacle == "The node is not seen in its cluster."
    GoneNode.objects.create(cluster=case.cluster, node_id=1, uid=case.node_uid, name=CANARY, gone_at=NOON)
    a_node(ground.cluster, CANARY, uid="uid-of-another")

    case = followed(ground, case)
    end_gone_quarantines(now=ground.clock())
    assert case.state == CaseState.RETIRED
    assert case.state_reason == f"{CANARY} left the cluster. A new node has its name, and starts without a case."
    assert not Quarantine.objects.in_force().exists()
    assert not Disruption.objects.in_force().exists()


def test_a_fault_during_probation_reopens_the_case_and_an_open_one_keeps_it():
    """lifecycle R38."""
    node = a_node(a_cluster(), "gpu-1")
    finding = a_finding(node.cluster, node=node, rule="gpu-hot")
    case = a_case(node, state="probation", finding=finding)

    follow_cases(now=NOON + PROBATION_FOR)
    case.refresh_from_db()
    assert case.state == CaseState.PROBATION, "its finding is open"
    a_finding(node.cluster, "GPU 1 of gpu-1", node=node, rule="gpu-hot", opened_at=NOON + timedelta(hours=1))
    follow_cases(now=NOON + timedelta(hours=2))
    case.refresh_from_db()
    assert (case.state, case.state_reason) == (CaseState.SUSPECT, "The fault returned: It is wrong.")


UNSEEN_FOR = timedelta(hours=10)
HIDING = {
    "the cluster was not seen": {"rule": "cluster-not-seen", "subject": "cluster"},
    "its telemetry stopped": {"rule": "telemetry-silent", "subject": "telemetry"},
    "its exporter stopped": {"rule": "exporter-silent", "has_node": True},
    "its exporter was silent before the return": {"rule": "exporter-silent", "has_node": True, "before": 2},
    "its telemetry was silent before the return": {"rule": "telemetry-silent", "subject": "telemetry", "before": 2},
}


@pytest.mark.parametrize("hiding", HIDING.values(), ids=HIDING)
def test_a_time_in_which_nobody_saw_the_node_is_no_part_of_its_probation(hiding: dict[str, Any]):
    """The case closed after 72 h in which nothing was heard of its cluster."""
    given = dict(hiding)
    node = a_node(a_cluster(), "gpu-1")
    case = a_case(node, state="probation")
    about = {"node": node} if given.pop("has_node", False) else {}
    began = NOON + timedelta(hours=1)
    begun = began - timedelta(hours=given.pop("before", 0))
    ended = max(NOON, begun) + UNSEEN_FOR
    a_finding(node.cluster, **given, **about, since=begun, opened_at=begun, state="resolved", resolved_at=ended)
    states, longer = [], []
    for after, is_seen in (
        (PROBATION_FOR, True),
        (PROBATION_FOR + UNSEEN_FOR, False),
        (PROBATION_FOR + UNSEEN_FOR, True),
    ):
        node.cluster.bookmarks.update(last_seen_at=NOON + after if is_seen else NOON)
        follow_cases(now=NOON + after)
        case.refresh_from_db()
        states.append(case.state)
        longer.append(bool(why_longer(case, now=NOON + after)))

    assert states == ["probation", "probation", "closed"]
    assert longer == [True, True, False]


def test_an_outage_of_quarterdeck_is_no_part_of_a_probation():
    """Without a round, nobody saw a fault come and go: the cluster is live again as soon as Quarterdeck runs."""
    node = a_node(a_cluster(), "gpu-1")
    case = a_case(node, state="probation")
    back_at = NOON + timedelta(hours=1) + UNSEEN_FOR
    ends = (NOON + timedelta(hours=1), NOON + PROBATION_FOR + UNSEEN_FOR)
    for began_at, until in zip((NOON - timedelta(hours=9), back_at), ends, strict=True):
        EvaluationRun.objects.create(cluster=node.cluster, began_at=began_at, until=until)
    states = []
    for now in (NOON + PROBATION_FOR, NOON + PROBATION_FOR + UNSEEN_FOR):
        node.cluster.bookmarks.update(last_seen_at=now)
        follow_cases(now=now)
        case.refresh_from_db()
        states.append(case.state)

    assert states == ["probation", "closed"]


def test_only_one_case_of_a_node_is_open():
    node = a_node(a_cluster(), "gpu-1")
    commands.open_case(node, actor="bob", reason="Xid 79.", now=NOON)

    with pytest.raises(CaseRefused, match=r"gpu-1 has an open case. Case .* suspect since .* by bob: Xid 79."):
        commands.open_case(node, actor="ada", reason="It is slow.", now=NOON)
    commands.close(NodeCase.objects.get(), actor="ada", reason="A mistake.", now=NOON)
    assert commands.open_case(node, actor="ada", reason="It is slow.", now=NOON).is_open


def test_a_command_that_loses_its_race_says_what_is_so_now():
    case = a_case(a_node(a_cluster(), "gpu-1"))
    NodeCase.objects.get(pk=case.pk).move(CaseState.RETIRED, actor="bob", reason="Sent back.", now=NOON)

    with pytest.raises(CaseRefused, match=r"retired since .* by bob: Sent back."):
        commands.close(case, actor="ada", reason="A mistake.", now=NOON)
    assert case.moves.count() == 1


def test_a_round_that_loses_its_race_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    case = a_case(a_node(a_cluster(), "gpu-1"), state="probation")
    case.cluster.bookmarks.update(last_seen_at=NOON + PROBATION_FOR)
    read = facts_of

    def late(cases):
        facts = read(cases)
        NodeCase.objects.get(pk=case.pk).move(CaseState.RETIRED, actor="bob", reason="Sent back.", now=NOON)
        return facts

    monkeypatch.setattr("maintenance.case_round.facts_of", late)
    follow_cases(now=NOON + PROBATION_FOR)

    case.refresh_from_db()
    assert (case.state, case.moves.count()) == (CaseState.RETIRED, 1)


def test_no_node_returns_unvalidated_also_when_its_release_is_under_way(ground: Ground):
    """lifecycle R39: the veto is asked again before the write."""
    case = suspect(ground)
    rounds(ground, begin(ground, "quarantine", CANARY))
    case = followed(ground, case)
    with pytest.raises(OperationRefused, match=r"is in case .*No validation has passed"):
        begin(ground, "release", CANARY)
    commands.override(case, actor="bob", reason="We need it.", now=ground.clock())
    release = begin(ground, "release", CANARY)
    NodeCase.objects.filter(pk=case.pk).update(fault_at=ground.clock() + timedelta(seconds=1))

    release = rounds(ground, release)
    assert is_cordoned(ground)
    assert "No validation has passed" in release.nodes.get().reason
    assert release.nodes.get().state == NodeProgress.FAILED, "a running release would keep its tests off the node"
    commands.override(followed(ground, case), actor="bob", reason="We do.", now=ground.clock())
    operations.retry(release, actor="bob", reason="We do.", now=ground.clock())
    rounds(ground, release)
    case = followed(ground, case)
    assert (case.state, is_cordoned(ground)) == (CaseState.PROBATION, False)
    assert facts_of([case])[case.pk].obstacle.startswith("Returned without a validation.")


@pytest.mark.parametrize("given", [{"state": "validating", "passed_at": at(1)}, {"overridden_at": at(1)}])
def test_a_fault_counts_before_a_round_of_its_case_has_taken_it(given):
    """lifecycle R39: the release may be written before that round."""
    case = drained(**given)
    assert why_no_release([case.node_uid]) == {}

    a_finding(case.cluster, node=Node.objects.get(), severity="critical", opened_at=at(3))

    assert why_no_release([case.node_uid])[case.node_uid].startswith("gpu-1 is in case")


def test_a_fault_that_came_and_went_between_two_rounds_counts():
    case = drained(state="validating", passed_at=at(1))
    fault = {"severity": "critical", "opened_at": at(3), "resolved_at": at(5)}
    a_finding(case.cluster, node=Node.objects.get(), **fault)

    assert facts_of([case])[case.pk].why_no_return == "No validation has passed since the last fault."


def test_a_pass_from_before_a_boot_does_not_count():
    case = drained(state="validating", passed_at=at(2))
    Node.objects.update(booted_at=at(1))
    assert facts_of([case])[case.pk].why_no_return == ""

    Node.objects.update(booted_at=at(3))

    assert facts_of([case])[case.pk].why_no_return == "No validation has passed since the node booted."


def test_an_override_from_before_a_boot_does_not_count():
    """A reboot that nobody knows of, such as one of an unclear repair, may have changed the node."""
    case = drained(state="validating", overridden_at=at(2), overridden_by="bob", override_reason="Urgent.")
    Node.objects.update(booted_at=at(1))
    assert facts_of([case])[case.pk].why_no_return == ""

    Node.objects.update(booted_at=at(3))

    assert facts_of([case])[case.pk].why_no_return == "No validation has passed."


def test_a_failed_test_counts_before_a_round_of_its_case_has_taken_it():
    case = drained(state="validating", passed_at=at(1))
    the_test(case, "failed", began=2, ended=5)

    assert "The last validation failed." in why_no_release([case.node_uid])[case.node_uid]


def test_a_fault_on_probation_keeps_a_node_that_was_quarantined_again():
    case = drained(state="probation", passed_at=at(1))
    assert why_no_release([case.node_uid]) == {}

    a_finding(case.cluster, node=Node.objects.get(), severity="critical", opened_at=at(3))

    assert "since the last fault" in why_no_release([case.node_uid])[case.node_uid]


def test_the_release_of_a_retired_node_that_left_ends_with_a_result(ground: Ground):
    """lifecycle R11."""
    case = suspect(ground)
    rounds(ground, begin(ground, "quarantine", CANARY))
    commands.override(followed(ground, case), actor="bob", reason="We need it.", now=ground.clock())
    release = begin(ground, "release", CANARY)
    ground.store.delete(NODE, CANARY)
    Node.objects.filter(uid=case.node_uid).delete()
    GoneNode.objects.create(cluster=case.cluster, node_id=1, uid=case.node_uid, name=CANARY, gone_at=NOON)
    follow_cases(now=ground.clock())
    case.refresh_from_db()
    assert case.state == CaseState.RETIRED

    release = rounds(ground, release)
    assert (release.state, release.nodes.get().state) == ("finished", "failed")


def test_a_reboot_that_is_answered_but_did_not_happen_keeps_the_case_in_repair():
    """Z44: an actor that says done without a reboot."""
    case = drained()
    commands.ask_repair(case, kind="reboot", actor="ada", reason="Reboot it.", now=at(1))
    commands.answer_repair(case, answer="done", actor="bob", reason="Rebooted.", now=at(2))
    follow_cases(now=at(3))

    case.refresh_from_db()
    assert case.state == CaseState.IN_REPAIR
    with time_machine.travel(at(3)):
        assert "its boot ID has not changed" in facts_of([case])[case.pk].obstacle
    Node.objects.update(boot_id="second", is_ready=False)
    assert follow_cases(now=at(4)) == 0, "it is not Ready"
    Node.objects.update(is_ready=True)
    follow_cases(now=at(5))
    case.refresh_from_db()
    assert (case.state, case.repaired_at) == (CaseState.VALIDATING, at(5))
    assert case.repairs.get().ended_at == at(5)


@pytest.mark.parametrize(("answer", "state"), [("done", "validating"), ("refused", "drained"), ("unclear", "drained")])
def test_a_person_answers_a_repair(answer: str, state: str):
    """lifecycle R8: nothing is repeated by itself."""
    case = drained()
    commands.ask_repair(case, kind="hardware", actor="ada", reason="Swap GPU 3.", now=at(1))
    assert case.state == CaseState.IN_REPAIR
    commands.answer_repair(case, answer=answer, actor="bob", reason="See ticket.", now=at(2))

    follow_cases(now=at(3))
    case.refresh_from_db()
    assert (case.state, case.repairs.get().answer) == (state, answer)
    assert case.moves.first().evidence["answer"] == answer


def another_repair() -> tuple[NodeCase, NodeCase]:
    """Returns a case as it was during a GPU reset, and as it is during the hardware repair after it."""
    case = drained()
    commands.ask_repair(case, kind="gpu-reset", actor="ada", reason="Reset it.", now=at(1))
    before = NodeCase.objects.get(pk=case.pk)
    commands.answer_repair(case, answer="refused", actor="bob", reason="No.", now=at(2))
    commands.ask_repair(case, kind="hardware", actor="bob", reason="Swap GPU 3.", now=at(3))
    return before, case


@pytest.mark.parametrize("is_read_late", [True, False])
def test_an_answer_to_an_earlier_repair_does_not_answer_the_one_now(*, is_read_late: bool):
    """A tab from before; and one that sent its answer at the same time."""
    before, now = another_repair()
    given = {"answer": "done", "actor": "ada", "reason": "Reset.", "seen": before.state_version, "now": at(4)}

    with pytest.raises(CaseRefused, match="by bob: Swap GPU 3"):
        commands.answer_repair(NodeCase.objects.get(pk=now.pk) if is_read_late else before, **given)
    assert not now.repairs.open().get().answer
    commands.answer_repair(now, **given | {"seen": now.state_version})
    assert now.state == CaseState.VALIDATING


def test_a_validation_of_an_earlier_repair_does_not_validate_the_one_now():
    _, case = another_repair()
    commands.answer_repair(case, answer="done", actor="bob", reason="Swapped.", now=at(5))
    earlier = NodeCase(state=CaseState.VALIDATING, state_since=at(2))
    given = {"result": "passed", "test": "dcgmi diag -r 3", "actor": "ada", "reason": "8 GPUs.", "now": at(6)}

    with pytest.raises(CaseRefused, match="by bob: Swapped"):
        commands.record_validation(case, seen=earlier.state_version, **given)
    assert case.passed_at is None
    commands.record_validation(case, seen=case.state_version, **given)
    case.refresh_from_db()
    assert case.passed_at == at(6)


def test_a_repair_waits_for_the_controller_that_works_on_the_node():
    """lifecycle R18."""
    case = drained()
    Node.objects.update(annotations={"weave.works/kured-reboot-in-progress": "2026-01-08T12:00:00Z"})

    with pytest.raises(CaseRefused, match="Kured reboots the node"):
        commands.ask_repair(case, kind="reboot", actor="ada", reason="Reboot it.", now=at(1))


def test_a_third_reboot_of_a_case_is_refused():
    """lifecycle R7."""
    case = drained()
    for number in range(2):
        commands.ask_repair(case, kind="reboot", actor="ada", reason="Reboot it.", now=at(number))
        commands.answer_repair(case, answer="unclear", actor="ada", reason="BMC is silent.", now=at(number))

    with pytest.raises(CaseRefused, match="Two reboots did not mend the node"):
        commands.ask_repair(case, kind="reboot", actor="ada", reason="Reboot it.", now=at(3))


def test_a_node_with_running_pods_is_not_repaired_unless_its_kubelet_is_gone():
    """lifecycle R30."""
    case = drained(state="quarantined")
    with pytest.raises(CaseRefused, match="Drain the node first"):
        commands.ask_repair(case, kind="reboot", actor="ada", reason="Reboot it.", now=at(1))
    Node.objects.update(is_ready=None)
    commands.ask_repair(case, kind="reboot", actor="ada", reason="Reboot it.", now=at(1))
    assert case.state == CaseState.IN_REPAIR


def test_a_failed_validation_and_a_fault_after_a_pass_keep_the_node_out():
    """lifecycle R10, R39."""
    case = drained()
    for minute, result, why in (
        (1, "unknown", "No validation has passed."),
        (2, "passed", ""),
        (3, "failed", "The last validation failed."),
        (4, "passed", ""),
    ):
        given = {"result": result, "test": "dcgmi diag -r 3", "actor": "ada", "reason": "x", "now": at(minute)}
        commands.record_validation(case, **given)
        case.refresh_from_db()
        assert facts_of([case])[case.pk].why_no_return == why
    a_finding(case.cluster, node=Node.objects.get(), severity="critical", opened_at=at(5))
    follow_cases(now=at(6))

    case.refresh_from_db()
    assert (case.state, case.fault_at) == (CaseState.VALIDATING, at(5))
    assert facts_of([case])[case.pk].why_no_return == "No validation has passed since the last fault."
    assert case.moves.first().verb == "case.fault"


def test_an_override_that_loses_its_race_allows_nothing():
    case = drained()
    NodeCase.objects.get(pk=case.pk).move(CaseState.RETIRED, actor="bob", reason="Sent back.", now=NOON)

    with pytest.raises(CaseRefused, match=r"retired since .* by bob: Sent back."):
        commands.override(case, actor="ada", reason="We need it.", now=at(1))
    assert NodeCase.objects.get().overridden_at is None


def test_a_retired_node_returns_only_by_another_case():
    case = drained()
    commands.retire(case, actor="bob", reason="Sent back.", now=at(1))
    assert why_no_release([case.node_uid]) == {
        case.node_uid: f"gpu-1 was retired by case {case.pk}. Open another case to bring it back."
    }
    again = commands.open_case(Node.objects.get(), actor="ada", reason="It is back.", now=at(2))

    while follow_cases(now=at(3)):
        pass
    again.refresh_from_db()
    assert again.state == CaseState.DRAINED
    assert "No validation has passed." in why_no_release([case.node_uid])[case.node_uid]
    commands.override(again, actor="ada", reason="Tested by the vendor.", now=at(4))
    assert why_no_release([case.node_uid]) == {}


def test_a_case_of_a_cordoned_node_is_not_closed():
    """lifecycle R39: no way back without a validation, also before the case follows the quarantine."""
    case = drained(state="suspect")

    with pytest.raises(CaseRefused, match="release it first"):
        commands.close(case, actor="ada", reason="A mistake.", now=at(1))


@pytest.mark.parametrize(
    ("given", "minutes", "summary"),
    [
        ({"state": "probation", "overridden_at": NOON}, 0, "Returned without a validation. No validation has passed."),
        ({"state": "probation"}, 1000, ""),
        ({"state": "drained"}, 241, "The node is out of service without a next step for more than 4 h."),
        ({"state": "drained"}, 239, ""),
        ({"state": "suspect"}, 1000, ""),
    ],
)
def test_a_case_that_waits_for_a_person_is_a_finding(given, minutes: int, summary: str):
    """lifecycle R39: a return without a validation stays a finding until it is validated."""
    case = drained(**given)

    found = list(WAITING.say(case.cluster, now=at(minutes)))

    assert [problem.summary for _, problem in found] == ([summary] if summary else [])
    if found:
        assert found[0][1].title == "Case of gpu-1 waits for a person"
        assert WAITING.page(found[0][1].facts) == f"/cases/{case.pk}"


def test_a_test_job_validates_the_node_of_its_case(ground: Ground):
    """lifecycle R39: a pass counts from the begin of its test."""
    case = suspect(ground)
    drain = rounds(ground, begin(ground, "drain", CANARY))
    end_pods(ground)
    rounds(ground, drain, 3)
    assert followed(ground, case).state == CaseState.DRAINED
    operation = rounds(ground, begin(ground, "test", CANARY, options={"test": "dcgm-3"}))
    ends(ground, 226, ["| Memory | Fail |"])
    finished(ground, operation)
    case = followed(ground, case)
    assert (case.state, case.failed_at) == (CaseState.DRAINED, ground.clock())
    assert "Validation failed (dcgmi diag -r 3)" in case.moves.first().reason
    assert "exit code 226" in facts_of([case])[case.pk].obstacle

    operation = rounds(ground, begin(ground, "test", CANARY, options={"test": "dcgm-3"}))
    began = ground.clock()
    ends(ground)
    finished(ground, operation)
    case = followed(ground, case)
    assert (case.state, case.passed_at) == (CaseState.VALIDATING, began)
    facts = facts_of([case])[case.pk]
    assert (facts.why_no_return, facts.obstacle) == ("", "")


def the_test(
    case: NodeCase, outcome: str, *, began: int, ended: int, test: str = "dcgm-3", command: str = ""
) -> NodeTestJob:
    command = command or NODE_TESTS[test].command
    node = {"node_uid": case.node_uid, "node_name": case.node_name, "namespace": "gpu-operator", "image": "x"}
    return NodeTestJob.objects.create(
        operation=Operation.objects.get(), test=test, command=command, resource="nvidia.com/gpu", amount=8,
        deadline_s=60, intended_at=at(began), told_at=at(ended), gone_at=at(ended), outcome=outcome,
        says="It completed.", **node,
    )  # fmt: skip


def test_each_result_is_taken_once_and_a_pass_is_as_old_as_the_begin_of_its_test():
    case = drained()
    the_test(case, "passed", began=1, ended=5)
    a_finding(case.cluster, node=Node.objects.get(), severity="critical", opened_at=at(3))
    follow_cases(now=at(6))
    follow_cases(now=at(7))
    follow_cases(now=at(8))

    case.refresh_from_db()
    assert (case.state, case.passed_at, case.fault_at) == (CaseState.VALIDATING, at(1), at(3))
    assert facts_of([case])[case.pk].why_no_return == "No validation has passed since the last fault."
    assert case.moves.filter(evidence__has_key="result").count() == 1


def test_an_unknown_result_is_kept_and_moves_nothing():
    case = drained()
    the_test(case, "unknown", began=1, ended=5)
    follow_cases(now=at(6))
    follow_cases(now=at(7))

    case.refresh_from_db()
    assert (case.state, case.passed_at, case.failed_at) == (CaseState.DRAINED, None, None)
    assert [move.verb for move in case.moves] == ["case.validation"]


def test_a_result_that_another_round_took_is_not_taken_twice():
    case = drained()
    the_test(case, "failed", began=1, ended=5)
    facts = facts_of([case])[case.pk]
    NodeCase.objects.filter(pk=case.pk).update(tested_at=at(5))

    with pytest.raises(LostRace, match="has the result already"):
        _take_test(case, facts, now=at(6))
    assert NodeCase.objects.get().failed_at is None


@pytest.mark.parametrize(
    ("rule", "xid", "images", "test"),
    [
        ("gpu-xid", 79, {"dcgm-3", "nccl"}, "dcgm-3"),
        ("gpu-xid", 74, {"dcgm-3", "nccl"}, "nccl"),
        ("gpu-xid", 74, {"dcgm-3"}, "dcgm-3"),
        ("gpu-xid", 119, {"dcgm-2", "dcgm-3"}, "dcgm-2"),
        ("gpu-pcie-replays", None, {"nvbandwidth"}, "nvbandwidth"),
        ("", None, set(), "dcgm-3"),
    ],
)
def test_the_test_exercises_the_fault(rule: str, xid: int | None, images: set[str], test: str):
    """lifecycle R33."""
    assert choose_test(rule, xid, with_image=images) == test


@pytest.mark.parametrize(
    ("test", "rule", "xid", "does"),
    [
        ("dcgm-3", "gpu-xid", 79, True),
        ("dcgm-4", "gpu-xid", 79, True),
        ("dcgm-2", "gpu-xid", 79, False),
        ("vectoradd", "gpu-xid", 79, False),
        ("own", "", None, False),
        ("dcgm-2", "gpu-xid", 119, True),
        ("nccl", "gpu-xid", 74, True),
        ("nccl", "gpu-ecc-uncorrected", None, False),
        ("nvbandwidth", "gpu-pcie-replays", None, True),
    ],
)
def test_only_a_test_that_exercises_the_fault_covers_it(test: str, rule: str, xid: int | None, *, does: bool):
    """lifecycle R33."""
    assert covers(test, rule, xid) is does


def test_a_debug_pod_and_a_dry_run_in_a_case_move_nothing_and_validate_nothing(ground: Ground):
    case = suspect(ground)
    drain = rounds(ground, begin(ground, "drain", CANARY))
    end_pods(ground)
    rounds(ground, drain, 3)
    assert followed(ground, case).state == CaseState.DRAINED
    operation = rounds(ground, begin(ground, "debug", CANARY))
    ends(ground, output=["| NVIDIA-SMI 570.172.08 |"])
    finished(ground, operation)
    rounds(ground, begin(ground, "try-drain", CANARY))

    case = followed(ground, case)
    assert (case.state, case.passed_at, case.tested_at) == (CaseState.DRAINED, None, None)
    facts = facts_of([case])[case.pk]
    assert (facts.begun and facts.begun.kind, facts.newest and facts.newest.kind) == ("drain", "drain")
    assert "No validation has passed." in why_no_release([case.node_uid])[case.node_uid]


@pytest.mark.parametrize("by", ["job", "command", "person"])
def test_a_pass_of_another_test_is_evidence_and_validates_nothing(by: str):
    """lifecycle R33: the validation must exercise what failed."""
    case = drained()
    if by == "job":
        the_test(case, "passed", began=1, ended=5, test="dcgm-2")
        follow_cases(now=at(6))
    elif by == "command":
        the_test(case, "passed", began=1, ended=5, command="true")
        follow_cases(now=at(6))
    else:
        given = {"result": "passed", "test": "burn-in", "actor": "ada", "reason": "x", "now": at(6)}
        commands.record_validation(case, **given)

    case.refresh_from_db()
    assert (case.state, case.passed_at) == (CaseState.DRAINED, None)
    entry = case.moves.first()
    assert "Test at least with dcgmi diag -r 3 or dcgmi diag -r 4" in entry.reason
    assert entry.evidence["result"] == "passed"
    assert "Test at least with dcgmi diag -r 3" in facts_of([case])[case.pk].next_step


def test_a_row_that_is_older_than_the_cordon_is_no_uncordon(ground: Ground):
    """The observer has not seen the node since: automatic steps would end here."""
    case = suspect(ground)
    rounds(ground, begin(ground, "quarantine", CANARY))
    follow_cases(now=ground.clock())
    assert not Node.objects.get(cluster=ground.cluster, name=CANARY).is_unschedulable
    case.refresh_from_db()
    assert (case.state, facts_of([case])[case.pk].obstacle) == (CaseState.QUARANTINED, "")
    follow_quarantines(clock=ground.clock)
    assert not facts_of([case])[case.pk].is_uncordoned


def test_a_case_whose_node_somebody_uncordoned_waits_at_once_and_an_acceptance_is_shown_until_validated():
    """lifecycle R39, R40."""
    case = drained()
    Node.objects.update(is_unschedulable=False)
    Quarantine.objects.update(removed_at=at(1))
    ((_, problem),) = WAITING.say(case.cluster, now=at(1))
    assert problem.summary.startswith("Somebody else uncordoned the node.")
    assert [act.key for act in acts_of(facts_of([case])[case.pk])][:2] == ["quarantine", "accept-uncordon"]

    Quarantine.objects.get().end(now=at(2))
    operation = an_operation(case.cluster, steps=("disown",), reason="It works.")
    operation.nodes.update(node_uid=case.node_uid, node_name=case.node_name, state="done", step_since=at(2))
    follow_cases(now=at(3))
    case.refresh_from_db()
    assert (case.state, case.overridden_at, case.override_reason) == (CaseState.PROBATION, at(3), "It works.")
    assert "Returned without a validation" in facts_of([case])[case.pk].obstacle
