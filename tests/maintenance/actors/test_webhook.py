"""Repairs that a signed webhook asks for: once, under everything that forbids it, and answered by REST."""

import json
from ipaddress import ip_network

import pytest

from edges.transition_errors import LostRace
from edges.webhook_signatures import signature
from fleet.models import Node
from maintenance import commands, repair_round
from maintenance.case_round import follow_cases
from maintenance.lifecycle import CaseState
from maintenance.models import NodeCase, Repair
from maintenance.receivers import set_receiver
from maintenance.refusals import CaseRefused, UnknownRequest
from operations.ledger.disruptions import record_disruptions
from operations.models import Freeze, Quarantine
from simulator.kinds import CONFIG_MAP, NODE
from tests.maintenance.actors.ground import a_drained_case, asked, repair_rounds, state
from tests.make import a_case, a_node, a_pool
from tests.notifications.make import SIGNING
from tests.notifications.receivers import Answer, a_receiver
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver(settings, monkeypatch):
    settings.NOTIFICATION_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.PUBLIC_URL = "https://quarterdeck.example"
    monkeypatch.setenv("QUARTERDECK_REPAIR_BMC", SIGNING)
    monkeypatch.setenv("QUARTERDECK_REPAIR_BMC_CLUSTERS", "*")
    with a_receiver() as receiver:
        yield receiver


@pytest.fixture
def case(ground: Ground, receiver) -> NodeCase:
    case = a_drained_case(ground)
    given = {"address": f"{receiver.url}/repairs", "secret_from": "env:QUARTERDECK_REPAIR_BMC"}
    set_receiver(ground.cluster, None, actor="root", now=ground.clock(), **given)
    return case


def answer(case: NodeCase, ground: Ground, request: str, **given) -> None:
    given = {"answer": "done", "actor": "bmc", "reason": "Swapped.", "now": ground.clock()} | given
    commands.answer_repair(NodeCase.objects.get(pk=case.pk), request=request, **given)


def test_the_receiver_gets_one_signed_request_and_answers_with_its_id(ground: Ground, case, receiver):
    repair = asked(case, ground, "webhook", kind="hardware", reason="Swap GPU 3.")
    repair = repair_rounds(ground, repair, 3)

    (got,) = receiver.received
    at = got.headers["webhook-timestamp"]
    assert got.headers["webhook-signature"] == signature(SIGNING, repair.request, at, got.body)
    assert got.json["type"] == "repair.hardware"
    assert got.json["data"]["request"] == got.headers["webhook-id"] == repair.request
    assert got.json["data"]["node_uid"] == case.node_uid
    assert got.json["data"]["answer_to"] == f"https://quarterdeck.example/api/v1/cases/{case.pk}/repair-answers"
    assert (repair.accepted_at is not None, repair.says, state(repair)) == (True, "", CaseState.IN_REPAIR)
    answer(case, ground, repair.request, ticket="INC-7", link="https://tickets.example/7")
    repair.refresh_from_db()
    assert (repair.answer, repair.ticket, repair.link) == ("done", "INC-7", "https://tickets.example/7")
    assert state(repair) == CaseState.VALIDATING


@pytest.mark.parametrize(
    ("answers", "says"),
    [(Answer(is_cut=True), "unclear"), (Answer(500, '{"error": "x"}'), "answered 500: x"), (Answer(408), "unclear")],
)
def test_an_unclear_request_is_never_sent_again_and_ends_at_the_deadline(ground: Ground, case, receiver, answers, says):
    """lifecycle R8."""
    receiver.answers = [answers, Answer()]
    repair = repair_rounds(ground, asked(case, ground, "webhook", deadline_h=1), 3)
    assert (len(receiver.received), state(repair)) == (1, CaseState.IN_REPAIR)
    assert says in repair.says
    ground.clock.move(minutes=61)

    repair = repair_rounds(ground, repair)
    assert (len(receiver.received), repair.answer, state(repair)) == (1, "unclear", CaseState.DRAINED)


@pytest.mark.parametrize("refused", [Answer(422, '{"detail": "No BMC."}'), None])
def test_a_request_that_surely_did_not_arrive_is_refused_and_may_be_asked_again(
    ground: Ground, case, receiver, refused
):
    if refused:
        receiver.answers = [refused]
    else:
        given = {"address": "http://127.0.0.1:1/", "secret_from": "env:QUARTERDECK_REPAIR_BMC"}
        set_receiver(ground.cluster, None, actor="root", now=ground.clock(), **given)
    repair = repair_rounds(ground, asked(case, ground, "webhook"))

    assert (repair.answer, state(repair)) == ("refused", CaseState.DRAINED)
    assert repair.answer_note.endswith("No BMC.") if refused else "not reached" in repair.answer_note


def test_a_worker_killed_after_the_intent_sends_nothing_twice(ground: Ground, case, receiver, monkeypatch):
    """The case says that it is unclear, and not for what the request waited before it was sent."""
    repair = asked(case, ground, "webhook")
    freeze = Freeze.objects.create(by="bob", reason="Quarter end.", at=ground.clock(), cluster=ground.cluster)
    assert "Quarter end." in repair_rounds(ground, repair).says
    freeze.delete()

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(repair_round, "post_to", killed)
        with pytest.raises(KeyboardInterrupt):
            repair_rounds(ground, repair)
    ground.clock.move(minutes=5)
    repair = repair_rounds(ground, repair, 2)
    assert receiver.received == []
    assert repair.says == "It is unclear whether the receiver has the request. It is not sent again."


def test_nothing_is_sent_during_a_stop_a_freeze_or_a_change_of_another(ground: Ground, case, receiver):
    repair = asked(case, ground, "webhook")
    ground.stop_everything("Fire.")
    assert "stops everything: Fire." in repair_rounds(ground, repair).says
    ground.store.delete(CONFIG_MAP, "quarterdeck-stop", "quarterdeck", grace_s=0)
    freeze = Freeze.objects.create(by="bob", reason="Quarter end.", at=ground.clock(), cluster=ground.cluster)
    assert "Quarter end." in repair_rounds(ground, repair).says
    freeze.delete()
    Quarantine.objects.in_force().get().end(now=ground.clock())
    record_disruptions(ground.cluster.pk, {case.node_uid: CANARY}, by="plan-7", now=ground.clock())
    assert f"plan-7 already changes {CANARY}" in repair_rounds(ground, repair).says
    assert receiver.received == []


def test_a_node_that_was_remade_uncordoned_or_rebooted_is_not_asked_for(ground: Ground, case, receiver):
    """Bad input: its name is not the node."""
    repair = asked(case, ground, "webhook")
    ground.store.patch(NODE, CANARY, {"spec": {"unschedulable": None}}, how="merge")
    assert "not cordoned any more" in repair_rounds(ground, repair).says
    ground.cordon(CANARY)
    booted = {"status": {"nodeInfo": {"bootID": "second"}}}
    ground.store.patch(NODE, CANARY, booted, how="merge", subresource="status")
    assert "booted since" in repair_rounds(ground, repair).says
    node = ground.node(CANARY)
    ground.delete(CANARY)
    ground.store.seed(NODE, node | {"metadata": {"name": CANARY, "uid": "uid-of-another"}})

    assert "different node with the same name" in repair_rounds(ground, repair).says
    assert receiver.received == []


def test_a_stop_between_the_look_and_the_intent_wins(ground: Ground, case, receiver, monkeypatch):
    repair = asked(case, ground, "webhook")
    seen = repair_round.RepairRound._why_wait

    def then_stopped(self) -> str:
        reason = seen(self)
        Freeze.objects.create(by="bob", reason="Stop.", at=ground.clock(), is_stop=True, binds_rollbacks=True)
        return reason

    monkeypatch.setattr(repair_round.RepairRound, "_why_wait", then_stopped)
    repair_rounds(ground, repair)
    assert receiver.received == []


def test_only_the_worker_with_the_turn_asks(ground: Ground, case):
    repair = asked(case, ground, "webhook")
    slow, quick = Repair.objects.get(pk=repair.pk), Repair.objects.get(pk=repair.pk)

    assert quick.take_lease(owner="quick", now=ground.clock())
    assert not slow.take_lease(owner="slow", now=ground.clock())
    with pytest.raises(LostRace):
        slow.keep_lease(now=ground.clock())


def test_late_double_wrong_and_unknown_answers_change_nothing_and_lose_nothing(ground: Ground, case, receiver):
    repair = repair_rounds(ground, asked(case, ground, "webhook", kind="hardware", deadline_h=1))
    other = a_case(a_node(ground.cluster, "gpu-other"), state="in-repair")
    with pytest.raises(UnknownRequest, match="No repair has the request id"):
        answer(case, ground, "0" * 36)
    with pytest.raises(CaseRefused, match=f"does not belong to case {other.pk}"):
        answer(other, ground, repair.request)
    ground.clock.move(minutes=61)
    follow_cases(now=ground.clock())
    for _ in range(2):
        with pytest.raises(CaseRefused, match=r"This repair ended .* as unclear"):
            answer(case, ground, repair.request, ticket="INC-7")
    assert state(repair) == CaseState.DRAINED
    late = case.moves.filter(verb="case.late-answer").get()
    assert (late.actor, late.evidence["answer"], late.evidence["ticket"]) == ("bmc", "done", "INC-7")

    again = repair_rounds(ground, asked(NodeCase.objects.get(pk=case.pk), ground, "webhook", kind="hardware"))
    answer(case, ground, again.request)
    with pytest.raises(CaseRefused, match="bmc answered this repair before: done"):
        answer(case, ground, again.request, answer="refused")


def test_an_answer_done_without_a_reboot_is_not_proven_and_ends_unclear_at_the_deadline(ground: Ground, case, receiver):
    """Z44, lifecycle R6."""
    repair = repair_rounds(ground, asked(case, ground, "webhook", deadline_h=1))
    answer(case, ground, repair.request)
    assert state(repair) == CaseState.IN_REPAIR
    ground.clock.move(minutes=61)
    follow_cases(now=ground.clock())

    repair.refresh_from_db()
    assert (repair.answer, state(repair)) == ("unclear", CaseState.DRAINED)


def test_a_reboot_is_done_once_the_node_is_ready_with_another_boot_id(ground: Ground, case, receiver):
    repair = repair_rounds(ground, asked(case, ground, "webhook"))
    Node.objects.filter(uid=case.node_uid).update(boot_id="second", is_ready=False)
    follow_cases(now=ground.clock())
    assert state(repair) == CaseState.IN_REPAIR
    Node.objects.filter(uid=case.node_uid).update(is_ready=True)
    follow_cases(now=ground.clock())

    assert state(repair) == CaseState.VALIDATING


def test_a_pool_has_its_own_receiver_before_that_of_its_cluster(ground: Ground, case, receiver):
    pool = a_pool(ground.cluster, "h100")
    Node.objects.get(uid=case.node_uid).pools.add(pool)
    given = {"address": f"{receiver.url}/of-the-pool", "secret_from": "env:QUARTERDECK_REPAIR_BMC"}
    set_receiver(ground.cluster, pool, actor="root", now=ground.clock(), **given)
    repair_rounds(ground, asked(case, ground, "webhook"))

    assert [got.path for got in receiver.received] == ["/of-the-pool"]
    assert json.loads(receiver.received[0].body)["data"]["kind"] == "reboot"


def test_a_secret_that_is_missing_is_said_and_nothing_is_sent(ground: Ground, case, receiver, monkeypatch):
    monkeypatch.delenv("QUARTERDECK_REPAIR_BMC")
    repair = repair_rounds(ground, asked(case, ground, "webhook"))

    assert "This place has no secret for this cluster" in repair.says
    assert (repair.sent_at, receiver.received) == (None, [])
    monkeypatch.setenv("QUARTERDECK_REPAIR_BMC", SIGNING)
    assert repair_rounds(ground, repair).accepted_at is not None


def test_without_a_receiver_the_webhook_is_not_offered(ground: Ground):
    case = a_drained_case(ground)

    with pytest.raises(CaseRefused, match="No receiver is set"):
        asked(case, ground, "webhook")
