"""Operations and cases that wait for a person: their events, and the one conversation about each."""

from datetime import timedelta

import pytest

from fleet.event_kinds import EVENT_KINDS, EventPhase
from fleet.models import DomainEvent
from maintenance.lifecycle import CaseState
from notifications.models import Conversation, Delivery
from notifications.models.router import KEY
from notifications.queries import known_kinds
from notifications.rounds.router_round import run_router
from operations import commands
from operations.lifecycle import OperationState
from operations.models import Operation
from tests.make import NOON, a_case, a_cluster, a_finding, a_node, a_pool
from tests.notifications.make import a_channel, a_route, catch_all, happened

pytestmark = pytest.mark.django_db


@pytest.fixture
def route(clock):
    chat, ops = a_channel("chat", "slack"), a_channel("ops", "slack")
    catch_all(chat)
    a_route("drains", ops, kinds=["operation", "case"], places=["eu-1/h100"])
    return lambda: run_router(KEY, owner="worker-1", clock=clock)


@pytest.fixture
def pool():
    return a_pool(a_cluster("eu-1", mode="operate"), "h100", environment="production")


@pytest.fixture
def proposal(pool) -> Operation:
    nodes = [a_node(pool.cluster, f"gpu-{number}", pool=pool) for number in range(10)][:3]
    return commands.start(pool.cluster, "drain", nodes, actor="ada", reason="Xid 79.", typed_count=3, now=NOON)


def kinds() -> list[str]:
    return list(DomainEvent.objects.order_by("pk").values_list("kind", flat=True))


def sent() -> list[tuple[str, str, str]]:
    rows = Delivery.objects.order_by("pk")
    return [(row.channel_name, row.act, row.message["title"]) for row in rows]


def test_a_proposal_and_a_pause_of_the_engine_notify_and_a_persons_pause_does_not(proposal):
    commands.approve(proposal, actor="bea", reason="Fine.", now=NOON)
    proposal.move(OperationState.PAUSED, now=NOON, reason="1 node of 3 failed.")
    commands.resume(proposal, actor="ada", reason="Seen.", now=NOON)
    commands.pause(proposal, actor="ada", reason="Wait.", now=NOON)
    commands.cancel(proposal, actor="ada", reason="No.", now=NOON)

    assert kinds() == [
        "operation.blocked", "operation.continued", "operation.blocked", "operation.continued", "operation.paused",
        "operation.finished",
    ]  # fmt: skip
    assert EVENT_KINDS["operation.paused"].phase is EventPhase.RECORD


def test_each_request_to_owners_is_sent_and_the_end_of_the_drain_resolves_it(proposal, route):
    """lifecycle R24."""
    commands.approve(proposal, actor="bea", reason="Fine.", now=NOON)
    route()
    for job in ("Job team-a/llama", "Job team-b/bert"):
        reason = f"Please suspend or end by 2026-01-08 12:30 UTC: {job} (owner: #team)."
        proposal.write_event("operation.owners-asked", now=NOON, actor="engine", reason=reason)
        route()
    commands.cancel(proposal, actor="ada", reason="No.", now=NOON)
    route()

    asks = [title for _, act, title in sent() if title.endswith("asks the owners of its jobs")]
    assert len(asks) == 2
    message = Delivery.objects.filter(message__title__endswith="asks the owners of its jobs").earliest("pk").message
    assert "by 2026-01-08 12:30 UTC: Job team-a/llama (owner: #team)." in message["summary"]
    assert message["happens_next"] == "A drain evicts what is left at that time."
    assert message["steps"] == ["Set spec.suspend of a Job or JobSet. End other work."]
    assert sent()[-1][1] == "resolve"


def test_a_move_that_loses_its_race_writes_no_event(proposal):
    stale = Operation.objects.get(pk=proposal.pk)
    commands.cancel(proposal, actor="ada", reason="No.", now=NOON)
    before = kinds()

    with pytest.raises(Exception, match="no longer proposed"):
        stale.move(OperationState.RUNNING, now=NOON)

    assert kinds() == before


def test_the_route_of_its_pool_gets_one_conversation_that_its_finding_does_not_double(proposal, route):
    route()
    happened(a_finding(proposal.cluster, rule="operation-waits", subject=f"operation {proposal.pk}"))
    route()
    commands.cancel(proposal, actor="ada", reason="No.", now=NOON)
    route()

    assert sent() == [
        ("ops", "open", "eu-1: Drain of 3 nodes waits for a person"),
        ("ops", "resolve", "eu-1: Drain of 3 nodes is cancelled"),
    ]
    assert not Conversation.objects.open().exists()


def test_a_finding_that_no_event_preceded_begins_a_conversation(proposal, route):
    DomainEvent.objects.all().delete()
    happened(a_finding(proposal.cluster, rule="operation-waits", subject=f"operation {proposal.pk}"))

    route()

    assert [name for name, *_ in sent()] == ["chat"]


def test_a_case_waits_goes_on_and_ends(pool, route):
    case = a_case(a_node(pool.cluster, "gpu-1", pool=pool), state=CaseState.DRAINING)
    case.move(CaseState.DRAIN_BLOCKED, actor="engine", reason="A budget allows no eviction.", now=NOON)
    route()
    case.move(CaseState.DRAINING, actor="ada", reason="Again.", now=NOON + timedelta(minutes=5))
    route()

    assert sent() == [
        ("ops", "open", "eu-1: case of gpu-1 waits for a person"),
        ("ops", "resolve", "eu-1: case of gpu-1 goes on"),
    ]
    message = Delivery.objects.earliest("pk").message
    assert message["summary"] == "A budget allows no eviction."
    assert message["steps"] == ["The drain stopped. Drain again with another deadline or consent, or return the node."]


@pytest.mark.parametrize(("to", "kind"), [("", "case.blocked"), ("ada", "case.changed")])
def test_automatic_steps_that_end_notify_unless_a_person_has_the_case(pool, to, kind):
    case = a_case(a_node(pool.cluster, "gpu-1", pool=pool), automatic_at=NOON)

    case.hand_over(to, actor="automatic quarantine", reason="The node is not Ready.", now=NOON)

    assert kinds() == [kind]


def test_routes_offer_them():
    assert {"operation", "case"} <= known_kinds().keys()
