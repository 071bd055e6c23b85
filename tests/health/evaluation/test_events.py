"""The domain events that changes of findings write."""

import math
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from edges import slices
from fleet.event_kinds import EVENT_KINDS
from fleet.models import Bookmark, DomainEvent, Node, Observer
from health.evaluation import evaluation_round, finding_openings
from health.inbox import acts, rule_mutes, shadow_mode
from health.lifecycle import FindingState
from health.models import Finding
from tests.make import NOON, a_cluster, a_finding, a_mute, a_node, some_nodes, unsaved_node

GPU = "nvidia.com/gpu"
RULE = "allocatable-below-expected"
LACKS_ONE = {"allocatable": {GPU: 7}, "capacity": {GPU: 8}, "expected": {GPU: 8}}
pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=30))
    return cluster


@pytest.fixture
def node(cluster):
    return a_node(cluster, "gpu-001", **LACKS_ONE)


def look(cluster, after_s: float) -> None:
    at = NOON + timedelta(seconds=after_s)
    Bookmark.objects.filter(cluster=cluster).update(last_seen_at=at)
    evaluation_round.evaluate_cluster(cluster, now=at)


def allocatable(number: int) -> None:
    Node.objects.filter(name="gpu-001").update(allocatable={GPU: number})


def kinds() -> list[str]:
    return list(DomainEvent.objects.values_list("kind", flat=True))


def test_what_opens_and_ends_writes_both_with_the_facts_of_its_kind(cluster, node):
    look(cluster, 0)
    look(cluster, 70)
    allocatable(8)
    look(cluster, 80)

    opened, resolved = DomainEvent.objects.all()
    finding = Finding.objects.get()
    assert (opened.kind, resolved.kind) == ("finding.opened", "finding.resolved")
    assert {opened.key, resolved.key} == {f"finding/{finding.pk}"}
    assert [set(event.facts) == set(EVENT_KINDS[event.kind].facts) for event in (opened, resolved)] == [True, True]
    assert (opened.facts["title"], opened.facts["summary"]) == (finding.title, finding.summary)


def test_a_fault_that_is_not_confirmed_writes_none(cluster, node):
    look(cluster, 0)
    allocatable(8)
    look(cluster, 10)

    assert kinds() == []


def test_what_opens_is_settled_by_the_look_that_opened_it(cluster, node):
    look(cluster, 0)
    look(cluster, 70)

    assert DomainEvent.objects.get().is_settled


def test_what_a_crashed_look_left_is_settled_by_the_next(cluster, node, monkeypatch):
    look(cluster, 0)
    with monkeypatch.context() as dying:
        dying.setattr(evaluation_round, "correlate", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            look(cluster, 70)
    assert not DomainEvent.objects.get().is_settled

    look(cluster, 80)

    assert DomainEvent.objects.get().is_settled


def test_a_change_of_severity_writes_worse_and_better(cluster, node):
    look(cluster, 0)
    look(cluster, 70)
    allocatable(0)
    look(cluster, 200)
    look(cluster, 400)
    allocatable(7)
    look(cluster, 500)

    assert kinds() == ["finding.opened", "finding.worse", "finding.better"]
    worse = DomainEvent.objects.get(kind="finding.worse")
    assert (worse.facts["was"], worse.facts["severity"]) == ("warning", "critical")


def test_a_muted_finding_is_on_record_and_opens_when_its_mute_ends(cluster, node):
    mute = a_mute(cluster, rule=RULE)
    look(cluster, 0)
    look(cluster, 70)
    assert kinds() == ["finding.opened-muted"]

    rule_mutes.lift(mute, actor="ada", reason="Mended.", now=NOON + timedelta(seconds=80))

    assert kinds() == ["finding.opened-muted", "finding.opened"]
    assert set(DomainEvent.objects.values_list("node_uid", "node_name")) == {(node.uid, node.name)}


def test_muting_an_open_one_is_an_event(cluster, node):
    finding = a_finding(cluster, node=node)

    rule_mutes.mute(
        rule_mutes.scoped(finding, "finding"), actor="ada", reason="Known.", until=NOON + timedelta(hours=1), now=NOON
    )

    assert kinds() == ["finding.muted"]


def test_an_acknowledgement_names_who_gave_it(cluster, node):
    acts.acknowledge(a_finding(cluster, node=node), actor="ada", now=NOON)

    event = DomainEvent.objects.get()
    assert (event.kind, event.facts["actor"], event.is_settled) == ("finding.acknowledged", "ada", True)


def test_what_its_cause_leaves_behind_is_an_event_of_its_own(cluster, node):
    cause = a_finding(cluster, node=node, rule="node-not-ready")
    left = a_finding(cluster, node=node, parent=cause, rule="gpu-silent")
    a_finding(cluster, "muted", node=node, parent=cause, rule="gpu-silent", state=FindingState.MUTED)

    finding_openings.resolve([cause], now=NOON)

    assert set(DomainEvent.objects.values_list("kind", "key")) == {
        ("finding.uncovered", f"finding/{left.pk}"),
        ("finding.resolved", f"finding/{cause.pk}"),
    }


def test_a_rule_in_shadow_mode_writes_none_and_ends_what_was_open(cluster, node):
    look(cluster, 0)
    look(cluster, 70)

    shadow_mode.begin(RULE, actor="ada", reason="Too loud.", now=NOON + timedelta(seconds=80))
    look(cluster, 90)
    look(cluster, 200)

    assert kinds() == ["finding.opened", "finding.resolved"]


def test_many_that_open_at_once_are_written_in_one_statement_for_each_slice(cluster, monkeypatch):
    monkeypatch.setattr(slices, "LONGEST_S", math.inf)
    some_nodes([unsaved_node(cluster, f"gpu-{number:03}", **LACKS_ONE) for number in range(60)])
    look(cluster, 0)

    with CaptureQueriesContext(connection) as asked:
        look(cluster, 70)

    inserts = [each for each in asked if each["sql"].startswith("INSERT") and "domainevent" in each["sql"]]
    assert DomainEvent.objects.count() == 60
    assert len(inserts) == 1
