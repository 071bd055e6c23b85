"""Whatever is written by whomever, in whatever order: the kept sums are those of a recount."""

from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fleet.allocation.counters import count_written_nodes, recount
from fleet.allocation.sums import TABLES, computed_counters, stored_counters
from fleet.models import Node, NodeSums, Pool
from fleet.observer.mirror import known_rows
from fleet.observer.persistence.cluster_removal import forget
from fleet.observer.persistence.overdue_mig_changes import note_overdue
from fleet.pools.changes import change_pool, create_pool, delete_pool
from fleet.pools.membership_writes import sort_cluster
from fleet.states.node import RECONFIGURED_WITHIN
from health.evaluation.finding_counts import count_on_nodes
from health.models import Finding
from tests import make
from tests.fleet.documents import GPU_LABELS, a_node_seen, a_pod_seen
from tests.fleet.observer.conftest import Mirror, walked
from tests.make import NOON, a_finding

pytestmark = pytest.mark.sqlite

NODES = st.sampled_from(["gpu-001", "gpu-002", "gpu-003"])
ZONES = ("a", "b")
SELECTORS = st.sampled_from(["zone=a", "zone=b", "zone in (a,b)", "zone=c"])
SEEN = st.fixed_dictionaries(
    {
        "zone": st.sampled_from(ZONES),
        "has_gpus": st.booleans(),
        "driver": st.sampled_from(["570.172.08", "580.95.05", ""]),
        "mig": st.sampled_from(["", "pending"]),
        "unschedulable": st.booleans(),
    }
)
STEP = st.one_of(
    st.tuples(st.just("node"), NODES, SEEN),
    st.tuples(st.just("node"), NODES, SEEN),
    st.tuples(st.just("gone"), NODES),
    st.tuples(st.just("pod"), st.sampled_from(["p", "q"]), NODES, st.integers(0, 4)),
    st.tuples(st.just("driver"), st.sampled_from(["d", "e"]), NODES, st.sampled_from(["a", "b"]), st.booleans()),
    st.tuples(st.just("no_driver"), st.sampled_from(["d", "e"])),
    st.tuples(st.just("pool"), st.sampled_from(["one", "two"]), SELECTORS),
    st.tuples(st.just("no_pool"), st.sampled_from(["one", "two"])),
    st.tuples(st.just("finding"), NODES, st.integers(0, 2)),
    *(st.tuples(st.just(step)) for step in ("flush", "list_pods", "list_no_pods", "later", "sort", "die")),
)


def a_node(name: str, seen: dict):
    labels = {"zone": seen["zone"]}
    if seen["has_gpus"]:
        labels |= GPU_LABELS | {"nvidia.com/mig.config.state": seen["mig"]}
        labels.pop("nvidia.com/cuda.driver-version.full", None)
        if seen["driver"]:
            labels["nvidia.com/cuda.driver-version.full"] = seen["driver"]
    resources = {"nvidia.com/gpu": 8, "cpu": "64", "memory": "1Ti"} if seen["has_gpus"] else {"cpu": "8"}
    return a_node_seen(name, labels=labels, resources=resources, spec={"unschedulable": seen["unschedulable"]})


def a_driver_pod(name: str, node: str, daemon_set: str, *, is_leaving: bool = False):
    labels = {"app.kubernetes.io/component": "nvidia-driver"}
    given = {"leaving_since": "2026-11-21T11:00:00Z"} if is_leaving else {}
    return a_pod_seen(name, node=node, labels=labels, gpus=0, owner_uid=daemon_set, **given)


@dataclass
class Writers:
    """Everybody who writes nodes of a cluster, or the pools they are in; a step is named as what it plays."""

    mirror: Mirror

    def play(self, what: str, *given: Any) -> None:
        getattr(self, what)(*given)

    def node(self, name: str, seen: dict[str, Any]) -> None:
        self.mirror.see("nodes", a_node(name, seen))

    def gone(self, name: str) -> None:
        self.mirror.see("nodes", a_node_seen(name), is_gone=True)

    def pod(self, name: str, node: str, gpus: int) -> None:
        self.mirror.see("pods", a_pod_seen(name, node=node, gpus=gpus))

    def driver(self, name: str, node: str, daemon_set: str, is_leaving: bool) -> None:
        self.mirror.see("pods", a_driver_pod(name, node, daemon_set, is_leaving=is_leaving))

    def no_driver(self, name: str) -> None:
        self.mirror.see("pods", a_driver_pod(name, "", ""), is_gone=True)

    def list_pods(self) -> None:
        self.mirror.list("pods", [a_driver_pod(name, f"gpu-00{at}", "a") for at, name in ((1, "d"), (2, "e"))])

    def pool(self, name: str, selector: str) -> None:
        pool = Pool.objects.filter(cluster=self.mirror.cluster, name=name).first()
        if pool is None:
            create_pool(cluster=self.mirror.cluster, actor="ada", now=NOON, name=name, selector=selector)
        else:
            change_pool(pool, actor="ada", now=NOON, selector=selector)

    def no_pool(self, name: str) -> None:
        for pool in Pool.objects.filter(cluster=self.mirror.cluster, name=name):
            delete_pool(pool, actor="ada", now=NOON)

    def finding(self, name: str, number: int) -> None:
        for node in Node.objects.filter(cluster=self.mirror.cluster, name=name):
            Finding.objects.filter(node=node).delete()
            for subject in range(number):
                severity = ("critical", "warning")[subject % 2]
                a_finding(self.mirror.cluster, f"{name} {subject}", node=node, severity=severity)
        count_on_nodes(self.mirror.cluster)

    def flush(self) -> None:
        self.mirror.flush()

    def list_no_pods(self) -> None:
        self.mirror.list("pods", [])

    def later(self) -> None:
        self.mirror.later(seconds=RECONFIGURED_WITHIN.total_seconds() + 1)
        note_overdue(self.mirror.cluster.pk, epoch=1, now=self.mirror.now)

    def sort(self) -> None:
        sort_cluster(self.mirror.cluster.pk)

    def die(self) -> None:
        self.mirror.begin()
        known_rows.learn(self.mirror.cluster.pk, self.mirror.deltas.memory)


@pytest.mark.django_db(transaction=False)
@settings(max_examples=25)
@given(steps=st.lists(STEP, max_size=16))
@example(
    steps=[
        ("pool", "one", "zone=a"),
        ("pool", "two", "zone in (a,b)"),
        ("node", "gpu-001", {"zone": "a", "has_gpus": True, "driver": "", "mig": "pending", "unschedulable": False}),
        ("flush",),
        ("pod", "p", "gpu-001", 2),
        ("finding", "gpu-001", 1),
        ("later",),
        ("no_pool", "two"),
        ("gone", "gpu-001"),
    ]
)
def test_the_kept_sums_are_those_of_a_recount(steps):
    with walked() as mirror:
        writers = Writers(mirror)
        for step in steps:
            writers.play(*step)
            assert stored_counters(mirror.cluster.pk) == computed_counters(mirror.cluster.pk), step
        mirror.flush()
        assert stored_counters(mirror.cluster.pk) == computed_counters(mirror.cluster.pk)
        assert recount(mirror.cluster.pk) == 0
        for node in Node.objects.filter(cluster=mirror.cluster):
            drivers = node.pods.filter(operand="driver", deleted_at=None).order_by("pk")
            assert node.driver_daemon_set == (drivers.values_list("owner_uid", flat=True).last() or "")

        forget(mirror.cluster.pk, epoch=1, stop=_Never(), clock=lambda: mirror.now)
        assert not any(table.objects.filter(cluster=mirror.cluster).exists() for table in TABLES)


class _Never:
    def wait(self, _: float) -> bool:
        return False


@pytest.fixture
def cluster(db):
    return make.a_cluster("east")


def test_a_node_of_two_pools_is_in_one_row_that_names_both(cluster):
    one, two = make.a_pool(cluster, "one"), make.a_pool(cluster, "two")
    node = make.a_node(cluster, pool=two)
    node.pools.add(one)
    recount(cluster.pk)

    (row,) = NodeSums.objects.all()

    assert (row.pools, row.nodes, row.physical_whole) == (f"{one.pk},{two.pk}", 1, 8)


def test_what_was_written_past_the_keeper_is_found_by_a_recount(cluster):
    make.a_node(cluster)
    assert recount(cluster.pk) == 3  # a row of each table, and a piece of the map
    Node.objects.update(is_ready=False)

    assert recount(cluster.pk) == 3  # one row too many, one too few, where states are counted, and the piece
    assert recount(cluster.pk) == 0


def test_a_write_that_fails_leaves_the_sums_as_they_were(cluster):
    node = make.a_node(cluster)
    recount(cluster.pk)
    before = stored_counters(cluster.pk)

    def fail() -> None:
        with transaction.atomic(), count_written_nodes(cluster.pk, [node.pk]):
            Node.objects.update(is_ready=False)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert stored_counters(cluster.pk) == before == computed_counters(cluster.pk)
    with count_written_nodes(cluster.pk, [node.pk]):
        Node.objects.update(is_held=True)
    assert stored_counters(cluster.pk) == computed_counters(cluster.pk) != before


def test_the_sums_of_a_cluster_go_with_it(cluster):
    make.a_node(cluster)
    recount(cluster.pk)

    cluster.delete()

    assert not any(table.objects.exists() for table in TABLES)
