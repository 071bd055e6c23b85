from datetime import timedelta

import pytest

from fleet import retention
from fleet.models import DomainEvent, NodeEvent
from people.models import AuditEntry
from tests.make import NOON, a_cluster, a_node, a_node_event

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
LONG_AGO = NOON - timedelta(days=500)


def test_old_lines_of_a_timeline_go_and_new_ones_stay():
    node = a_node(a_cluster())
    a_node_event(node, "Old.", at=LONG_AGO)
    a_node_event(node, "New.", at=NOON)

    retention.tidy(now=NOON)

    assert [event.sentence for event in NodeEvent.objects.all()] == ["New."]


def test_an_old_event_goes_unless_its_notifications_still_wait():
    cluster = a_cluster()
    for kind in ("plan.halted", "plan.started"):  # of the first nobody is notified
        DomainEvent.write([DomainEvent.of(kind, "plan/7", cluster_id=cluster.pk, at=LONG_AGO, facts={})])

    retention.tidy(now=NOON)

    assert DomainEvent.objects.get().kind == "plan.started"


def test_decisions_stay_for_good():
    AuditEntry.record("plan-1", verb="start", actor="ada", now=LONG_AGO)

    retention.tidy(now=NOON)

    assert AuditEntry.objects.count() == 1
