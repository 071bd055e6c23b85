"""However many findings open or end at once, no transaction is long: a person's halt finds a gap (Z40)."""

from datetime import timedelta
from threading import Thread

import pytest
from django.db import connection
from django.test import Client

from benchmarks.writes import watch_writes
from edges import slices
from fleet.models import Bookmark, DomainEvent, Node, Observer
from health.evaluation import evaluation_round
from health.inbox import orphaned_findings, rule_mutes, shadow_mode, telemetry_sources
from health.models import Finding, FindingAct, TelemetrySource
from rollouts.commands import plan_control
from tests.make import NOON, a_cluster, a_finding, a_fleet, a_plan, a_source, a_user, some_nodes, unsaved_node
from tests.patience import PATIENCE_S
from tests.rollouts.rows import in_state

MANY = 210  # two slices
FEW = 14
LATER = NOON + timedelta(days=1)
LONGEST_CPU_MS = 250  # of the thread: a busy machine takes longer by the clock
GPU = "nvidia.com/gpu"
SICK = {"allocatable": {GPU: 7}, "capacity": {GPU: 8}, "expected": {GPU: 8}}
WELL = {GPU: 8}

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster():
    return a_sick_cluster(MANY)


@pytest.fixture
def small_cluster(monkeypatch):
    """Of two slices, too: they are small."""
    monkeypatch.setattr(slices, "ROWS", 10)
    return a_sick_cluster(FEW)


def a_sick_cluster(nodes):
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    some_nodes([unsaved_node(cluster, f"gpu-{number:04}", **SICK) for number in range(nodes)])
    return cluster


def look(cluster, minutes):
    at = NOON + timedelta(minutes=minutes)
    Bookmark.objects.filter(cluster=cluster).update(last_seen_at=at)
    return evaluation_round.evaluate_cluster(cluster, now=at)


def counted(cluster) -> set[int]:
    return set(Node.objects.filter(cluster=cluster).values_list("unresolved", flat=True))


@pytest.mark.sqlite
def test_what_opens_and_ends_at_once_is_written_in_short_transactions(cluster):
    with watch_writes() as opening:
        look(cluster, 0)
        assert look(cluster, 2) == MANY
    assert counted(cluster) == {1}
    Node.objects.filter(cluster=cluster).update(allocatable=WELL)

    with watch_writes() as ending:
        assert look(cluster, 4) == MANY

    assert not Finding.objects.unresolved().exists()
    assert counted(cluster) == {0}
    assert DomainEvent.objects.count() == 2 * MANY
    assert max(opening.longest_cpu_ms, ending.longest_cpu_ms) <= LONGEST_CPU_MS


@pytest.fixture
def others(monkeypatch) -> list[str]:
    """What a person is answered who halts a plan and signs in between two slices, each time anew."""
    ada, answers, truly = a_user("ada", role="admin"), [], evaluation_round.slices
    ada.set_password("secret")
    ada.save()

    def halt_and_sign_in() -> None:
        try:
            plan = in_state(a_plan(a_fleet()), "promoting")
            plan_control.halt(plan, actor=ada, reason="Smoke.", now=NOON)
            plan.refresh_from_db()
            signed_in = Client().post("/sign-in", {"username": "ada", "password": "secret"})
            answers.extend([plan.state, signed_in.status_code])
        finally:
            connection.close()

    def interrupted(rows):
        for number, some in enumerate(truly(rows)):
            if number == 1:
                thread = Thread(target=halt_and_sign_in)
                thread.start()
                thread.join(PATIENCE_S)
            yield some

    monkeypatch.setattr(evaluation_round, "slices", interrupted)
    return answers


@pytest.mark.sqlite
def test_a_halt_and_a_sign_in_are_done_while_findings_open_and_while_they_end(small_cluster, others):
    look(small_cluster, 0)
    others.clear()

    look(small_cluster, 2)
    assert others == ["halted", 302]
    others.clear()
    Node.objects.filter(cluster=small_cluster).update(allocatable=WELL)

    assert look(small_cluster, 4) == FEW
    assert others == ["halted", 302]


def test_a_worker_that_dies_between_two_slices_is_followed_by_one_that_ends_the_rest(small_cluster, monkeypatch):
    look(small_cluster, 0)
    look(small_cluster, 2)
    Node.objects.filter(cluster=small_cluster).update(allocatable=WELL)
    truly, turns = evaluation_round._resolve_some, []

    def dies(*given, **named):
        turns.append(1)
        if len(turns) == 2:
            raise SystemExit
        return truly(*given, **named)

    monkeypatch.setattr(evaluation_round, "_resolve_some", dies)
    with pytest.raises(SystemExit):
        look(small_cluster, 4)
    left = Finding.objects.open().count()
    monkeypatch.undo()

    assert 0 < left < FEW
    assert look(small_cluster, 5) == left
    assert counted(small_cluster) == {0}


@pytest.mark.nightly
def test_a_mute_of_a_whole_cluster_is_in_short_transactions_and_what_it_left_the_next_look_silences(
    cluster, monkeypatch
):
    look(cluster, 0)
    look(cluster, 2)
    rule, at = Finding.objects.open().first().rule, NOON + timedelta(minutes=3)
    monkeypatch.setattr(rule_mutes, "TIMEOUT_S", 0.0)

    with watch_writes() as muted:
        rule_mutes.mute(rule_mutes.mute_of_place(cluster, rule), actor="ada", reason="A move.", until=LATER, now=at)
        left = Finding.objects.open().count()
        rule_mutes.go_on(cluster, now=at)

    assert 0 < left <= MANY
    assert Finding.objects.muted().count() == FindingAct.objects.filter(verb="mute", by="ada").count() == MANY
    assert counted(cluster) == {0}
    assert muted.longest_cpu_ms <= LONGEST_CPU_MS


@pytest.mark.nightly
def test_what_a_mute_silenced_opens_in_short_transactions_when_it_is_lifted(cluster):
    look(cluster, 0)
    look(cluster, 2)
    rule, at = Finding.objects.open().first().rule, NOON + timedelta(minutes=3)
    row = rule_mutes.mute(rule_mutes.mute_of_place(cluster, rule), actor="ada", reason="A move.", until=LATER, now=at)
    rule_mutes.go_on(cluster, now=at)

    with watch_writes() as lifted:
        rule_mutes.lift(row, actor="ada", reason="It is over.", now=at)

    assert Finding.objects.open().count() == MANY
    assert counted(cluster) == {1}
    assert lifted.longest_cpu_ms <= LONGEST_CPU_MS


@pytest.fixture
def hot(cluster):
    """A source of telemetry, and a GPU that it finds too hot on each node."""
    for node in Node.objects.filter(cluster=cluster):
        a_finding(cluster, f"GPU 3 of {node.name}", node=node, rule="gpu-hot")
    return a_source(cluster)


def test_what_a_removed_source_found_ends_in_short_transactions_and_the_next_look_ends_what_is_left(
    cluster, hot, monkeypatch
):
    monkeypatch.setattr(orphaned_findings, "TIMEOUT_S", 0.0)

    with watch_writes() as removed:
        telemetry_sources.remove_source(hot, actor="ada", now=NOON)
        left = Finding.objects.open().count()
        orphaned_findings.go_on(cluster, now=NOON)

    assert 0 < left <= MANY
    assert not Finding.objects.unresolved().exists()
    assert counted(cluster) == {0}
    assert DomainEvent.objects.count() == MANY
    assert removed.longest_cpu_ms <= LONGEST_CPU_MS


@pytest.mark.nightly
def test_a_source_that_is_added_before_all_is_ended_keeps_the_rest(cluster, hot, monkeypatch):
    monkeypatch.setattr(orphaned_findings, "TIMEOUT_S", 0.0)
    telemetry_sources.remove_source(hot, actor="ada", now=NOON)
    left = Finding.objects.open().count()
    a_source(cluster)

    orphaned_findings.go_on(cluster, now=NOON)
    TelemetrySource.objects.all().delete()
    orphaned_findings.go_on(cluster, now=NOON)

    assert Finding.objects.open().count() == left > 0


def test_a_rule_on_trial_changes_sides_in_short_transactions_and_the_next_look_ends_what_is_left(
    small_cluster, monkeypatch
):
    look(small_cluster, 0)
    look(small_cluster, 2)
    rule, at = Finding.objects.open().first().rule, NOON + timedelta(minutes=3)
    truly, turns = shadow_mode.move_findings, []

    def dies(*given):
        turns.append(1)
        if len(turns) == 2:
            raise SystemExit
        return truly(*given)

    monkeypatch.setattr(shadow_mode, "move_findings", dies)
    with watch_writes() as turned, pytest.raises(SystemExit):
        shadow_mode.begin(rule, actor="ada", reason="Too many.", now=at)
    left = Finding.objects.open().count()

    assert 0 < left < FEW
    look(small_cluster, 4)
    assert not Finding.objects.open().exists()
    assert counted(small_cluster) == {0}
    assert turned.longest_cpu_ms <= LONGEST_CPU_MS
