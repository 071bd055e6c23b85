"""Cases follow real operations against the API server."""

from datetime import timedelta

import pytest

from fleet.models import GoneNode, Node
from maintenance import commands
from maintenance.case_round import follow_cases
from maintenance.lifecycle import PROBATION_FOR, CaseState
from maintenance.models import NodeCase
from maintenance.queries import facts_of
from maintenance.refusals import CaseRefused
from operations import commands as operations
from operations.models import Disruption, Quarantine
from people.models.audit_entry import broken_links
from simulator.kinds import NODE
from tests.make import NOON, a_case, a_cluster, a_finding, a_node
from tests.operations.test_rounds import a_budget, a_pod, begin, end_pods, is_cordoned, rounds
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


def test_a_case_follows_its_node_from_suspect_to_probation_and_closes(ground: Ground):
    """L1, lifecycle R38, R41: each move with who, why and evidence."""
    a_pod(ground, "web-1")
    case = suspect(ground)
    states = [case.state]
    quarantine = rounds(ground, begin(ground, "quarantine", CANARY))
    states.append(followed(ground, case).state)
    drain = rounds(ground, begin(ground, "drain", CANARY))
    states.append(followed(ground, case).state)
    end_pods(ground)
    rounds(ground, drain, 3)
    states.append(followed(ground, case).state)
    rounds(ground, begin(ground, "release", CANARY))
    states.append(followed(ground, case).state)
    ground.clock.move(seconds=PROBATION_FOR.total_seconds())
    case = followed(ground, case)

    assert [*states, case.state] == ["suspect", "quarantined", "draining", "drained", "probation", "closed"]
    moves = list(case.moves.order_by("number"))
    assert [entry.verb for entry in moves] == [
        "case.opened", "case.quarantined", "case.draining", "case.drained", "case.probation", "case.closed",
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
    assert "team-a/web-1 is kept by its budget" in facts_of([case])[case.pk].obstacle
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
    read = facts_of

    def late(cases):
        facts = read(cases)
        NodeCase.objects.get(pk=case.pk).move(CaseState.RETIRED, actor="bob", reason="Sent back.", now=NOON)
        return facts

    monkeypatch.setattr("maintenance.case_round.facts_of", late)
    follow_cases(now=NOON + PROBATION_FOR)

    case.refresh_from_db()
    assert (case.state, case.moves.count()) == (CaseState.RETIRED, 1)
