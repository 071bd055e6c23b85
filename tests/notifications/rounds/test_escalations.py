"""The second channel of a route, by real HTTP: for messages that nobody answers, or that are not delivered."""

import pytest

from fleet.models import DomainEvent
from notifications.models import Channel, Conversation, Delivery
from notifications.models.router import KEY
from notifications.rounds import router_round
from notifications.rounds.router_round import run_router
from rollouts.lifecycle import PlanState
from tests.make import NOON, a_cluster, a_finding, a_node, a_plan
from tests.notifications.make import a_channel, catch_all, happened
from tests.notifications.receivers import Answer, a_receiver

pytestmark = pytest.mark.django_db
MINUTE = 60


@pytest.fixture
def second(receiver):
    with a_receiver() as other:
        yield other


@pytest.fixture
def channels(receiver, second):
    secret = "env:QUARTERDECK_CHANNEL_KEY"
    first = a_channel("first", "pagerduty", address=receiver.url, secret_from=secret)
    backup = a_channel("backup", "pagerduty", address=second.url, secret_from=secret)
    catch_all(first, escalates_to=backup, escalates_after_min=15)
    return first, backup


@pytest.fixture
def finding():
    cluster = a_cluster("eu-1")
    return a_finding(cluster, node=a_node(cluster, "gpu-001"), severity="critical")


def actions(receiver) -> list[str]:
    return [each.json["event_action"] for each in receiver.received]


def test_what_nobody_answers_in_time_goes_to_the_second_channel_once(
    channels, finding, receiver, second, route_and_send, clock
):
    happened(finding)
    route_and_send()
    clock.later(15 * MINUTE - 1)
    route_and_send()
    assert actions(second) == []

    clock.later(1)
    for _ in range(3):
        route_and_send()
        clock.later(15 * MINUTE)

    assert (actions(receiver), actions(second)) == (["trigger"], ["trigger"])
    (page,) = second.received
    first = receiver.received[0].json["payload"]["custom_details"]
    assert first["next"].endswith("Without an answer, backup gets it at 2026-11-21 12:15 UTC.")
    happened_text = page.json["payload"]["custom_details"]["happened"]
    assert happened_text == "Nobody has answered in first since 2026-11-21 12:00 UTC."
    assert page.json["dedup_key"] == receiver.received[0].json["dedup_key"]


@pytest.mark.parametrize(("kind", "facts"), [("finding.acknowledged", {"actor": "ada"}), ("finding.muted", {})])
def test_an_answer_stops_it(kind, facts, channels, finding, second, route_and_send, clock):
    happened(finding)
    route_and_send()
    if kind == "finding.acknowledged":
        finding.acknowledged_at = clock()
        finding.save()
    happened(finding, kind, **facts)
    route_and_send()

    clock.later(20 * MINUTE)
    route_and_send()

    assert actions(second) == []


def test_whoever_gives_it_back_starts_the_time_again(channels, finding, second, route_and_send, clock):
    happened(finding)
    happened(finding, "finding.acknowledged", actor="ada")
    happened(finding, "finding.unassigned", actor="ada", at=clock())
    route_and_send()

    clock.later(15 * MINUTE)
    route_and_send()

    assert actions(second) == ["trigger"]


def test_its_end_goes_to_both(channels, finding, receiver, second, route_and_send, clock):
    happened(finding)
    route_and_send()
    clock.later(15 * MINUTE)
    route_and_send()

    happened(finding, "finding.resolved", reason="")
    route_and_send()

    assert actions(receiver) == actions(second) == ["trigger", "resolve"]


def test_what_is_refused_goes_to_the_second_channel_at_once(channels, finding, receiver, second, route_and_send, clock):
    receiver.answers = [Answer(400, '{"message": "Invalid routing key"}')]
    happened(finding)
    route_and_send()

    route_and_send()

    assert actions(second) == ["trigger"]
    assert "Not delivered to first" in second.received[0].json["payload"]["custom_details"]["happened"]


def test_what_is_not_accepted_five_times_goes_there_too_and_is_still_tried(
    channels, finding, receiver, second, route_and_send, clock
):
    catch_all(channels[0], escalates_after_min=1000)
    receiver.answers = [Answer(503)]
    happened(finding)
    for seconds in (0, 6, 31, 121, 301):
        clock.later(seconds)
        route_and_send()
    assert len(receiver.received) == 5
    route_and_send()
    assert actions(second) == ["trigger"]

    receiver.answers = [Answer()]
    clock.later(601)
    route_and_send()

    assert Delivery.objects.get(channel=channels[0]).state == "sent"


def test_what_ends_before_the_second_channel_is_used_never_goes_there(
    channels, finding, receiver, second, route_and_send, clock
):
    receiver.answers = [Answer(400)]
    happened(finding)
    route_and_send()
    happened(finding, "finding.resolved", reason="")

    clock.later(MINUTE)
    route_and_send()

    assert actions(second) == []
    assert not Conversation.objects.exclude(escalates_at=None).exists()


def test_a_worker_killed_while_it_escalates_loses_and_doubles_nothing(
    channels, finding, second, route_and_send, clock, monkeypatch
):
    happened(finding)
    route_and_send()
    clock.later(15 * MINUTE)
    with monkeypatch.context() as dying:
        dying.setattr(router_round, "wake_channels", lambda *_, **__: None)
        dying.setattr("notifications.rounds.escalations.RoutedBatch.write", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_router(KEY, owner="worker-1", clock=clock)

    clock.later(31)
    for _ in range(2):
        route_and_send()

    assert actions(second) == ["trigger"]


def test_the_start_of_a_plan_needs_no_answer(channels, second, route_and_send, clock):
    plan = a_plan()
    DomainEvent.write([plan.event_of("plan.started", now=NOON, actor="ada", reason="")])
    route_and_send()
    clock.later(60 * MINUTE)
    route_and_send()

    assert actions(second) == []


def test_a_second_channel_that_is_switched_off_gets_nothing(channels, finding, second, route_and_send, clock):
    happened(finding)
    route_and_send()
    Channel.objects.filter(pk=channels[1].pk).update(is_on=False)

    clock.later(15 * MINUTE)
    route_and_send()

    assert actions(second) == []
    assert not Conversation.objects.exclude(escalates_at=None).exists()


def test_the_end_of_a_plan_answers_its_approvals_too(channels, second, route_and_send, clock):
    plan = a_plan()
    stage = plan.stages.get(index=0)
    wanted = plan.event_of("plan.approval-wanted", now=NOON, actor="engine", reason="Nobody has approved it.")
    wanted.key += f"/stage/{stage.pk}"
    wanted.facts |= {"severity": "warning", "stage": stage.pk, "stage_name": stage.name}
    DomainEvent.write([wanted])
    route_and_send()
    for to in (PlanState.ABORTING, PlanState.ABORTED):
        plan.move(to, now=NOON, actor="ada", reason="Not today.")

    route_and_send()
    clock.later(20 * MINUTE)
    route_and_send()

    assert actions(second) == []
