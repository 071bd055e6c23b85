"""A source of telemetry is taken away, or all exporters are: what only they could tell ends with them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Bookmark, DomainEvent, ExportersState, Node, Observer
from health import tasks
from health.inbox import orphaned_findings, rule_mutes, telemetry_sources
from health.lifecycle import FindingState
from health.models import Finding, TelemetrySource
from health.sources import snapshots
from health.telemetry.snapshot import GpuDevice
from tests.health.inbox.test_comparable_nodes import told
from tests.make import NOON, a_bookmark, a_cluster, a_finding, a_node, a_source, an_exporter_round, an_operand

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]
SUBJECT, SENTENCE = "GPU 3 of gpu-001", "GPU 3 of gpu-001 is too hot."


@pytest.fixture
def cluster():
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    a_source(cluster)
    return cluster


@pytest.fixture
def node(cluster):
    return a_node(cluster, "gpu-001", unresolved=2)


@pytest.fixture
def hot(cluster, node):
    return a_finding(cluster, SUBJECT, node=node, rule="gpu-hot", title=SENTENCE)


def remove(cluster) -> None:
    telemetry_sources.remove_source(TelemetrySource.objects.get(cluster=cluster), actor="ada", now=NOON)


def switch_off(cluster) -> None:
    telemetry_sources.put_source(cluster, actor="ada", now=NOON, is_on=False)


@pytest.mark.parametrize("take_away", [remove, switch_off])
def test_what_only_it_told_is_resolved_and_says_why(cluster, node, hot, take_away, django_capture_on_commit_callbacks):
    idle = a_finding(cluster, node=node, rule="idle-gpus")
    a_finding(cluster, "GPU 5 of gpu-001", node=node, rule="gpu-hot", opened_at=None)
    other = a_finding(cluster, node=node, rule="node-conditions", parent=hot)
    snapshots.store(cluster.pk, told(GpuDevice("gpu-001", 3, "GPU-3"), temperature_celsius=[90]))

    with django_capture_on_commit_callbacks(execute=True):
        take_away(cluster)

    assert list(Finding.objects.unresolved()) == [other]
    assert Finding.objects.get(pk=other.pk).parent is None
    over = Finding.objects.filter(pk__in=[hot.pk, idle.pk]).values_list("state", "resolved_at", "resolved_reason")
    assert set(over) == {(FindingState.RESOLVED, NOON, "nobody listens to its GPUs any more")}
    line = DomainEvent.objects.get(key=f"finding/{hot.pk}")
    assert line.sentence == f"No longer reported, as nobody listens to its GPUs any more: {SENTENCE}"
    assert Node.objects.get().unresolved == 1
    assert snapshots.newest(cluster.pk) is None


def test_what_was_muted_is_over_too(cluster, hot):
    until = NOON + timedelta(days=1)
    rule_mutes.mute(rule_mutes.scoped(hot, "finding"), actor="ada", reason="RMA", until=until, now=NOON)

    remove(cluster)

    assert Finding.objects.get().state == FindingState.RESOLVED


@pytest.mark.parametrize("take_away", [remove, switch_off])
def test_exporters_that_answer_take_over_and_judge_it(cluster, hot, take_away):
    an_exporter_round(cluster, exporters=1, answered=1)

    take_away(cluster)

    assert list(Finding.objects.unresolved()) == [hot]


@pytest.mark.parametrize(
    "said",
    [
        {"state": ExportersState.TOO_MANY, "exporters": 300},
        {"exporters": 1, "answered": 1, "read_at": NOON - timedelta(minutes=5)},
    ],
)
def test_exporters_that_nobody_hears_do_not(cluster, hot, said):
    an_exporter_round(cluster, **said)

    remove(cluster)

    assert not Finding.objects.unresolved().exists()


def test_a_source_that_is_changed_keeps_what_was_found(cluster, hot):
    telemetry_sources.put_source(cluster, actor="ada", now=NOON, matchers='cluster="eu-1"')

    assert list(Finding.objects.unresolved()) == [hot]


def test_what_a_look_wrote_that_had_heard_it_before_is_resolved(cluster, node):
    remove(cluster)
    a_finding(cluster, SUBJECT, node=node, rule="gpu-hot")

    orphaned_findings.go_on(cluster, now=NOON)

    assert Finding.objects.get().state == FindingState.RESOLVED


def test_what_silent_exporters_found_stays_where_no_source_was_removed(cluster, hot):
    TelemetrySource.objects.all().delete()

    orphaned_findings.go_on(cluster, now=NOON)

    assert list(Finding.objects.unresolved()) == [hot]


@pytest.fixture
def deserted(cluster):
    """Its exporters were asked, and for a quarter of an hour no pod of one is seen."""
    TelemetrySource.objects.all().delete()
    a_bookmark(cluster, "daemonsets.apps")
    since = NOON - timedelta(minutes=15)
    return an_exporter_round(cluster, state=ExportersState.NONE, state_since=since, read_at=since)


def test_what_exporters_told_that_are_all_gone_is_resolved_and_says_why(cluster, hot, deserted):
    snapshots.store(cluster.pk, told(GpuDevice("gpu-001", 3, "GPU-3"), temperature_celsius=[90]))

    orphaned_findings.resolve_gone(cluster, now=NOON)

    over = Finding.objects.get()
    assert (over.state, over.resolved_reason) == (FindingState.RESOLVED, "nobody listens to its GPUs any more")
    assert Node.objects.get().unresolved == 0
    assert snapshots.newest(cluster.pk) is not None  # should they come back


@pytest.mark.parametrize("state", [state for state in ExportersState if state != ExportersState.NONE])
def test_what_exporters_told_that_cannot_be_asked_stays(cluster, hot, deserted, state):
    deserted.state = state
    deserted.save()

    orphaned_findings.resolve_gone(cluster, now=NOON)

    assert list(Finding.objects.unresolved()) == [hot]


def test_what_exporters_told_that_are_away_for_a_moment_stays(cluster, hot, deserted):
    orphaned_findings.resolve_gone(cluster, now=NOON - timedelta(seconds=1))

    assert list(Finding.objects.unresolved()) == [hot]


def test_what_exporters_told_whose_daemon_set_makes_no_pods_now_stays(cluster, hot, deserted):
    an_operand(cluster, "dcgm-exporter", desired=0)

    orphaned_findings.resolve_gone(cluster, now=NOON)

    assert list(Finding.objects.unresolved()) == [hot]


@pytest.mark.parametrize("kind", ["nodes", "pods", "daemonsets.apps"])
def test_that_exporters_are_gone_is_not_judged_where_it_is_not_seen(cluster, hot, deserted, kind):
    Bookmark.objects.filter(kind=kind).update(last_seen_at=NOON - timedelta(minutes=2))

    orphaned_findings.resolve_gone(cluster, now=NOON)

    assert list(Finding.objects.unresolved()) == [hot]


def test_a_prometheus_that_is_asked_instead_goes_on_telling(cluster, hot, deserted):
    a_source(cluster)

    orphaned_findings.resolve_gone(cluster, now=NOON)

    assert list(Finding.objects.unresolved()) == [hot]


def test_a_round_that_finds_no_exporter_ends_what_they_told(cluster, hot, deserted):
    Bookmark.objects.update(last_seen_at=timezone.now())

    tasks.ask_exporters(cluster_id=cluster.pk)

    assert not Finding.objects.unresolved().exists()
