"""Requests to owners that reached nobody are shown: "asked" is not true of them."""

from datetime import timedelta

import pytest

from notifications.models import Delivery
from notifications.models.router import KEY
from notifications.queries import lost_requests
from notifications.rounds.router_round import run_router
from operations.kinds import KINDS
from operations.models import Operation
from tests.make import NOON, a_cluster, a_node, a_user, an_operation
from tests.notifications.make import a_channel, catch_all
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def drain() -> Operation:
    node = a_node(a_cluster(), "gpu-0")
    drain = an_operation(node.cluster, node.name, steps=KINDS["drain"].steps, options={"ask_owners": True})
    for kind in ("operation.owners-asked", "operation.pods-block"):
        drain.write_event(kind, now=NOON, actor="engine", reason="Please end Job team-a/web.", jobs={})
    return drain


def test_a_request_that_is_not_routed_yet_is_not_sent(drain):
    assert lost_requests(drain, now=NOON) == ["Messages to owners that are not sent yet: 2 of 2."]


def test_requests_without_a_channel_are_shown_on_the_page_of_the_drain(drain, clock):
    catch_all(a_channel("ops", "slack", is_on=False))
    run_router(KEY, owner="worker-1", clock=clock)

    assert lost_requests(drain, now=NOON) == ["Messages to owners that no route sends to a channel: 2 of 2."]
    text = page(visiting(a_user("vera", role="viewer")), f"/operations/{drain.pk}").text
    assert "no route sends to a channel: 2 of 2" in text
    assert lost_requests(drain, now=NOON + timedelta(days=91)) == [], "the log of that time is deleted"


def test_requests_that_a_channel_got_are_not_lost_unless_it_accepted_none(drain, clock):
    catch_all(a_channel("ops", "slack"))
    run_router(KEY, owner="worker-1", clock=clock)

    assert lost_requests(drain, now=NOON) == []
    Delivery.objects.filter(event__kind="operation.pods-block").update(state="dead")
    assert lost_requests(drain, now=NOON) == ["Messages to owners that no channel accepted: 1 of 2."]


def test_requests_in_a_digest_of_quiet_hours_are_not_lost(drain):
    ops = a_channel("ops", "slack")
    ops.conversations.create(key=drain.event_key, digest_key=f"digest/quiet/{ops.pk}/1", opened_at=NOON)
    drain.owner_events.update(routed_at=NOON)

    assert lost_requests(drain, now=NOON) == []
