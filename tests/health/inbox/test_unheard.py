"""A source of telemetry is taken away: what only it could tell ends with it."""

from datetime import timedelta

import pytest

from fleet.models import ExportersState, Node, NodeEvent, Observer
from health.inbox import listening, muting, unheard
from health.lifecycle import FindingState
from health.models import Finding, TelemetrySource
from health.sources import frames
from health.telemetry.frame import GpuDevice
from tests.health.inbox.test_twins import told
from tests.make import NOON, a_cluster, a_finding, a_node, a_source, an_exporter_round

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
    return a_finding(cluster, SUBJECT, node=node, rule="gpu-hot", sentence=SENTENCE)


def remove(cluster) -> None:
    listening.remove_source(TelemetrySource.objects.get(cluster=cluster), actor="ada", now=NOON)


def switch_off(cluster) -> None:
    listening.put_source(cluster, actor="ada", now=NOON, is_on=False)


@pytest.mark.parametrize("take_away", [remove, switch_off])
def test_what_only_it_told_is_resolved_and_says_why(cluster, node, hot, take_away, django_capture_on_commit_callbacks):
    idle = a_finding(cluster, node=node, rule="idle-gpus")
    a_finding(cluster, "GPU 5 of gpu-001", node=node, rule="gpu-hot", opened_at=None)
    other = a_finding(cluster, node=node, rule="node-conditions", parent=hot)
    frames.keep(cluster.pk, told(GpuDevice("gpu-001", 3, "GPU-3"), temperature_celsius=[90]))

    with django_capture_on_commit_callbacks(execute=True):
        take_away(cluster)

    assert list(Finding.objects.unresolved()) == [other]
    assert Finding.objects.get(pk=other.pk).parent is None
    over = Finding.objects.filter(pk__in=[hot.pk, idle.pk]).values_list("state", "resolved_at", "resolved_because")
    assert set(over) == {(FindingState.RESOLVED, NOON, "nobody listens to its GPUs any more")}
    line = NodeEvent.objects.get(detail__finding=hot.pk)
    assert line.sentence == f"No longer told, as nobody listens to its GPUs any more: {SENTENCE}"
    assert Node.objects.get().unresolved == 1
    assert frames.newest(cluster.pk) is None


def test_what_was_muted_is_over_too(cluster, hot):
    until = NOON + timedelta(days=1)
    muting.mute(muting.scoped(hot, "finding"), actor="ada", because="RMA", until=until, now=NOON)

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
    listening.put_source(cluster, actor="ada", now=NOON, matchers='cluster="eu-1"')

    assert list(Finding.objects.unresolved()) == [hot]


def test_what_a_look_wrote_that_had_heard_it_before_is_resolved(cluster, node):
    remove(cluster)
    late = a_finding(cluster, SUBJECT, node=node, rule="gpu-hot", updated_at=NOON)
    before = a_finding(cluster, "GPU 5 of gpu-001", node=node, rule="gpu-hot", updated_at=NOON - timedelta(seconds=1))

    unheard.resolve_late(cluster, looked_at=NOON)

    assert Finding.objects.get(pk=late.pk).state == FindingState.RESOLVED
    assert list(Finding.objects.unresolved()) == [before]


def test_what_a_look_found_while_somebody_listens_stays(cluster, hot):
    unheard.resolve_late(cluster, looked_at=NOON)

    assert list(Finding.objects.unresolved()) == [hot]
