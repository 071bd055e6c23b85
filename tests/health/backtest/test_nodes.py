"""Rules about nodes over what is kept of their timelines."""

import tracemalloc
from datetime import timedelta

import pytest

from fleet.models import Cluster, GoneNode, Node, NodeEvent
from health.backtest.backtest import replay
from health.backtest.nodes import replay_node
from health.backtest.timelines import LONG_AGO, NodePast, pasts
from health.models import EvaluationRun, Finding, PoolLimits
from health.rules.base import Severity
from health.rules.limits import Limits
from health.rules.node_flapping import NodeFlapping
from tests.make import NOON, a_cluster, a_finding, a_node, a_node_event, a_pool

pytestmark = pytest.mark.django_db
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


@pytest.fixture
def cluster():
    return a_cluster()


def turned(node, column: str, was, to, *, minutes: float, reason: str = "") -> None:
    """So many minutes before noon."""
    kind = "ready" if column == "is_ready" else "upgrade"
    sentence = f"Not ready: {reason}" if reason else "Ready again."
    detail = {"column": column, "was": was, "is": to}
    a_node_event(node, sentence, at=NOON - minutes * MINUTE, kind=kind, detail=detail)


def run(cluster, rule: str, **given):
    (one,) = replay(rule, [cluster], last=given.pop("last", 7 * DAY), clock=lambda: NOON, **given)
    return one


def found(cluster, rule: str):
    return [(one.subject, one.opened_at, one.resolved_at) for one in run(cluster, rule).found]


def test_a_node_that_was_not_ready_for_long_enough(cluster):
    node = a_node(cluster, "gpu-1")
    turned(node, "is_ready", True, False, minutes=100, reason="containerd is down")
    turned(node, "is_ready", False, True, minutes=90)
    turned(node, "is_ready", True, False, minutes=30.5)
    turned(node, "is_ready", False, True, minutes=30)

    (one,) = run(cluster, "node-not-ready").found

    assert (one.subject, one.opened_at) == ("node gpu-1", NOON - 99 * MINUTE)
    assert one.resolved_at == NOON - 90 * MINUTE
    assert one.worst is Severity.CRITICAL
    assert "The container runtime does not answer the kubelet." in one.sentence


def test_one_that_comes_back_within_half_an_hour_is_the_same(cluster):
    node = a_node(cluster, "gpu-1")
    for start in (100, 80):
        turned(node, "is_ready", True, False, minutes=start)
        turned(node, "is_ready", False, True, minutes=start - 10)

    (one,) = run(cluster, "node-not-ready").found

    assert (one.times, one.resolved_at) == (2, NOON - 70 * MINUTE)


def test_what_goes_on_for_long_after_it_came_back_at_once_is_the_same(cluster):
    node = a_node(cluster, "gpu-1")
    for start, over in ((800, 710), (700, 100)):
        turned(node, "upgrade_state", "upgrade-done", "drain-required", minutes=start)
        turned(node, "upgrade_state", "drain-required", "upgrade-done", minutes=over)
    turned(node, "upgrade_state", "drain-required", "pod-restart-required", minutes=300)

    (one,) = run(cluster, "upgrade-stuck").found

    assert (one.times, one.opened_at, one.resolved_at) == (2, NOON - 770 * MINUTE, NOON - 100 * MINUTE)


def test_a_node_that_is_down_still(cluster):
    node = a_node(cluster, "gpu-1", is_ready=False)
    turned(node, "is_ready", True, False, minutes=5)

    assert found(cluster, "node-not-ready") == [("node gpu-1", NOON - 4 * MINUTE, None)]


def test_a_node_that_comes_and_goes(cluster):
    node = a_node(cluster, "gpu-1")
    for start in (100, 95, 90):
        turned(node, "is_ready", True, False, minutes=start)
        turned(node, "is_ready", False, True, minutes=start - 0.5)

    assert found(cluster, "node-not-ready") == []
    ((subject, opened_at, resolved_at),) = found(cluster, "node-flapping")
    assert (subject, opened_at) == ("node gpu-1", NOON - 90 * MINUTE)
    assert resolved_at <= NOON - 69 * MINUTE


def test_other_limits_than_its_own_and_those_of_its_pool_are_tried(cluster):
    node, pool = a_node(cluster, "gpu-1"), a_pool(cluster)
    pool.nodes.add(node)
    for minutes in (60, 50):
        turned(node, "is_ready", True, False, minutes=minutes)
        turned(node, "is_ready", False, True, minutes=minutes - 1)
    by_its_own = run(cluster, "node-flapping").found
    tried = run(cluster, "node-flapping", limits=Limits(2, None)).found
    PoolLimits.objects.create(pool=pool, rule="node-flapping", warn=2, warn_after_s=0, by="ada", at=NOON, reason="x")

    assert by_its_own == []
    assert [one.opened_at for one in tried] == [NOON - 50 * MINUTE]
    assert [one.opened_at for one in run(cluster, "node-flapping").found] == [NOON - 50 * MINUTE]
    assert run(cluster, "node-flapping", limits=Limits(4, None)).found == []


def test_an_upgrade_that_failed_and_one_that_went_on_for_long(cluster):
    node = a_node(cluster, "gpu-1")
    turned(node, "upgrade_state", "upgrade-done", "drain-required", minutes=100)
    turned(node, "upgrade_state", "drain-required", "upgrade-failed", minutes=60)
    turned(node, "upgrade_state", "upgrade-failed", "upgrade-done", minutes=20)

    assert found(cluster, "upgrade-stuck") == [("node gpu-1", NOON - 70 * MINUTE, NOON - 60 * MINUTE)]
    assert found(cluster, "upgrade-failed") == [("node gpu-1", NOON - 59 * MINUTE, NOON - 20 * MINUTE)]


def test_of_a_node_that_is_gone_until_it_went(cluster):
    node = a_node(cluster, "gpu-1")
    turned(node, "is_ready", True, False, minutes=100)
    GoneNode.objects.create(
        node_id=node.pk, cluster=cluster, uid=node.uid, name=node.name, gone_at=NOON - 50 * MINUTE,
        was={"Product": "NVIDIA-H200"},
    )  # fmt: skip
    Node.objects.all().delete()

    assert found(cluster, "node-not-ready") == [("node gpu-1", NOON - 99 * MINUTE, NOON - 50 * MINUTE)]


def test_when_the_cluster_was_not_seen_is_not_known(cluster):
    a_node(cluster, "gpu-1")
    a_finding(
        cluster, rule="cluster-not-seen", since=NOON - 200 * MINUTE, opened_at=NOON - 199 * MINUTE,
        resolved_at=NOON - 100 * MINUTE, state="resolved", title="Nobody answers.",
    )  # fmt: skip

    (gap,) = run(cluster, "node-not-ready").gaps

    assert (gap.begin, gap.end) == (NOON - 200 * MINUTE, NOON - 100 * MINUTE)
    assert Finding.objects.get().title == gap.reason


def test_it_reaches_no_further_back_than_the_cluster_is_known(cluster):
    young = a_cluster()
    Cluster.objects.filter(pk=young.pk).update(added_at=NOON - 2 * DAY)
    young.refresh_from_db()
    a_node(young, "gpu-1")

    assert run(young, "node-not-ready").begin == NOON - 2 * DAY


def test_what_changed_once_more_and_nobody_wrote_down_is_not_known(cluster):
    node = a_node(cluster, "gpu-1", is_ready=True)
    turned(node, "is_ready", True, False, minutes=300)
    turned(node, "is_ready", False, True, minutes=290)
    turned(node, "is_ready", True, False, minutes=200)

    one = run(cluster, "node-not-ready")

    assert [each.resolved_at for each in one.found] == [NOON - 290 * MINUTE]
    assert "gpu-1 (2026-11-21 08:40 UTC)" in one.notes[-1]


def test_times_without_quarterdeck_are_gaps_since_they_are_recorded(cluster):
    a_node(cluster, "gpu-1")
    begins = (NOON - 2 * DAY, NOON - DAY)
    for began_at, until in zip(begins, (begins[1] - 10 * MINUTE, NOON), strict=True):
        EvaluationRun.objects.create(cluster=cluster, began_at=began_at, until=until)

    one, young = run(cluster, "node-not-ready"), run(cluster, "node-not-ready", last=DAY)

    assert [(gap.begin, gap.reason) for gap in one.gaps] == [(begins[1] - 10 * MINUTE, "Quarterdeck did not run")]
    assert "Before 2026-11-19 12:00 UTC, nothing records when Quarterdeck did not run." in one.notes
    assert not [note for note in young.notes if "records" in note]


def test_events_are_read_node_by_node(cluster):
    wide = {"column": "is_ready", "was": True, "is": False, "beside": "x" * 4000}
    nodes = [a_node(cluster, f"gpu-{number}", is_ready=False) for number in range(40)]
    NodeEvent.objects.bulk_create(
        NodeEvent(cluster=cluster, node_uid=node.uid, at=NOON - number * MINUTE, kind="ready", detail=wide)
        for number in range(50)
        for node in nodes
    )

    tracemalloc.start()
    changes = {past.name: len(past.turns["is_ready"]) - 1 for past in pasts(cluster, since=NOON - DAY)}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert changes == {f"gpu-{number}": 50 for number in range(40)}
    assert peak < 8 << 20  # all of them together were 17 MB


def test_a_cluster_without_gpu_nodes_is_not_known(cluster):
    assert "no GPU nodes" in run(cluster, "node-not-ready").reason


class ReadTurns(list):
    """Counts what is read of it from its beginning to its end."""

    read = 0

    def __iter__(self):
        for each in super().__iter__():
            self.read += 1
            yield each


def test_of_a_node_that_flapped_for_long_its_turns_are_read_a_few_times_and_not_at_each_of_them():
    begin = NOON - DAY
    turns = ReadTurns([(LONG_AGO, True), *((begin + number * MINUTE, number % 2 == 1) for number in range(1000))])
    still = {column: [(LONG_AGO, "")] for column in ("upgrade_state", "mig_config_state", "driver_version")}
    node = NodePast(1, "uid", "gpu-1", LONG_AGO, None, {"is_ready": turns, **still}, {})

    (one,) = replay_node(node, NodeFlapping(), begin=begin, end=NOON)

    assert one.opened_at is not None
    assert node.falls(begin, begin + 9 * MINUTE) == 5
    assert turns.read < 10 * len(turns)
