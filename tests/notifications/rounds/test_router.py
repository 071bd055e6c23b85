"""Which events become messages, and to whom."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import DomainEvent
from health.lifecycle import FindingState
from health.models import Finding
from notifications.models import Conversation, Delivery, Route
from notifications.models.router import KEY
from notifications.rounds.batch import STORM
from notifications.rounds.router_round import run_router
from rollouts.lifecycle import PlanState
from tests.make import NOON, a_cluster, a_finding, a_node, a_plan, a_pool
from tests.notifications.make import a_channel, a_route, catch_all, happened

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    return a_cluster("eu-1")


@pytest.fixture
def pager():
    return a_channel("pager", "pagerduty", address="https://events.pagerduty.com")


@pytest.fixture
def chat():
    channel = a_channel("chat", "slack")
    catch_all(channel)
    return channel


@pytest.fixture
def route(clock):
    return lambda: run_router(KEY, owner="worker-1", clock=clock)


def sent() -> list[tuple[str, str]]:
    return list(Delivery.objects.order_by("pk").values_list("channel_name", "act"))


def test_the_first_route_that_matches_decides(cluster, pager, chat, route):
    pool = a_pool(cluster, "h200")
    a_route("pages", pager, severities=["critical"], places=["eu-1/h200"])
    happened(a_finding(cluster, node=a_node(cluster, "gpu-1", pool=pool), severity="critical"))
    happened(a_finding(cluster, node=a_node(cluster, "gpu-2"), severity="critical"))

    route()

    assert sent() == [("pager", "open"), ("chat", "open")]
    assert list(Delivery.objects.order_by("pk").values_list("route_name", flat=True)) == ["pages", "Everything else"]


def test_without_a_channel_nothing_is_sent_and_nothing_waits(cluster, route):
    happened(a_finding(cluster))

    route()

    assert sent() == []
    assert not DomainEvent.objects.waiting().exists()


@pytest.mark.parametrize(
    "given",
    [
        {"state": FindingState.MUTED},
        {"state": FindingState.RESOLVED, "resolved_at": NOON},
        {"is_shadow": True},
    ],
)
def test_what_is_muted_over_or_in_shadow_mode_begins_no_conversation(given, cluster, chat, route):
    finding = a_finding(cluster)
    happened(finding)
    Finding.objects.filter(pk=finding.pk).update(**given)

    route()

    assert sent() == []


def test_one_cause_pages_once(cluster, chat, route):
    node = a_node(cluster)
    cause = a_finding(cluster, node=node, rule="node-not-ready")
    happened(cause)
    for number in range(5):
        happened(a_finding(cluster, f"GPU {number} of x", node=node, parent=cause))

    route()

    assert sent() == [("chat", "open")]


def test_an_event_waits_for_its_cause_and_its_end_waits_for_it(cluster, chat, route, clock):
    finding = a_finding(cluster)
    happened(finding, is_settled=False)
    happened(finding, "finding.acknowledged", actor="ada")
    happened(a_finding(cluster, "another"))
    route()
    assert sent() == [("chat", "open")]

    clock.later(301)  # no look has settled it
    route()

    assert sent() == [("chat", "open"), ("chat", "open"), ("chat", "update")]


def test_an_acknowledgement_goes_to_those_who_know_only(cluster, chat, pager, route):
    finding = a_finding(cluster)
    happened(finding)
    route()
    happened(finding, "finding.acknowledged", actor="ada")
    happened(a_finding(cluster, "unknown"), "finding.acknowledged", actor="ada")
    route()

    assert sent() == [("chat", "open"), ("chat", "update")]
    assert Delivery.objects.first().message["happened"] == "Acknowledged by ada."


def test_what_becomes_worse_reaches_who_did_not_know(cluster, chat, pager, route):
    a_route("pages", pager, severities=["critical"])
    finding = a_finding(cluster, severity="warning")
    happened(finding)
    route()
    Finding.objects.filter(pk=finding.pk).update(severity="critical")
    finding.refresh_from_db()
    happened(finding, "finding.worse", was="warning")
    route()
    happened(finding, "finding.resolved", reason="")
    route()

    assert sent() == [
        ("chat", "open"), ("chat", "update"), ("pager", "open"), ("chat", "resolve"), ("pager", "resolve"),
    ]  # fmt: skip


def test_what_opens_again_begins_another_conversation_of_the_same_key(cluster, chat, route):
    finding = a_finding(cluster)
    for kind in ("finding.opened", "finding.resolved", "finding.opened"):
        happened(finding, kind, **({"reason": ""} if kind == "finding.resolved" else {}))
        route()

    assert [act for _, act in sent()] == ["open", "resolve", "open"]
    assert len(set(Delivery.objects.values_list("key", flat=True))) == 1


def test_a_plan_and_its_approvals_are_conversations_that_its_end_ends(chat, route):
    plan = a_plan()
    stage = plan.stages.get(index=0)
    wanted = plan.event_of("plan.approval-wanted", now=NOON, actor="engine", reason="Nobody has approved it.")
    wanted.key += f"/stage/{stage.pk}"
    wanted.facts |= {"severity": "warning", "stage": stage.pk, "stage_name": stage.name}
    DomainEvent.write([wanted])
    route()
    for to in (PlanState.ABORTING, PlanState.ABORTED):
        plan.move(to, now=NOON, actor="ada", reason="Not today.")
    route()

    assert [act for _, act in sent()] == ["open", "open", "resolve", "resolve"]
    assert len(set(Delivery.objects.values_list("message__key", flat=True))) == 2
    assert not Conversation.objects.open().exists()


def test_many_at_once_become_one_message_that_ends_with_the_last_of_them(cluster, chat, route, clock):
    findings = [a_finding(cluster, f"node {number}") for number in range(STORM + 30)]
    for finding in findings:
        happened(finding)
    route()
    assert sorted(act for _, act in sent()) == ["digest", *["open"] * STORM]

    for finding in findings[:-1]:
        happened(finding, "finding.resolved", reason="")
    route()
    assert sum(act == "resolve" for _, act in sent()) == STORM
    happened(findings[-1], "finding.resolved", reason="")
    route()

    assert sum(act == "resolve" for _, act in sent()) == STORM + 1
    assert not Conversation.objects.open().exists()


def test_a_machine_gets_each_of_many(cluster, route):
    catch_all(a_channel("machine", "webhook", address="https://hooks.example.org"))
    for number in range(STORM + 5):
        happened(a_finding(cluster, f"node {number}"))

    route()

    assert sent() == [("machine", "open")] * (STORM + 5)


def test_it_costs_no_more_for_more_events(cluster, chat, route):
    Route.catch_all()
    costs = []
    for number in (2, STORM):
        for each in range(number):
            happened(a_finding(cluster, f"{number} {each}", node=a_node(cluster)))
        with CaptureQueriesContext(connection) as asked:
            route()
        costs.append(len(asked))

    assert costs[1] <= costs[0] + 6  # SQLite writes a few rows in each statement, and the storm begins
