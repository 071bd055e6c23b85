"""The table of event kinds, and the outbox that its rows are written to."""

from string import Formatter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.event_kinds import EVENT_KINDS, EventPhase
from fleet.messages import listeners
from fleet.models import DomainEvent
from tests.make import NOON, a_cluster


def test_a_line_has_no_other_facts_than_those_of_its_kind():
    for kind in EVENT_KINDS.values():
        for line in (kind.line, kind.line_with_reason):
            names = {name for _, name, _, _ in Formatter().parse(line) if name}
            assert names <= {*kind.facts, "title"}, kind.key


def test_every_kind_names_its_subject_and_severity():
    assert [key for key, kind in EVENT_KINDS.items() if key != kind.key or "severity" not in kind.facts] == []


def test_only_what_opens_waits_for_its_cause():
    assert {kind.phase for kind in EVENT_KINDS.values() if kind.may_have_cause} == {EventPhase.OPEN}


@pytest.fixture
def heard(monkeypatch):
    heard = []
    monkeypatch.setattr(listeners, "HAPPENED", [heard.append])
    return heard


@pytest.mark.django_db
def test_readers_are_notified_once_an_event_is_settled(heard):
    cluster = a_cluster()
    event = DomainEvent.of("finding.opened", "finding/1", cluster_id=cluster.pk, at=NOON, facts={})

    DomainEvent.write([event])
    assert heard == []
    DomainEvent.settle([event.pk], cluster_id=cluster.pk)

    assert heard == [cluster.pk]
    assert list(DomainEvent.objects.unsettled()) == []


@pytest.mark.django_db
def test_a_record_and_a_kind_of_a_later_version_wake_no_router_and_are_shown(heard):
    cluster, facts = a_cluster(), {"title": "H100", "reason": "Xid 79."}
    later = DomainEvent.of("plan.halted", "plan/7", cluster_id=cluster.pk, at=NOON, facts=facts)
    later.kind, later.routed_at = "plan.paused-by-magic", None

    DomainEvent.write([DomainEvent.of("plan.halted", "plan/7", cluster_id=cluster.pk, at=NOON, facts=facts)])
    later.save()

    assert heard == []
    assert not DomainEvent.objects.waiting().exists()
    assert [event.sentence for event in DomainEvent.objects.all()] == ["H100: halted. Xid 79.", "H100: Xid 79."]
    assert DomainEvent.objects.filter(routed_at=None).get() == later


@pytest.mark.django_db
def test_many_events_are_one_statement_and_one_notice(heard):
    cluster = a_cluster()
    events = [
        DomainEvent.of("finding.resolved", f"finding/{key}", cluster_id=cluster.pk, at=NOON, facts={})
        for key in range(50)
    ]

    with CaptureQueriesContext(connection) as asked:
        DomainEvent.write(events)

    assert len([each for each in asked if each["sql"].startswith("INSERT")]) == 1
    assert heard == [cluster.pk]
