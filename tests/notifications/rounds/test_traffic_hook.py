"""The traffic hook: a signed call per pool before and after a change and on a halt, which nothing waits for."""

import pytest

from edges.webhook_signatures import signature
from fleet.models import DomainEvent
from health.sources import posts
from health.telemetry.prometheus.client import Bounds
from notifications.models import Delivery, Preference
from rollouts.commands import plan_control
from rollouts.lifecycle import PlanState, StageState
from rollouts.models import Plan, Target
from rollouts.models.traffic import DRAIN, UNDRAIN, call_traffic_hook
from tests.callers import calling
from tests.make import NOON, a_plan, a_user
from tests.notifications.make import SIGNING, a_channel, a_route, catch_all
from tests.notifications.receivers import Answer
from tests.pages import visiting
from tests.rollouts.rows import in_state

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan() -> Plan:
    """One whose node was released, and changed."""
    plan = in_state(a_plan(), "promoting")
    plan.stages.filter(index=0).update(state=StageState.PROMOTING)
    wave = plan.stages.get(index=0).waves.create(number=1, decided_at=NOON, reason="")
    Target.objects.filter(stage__plan=plan, stage__index=0).update(state="changed", released_at=NOON, wave=wave)
    DomainEvent.objects.all().delete()
    return plan


@pytest.fixture
def pool(plan):
    return plan.cluster.pools.get()


@pytest.fixture
def hook(receiver, plan, pool):
    channel = a_channel("traffic", address=f"{receiver.url}/traffic", secret_from="env:QUARTERDECK_CHANNEL_KEY")
    a_route("traffic", channel, kinds=["traffic"], places=[f"{plan.cluster.name}/{pool.name}"])
    return channel


def halt(plan: Plan) -> None:
    plan_control.halt(plan, actor=a_user("pam", role="operator"), reason="Pods fail.", now=NOON)


def test_a_halt_drains_the_changed_nodes_by_a_signed_call(plan, pool, hook, receiver, route_and_send):
    halt(plan)
    route_and_send()

    (got,) = receiver.received
    data = got.json["data"]
    at = got.headers["webhook-timestamp"]
    assert got.headers["webhook-signature"] == signature(SIGNING, got.headers["webhook-id"], at, got.body)
    assert (got.json["type"], data["labels"]["action"]) == ("traffic.drain", "drain")
    assert data["labels"]["pool"] == f"{plan.cluster.name}/{pool.name}"
    assert data["details"] == list(
        Target.objects.filter(stage__plan=plan, stage__index=0).values_list("node_name", flat=True)
    )
    assert data["summary"] == "Pods fail."


def test_a_call_is_sent_again_as_soon_as_a_page(plan, hook, receiver, route_and_send, clock):
    receiver.answers = [Answer(500), Answer(500), Answer()]
    halt(plan)
    for seconds in (6, 31, 0):
        route_and_send()
        clock.later(seconds)

    assert Delivery.objects.get().state == "sent"


def test_people_who_want_every_critical_event_have_no_calls(plan, hook, route_and_send):
    person = a_user("vic", role="viewer")
    mail = a_channel("vic-mail", kind="mail", recipients=["vic@example.org"])
    Preference.objects.create(person=person, severities=["critical"], channel=mail, changed_at=NOON)
    halt(plan)
    route_and_send()

    assert [call.channel_name for call in Delivery.objects.all()] == ["traffic"]


def test_a_stage_that_passes_undrains_what_its_waves_drained(plan, hook, receiver, route_and_send):
    stage = plan.stages.get(index=0)
    uids = list(stage.targets.values_list("node_uid", flat=True))
    call_traffic_hook(DRAIN, plan, uids, now=NOON, actor="engine", reason="Wave 1 of Canary.")
    route_and_send()
    stage.move(StageState.SOAKING, now=NOON, actor="engine", reason="All changed.")
    stage.move(StageState.PASSED, now=NOON, actor="engine", reason="Every gate passed.")
    route_and_send()

    assert [got.json["type"] for got in receiver.received] == ["traffic.drain", "traffic.undrain"]


def test_the_end_of_a_plan_undrains_what_its_halt_drained(plan, hook, receiver, route_and_send):
    halt(plan)
    plan.refresh_from_db()
    for to in (PlanState.ABORTING, PlanState.ABORTED):
        plan.move(to, now=NOON, actor="engine", reason="Given up.")
    route_and_send()

    assert [got.json["type"] for got in receiver.received] == ["traffic.drain", "traffic.undrain"]


def test_a_resumed_plan_gives_the_traffic_back_once_its_stage_passes(plan, hook, receiver, route_and_send):
    halt(plan)
    plan.refresh_from_db()
    plan.move(PlanState.PROMOTING, now=NOON, actor="pam", reason="The pods run again.")
    route_and_send()
    before = [got.json["type"] for got in receiver.received]
    for to in (StageState.PROMOTING, StageState.SOAKING, StageState.PASSED):
        plan.stages.get(index=0).move(to, now=NOON, actor="engine", reason="Every gate passed.")
    route_and_send()

    assert before == ["traffic.drain"]
    assert [got.json["type"] for got in receiver.received] == ["traffic.drain", "traffic.undrain"]


def test_a_plan_that_went_back_gives_the_traffic_back(plan, hook, receiver, route_and_send):
    halt(plan)
    plan.refresh_from_db()
    for to in (PlanState.ROLLING_BACK, PlanState.ROLLED_BACK):
        plan.move(to, now=NOON, actor="engine", reason="Every node runs the old driver.")
    route_and_send()

    assert [got.json["type"] for got in receiver.received] == ["traffic.drain", "traffic.undrain"]


def test_a_node_that_is_drained_again_after_a_recall_is_drained(plan, hook, receiver, route_and_send):
    uids = list(plan.stages.get(index=0).targets.values_list("node_uid", flat=True))
    for kind in (DRAIN, UNDRAIN, DRAIN):
        call_traffic_hook(kind, plan, uids, now=NOON, actor="engine", reason="A wave.")
        route_and_send()

    assert [got.json["type"] for got in receiver.received] == [DRAIN, UNDRAIN, DRAIN]


def test_a_receiver_that_refuses_connections_delays_no_halt(plan, hook, receiver, route_and_send):
    type(hook).objects.filter(pk=hook.pk).update(address="http://127.0.0.1:1/traffic")  # nobody listens there
    halt(plan)
    route_and_send()

    call = Delivery.objects.get()
    assert Plan.objects.get(pk=plan.pk).state == PlanState.HALTED
    assert (call.state, call.status, call.attempts) == ("waiting", 0, 1)
    assert call.next_try_at is not None


def test_only_a_route_that_names_traffic_has_the_calls(plan, receiver, route_and_send):
    catch_all(a_channel("pager", address=f"{receiver.url}/pager", secret_from="env:QUARTERDECK_CHANNEL_KEY"))
    halt(plan)
    route_and_send()

    assert receiver.received == []
    assert not Delivery.objects.exists()


@pytest.mark.parametrize(
    ("answer", "state", "status", "says"),
    [
        (Answer(after_s=0.3), "sent", 200, ""),
        (Answer(500, "drain failed"), "waiting", 500, "drain failed"),
        (Answer(after_s=3), "waiting", 0, "longer than 1 s"),
    ],
    ids=["late", "500", "never"],
)
def test_the_halt_waits_for_no_answer_and_the_answer_is_on_the_plans_page(
    plan, hook, receiver, route_and_send, monkeypatch, answer, state, status, says
):
    monkeypatch.setattr(posts, "BOUNDS", Bounds(connect_s=1.0, read_s=1.0, answer_s=1.0, answer_bytes=16 << 10))
    receiver.answers = [answer]
    halt(plan)
    assert Plan.objects.get(pk=plan.pk).state == PlanState.HALTED
    assert receiver.received == []

    route_and_send()

    call = Delivery.objects.get()
    assert (call.state, call.status, call.attempts) == (state, status, 1)
    assert says in call.sentence
    viewer = a_user("vic", role="viewer")
    shown = visiting(viewer).get(f"/parts/plans/{plan.pk}/traffic").content.decode()
    assert "drain traffic, 1 node" in shown
    (row,) = calling(viewer).get(f"/api/v1/plans/{plan.pk}/traffic-calls").json()["results"]
    assert (row["state"], row["status"], row["sentence"]) == (state, status, call.sentence)
