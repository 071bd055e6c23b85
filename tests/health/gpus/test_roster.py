"""Which GPUs are in the table, and in which order."""

import math
from array import array
from datetime import timedelta
from gc import collect
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.models import Gpu, Node
from health.evaluation.finding_counts import count_on_nodes
from health.gpus import roster_cache, selection
from health.gpus.selection import TooWide
from health.gpus.sort_order import column_of
from health.models import Finding
from health.sources.cluster_telemetry import ClusterTelemetry, boards_in
from health.sources.readings import Standing, utilisation
from health.sources.snapshots import StoredSnapshot
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests import make
from tests.health.gpus.telling import UNSAID, names, table, tell
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]


@pytest.fixture
def seer():
    return make.a_user("root", role="admin")


@pytest.fixture
def cluster():
    return make.a_cluster("east")


@pytest.fixture
def warm(cluster):
    """Three GPUs that say how warm they are, of now, of before and never; and one that nobody names."""
    make.a_node(cluster, "gpu-1", gpus=4)
    make.a_source(cluster)
    devices = [GpuDevice("gpu-1", index, f"GPU-{index}") for index in range(3)]
    tell(cluster, *devices, ages=[5, 300, 5], temperature_celsius=[50.0, 90.0, UNSAID])
    return cluster


def test_what_is_of_now_comes_before_what_was_and_what_nobody_said_comes_last(seer, warm):
    make.a_node(warm, "gpu-2", gpus=1)
    tell(
        warm, *[GpuDevice("gpu-1", index, f"GPU-{index}") for index in range(3)], GpuDevice("gpu-2", 0, "GPU-9"),
        ages=[5, 300, 5, 5], temperature_celsius=[50.0, 90.0, UNSAID, 0.0],
    )  # fmt: skip

    assert names(seer, ordering="-temperature") == ["gpu-1/0", "gpu-2/0", "gpu-1/1", "gpu-1/2", "gpu-1/3"]
    assert names(seer, ordering="temperature") == ["gpu-2/0", "gpu-1/0", "gpu-1/1", "gpu-1/2", "gpu-1/3"]


def test_what_exporters_say_narrows_it_down_and_sorts_it(seer, cluster):
    make.a_node(cluster, "gpu-1", gpus=5)
    make.a_node(make.a_cluster("west"), "far-1", gpus=1)
    make.a_source(cluster, exported=["ecc_uncorrected", "temperature_celsius"])
    devices = [GpuDevice("gpu-1", index, f"GPU-{index}") for index in range(4)]
    tell(
        cluster, *devices, ages=[5, 5, 300, 5],
        ecc_uncorrected=[2.0, 0.0, 7.0, UNSAID], temperature_celsius=[40.0, 50.5, 60.0, 70.0],
    )  # fmt: skip
    ecc = {"metric": "ecc_uncorrected", "ordering": "node"}

    assert names(seer, **ecc) == ["gpu-1/0", "gpu-1/2"]
    assert names(seer, **ecc, reading="zero") == ["gpu-1/1"]
    assert names(seer, **ecc, at_least="3") == ["gpu-1/2"]
    assert names(seer, **ecc, at_least="0") == ["gpu-1/0", "gpu-1/1", "gpu-1/2"]
    assert names(seer, **ecc, reading="fresh") == ["gpu-1/0", "gpu-1/1"]
    assert names(seer, **ecc, reading="fresh", at_least="1") == ["gpu-1/0"]
    assert names(seer, **ecc, reading="stale") == ["gpu-1/2"]
    assert names(seer, **ecc, reading="never") == ["gpu-1/3", "gpu-1/4"]
    assert names(seer, **ecc, reading="no-source") == ["far-1/0"]
    assert names(seer, metric="row_remap_failed", reading="not-exported", ordering="node") == [
        f"gpu-1/{index}" for index in range(5)
    ]
    assert names(seer, metric="temperature_celsius", at_least="50.5", ordering="-temperature") == [
        "gpu-1/3", "gpu-1/1", "gpu-1/2",
    ]  # fmt: skip
    assert names(seer, ordering="-ecc_uncorrected")[:3] == ["gpu-1/0", "gpu-1/1", "gpu-1/2"]  # of now before of before
    assert [
        table(seer, **{**ecc, **more}).without_value for more in ({}, {"reading": "zero"}, {"reading": "never"})
    ] == [
        3,
        3,
        0,
    ]
    assert table(seer, **ecc, cluster="east", q="gpu-1").without_value == 2
    for nothing in ({"metric": "secret"}, {**ecc, "at_least": "many"}, {**ecc, "reading": "secret"}):
        assert names(seer, **nothing) == [], nothing


def test_bits_that_slow_nothing_down_are_no_reason(seer, cluster):
    make.a_node(cluster, "gpu-1", gpus=3)
    make.a_source(cluster, exported=["clock_reasons"])
    devices = [GpuDevice("gpu-1", index, f"GPU-{index}") for index in range(3)]
    tell(cluster, *devices, clock_reasons=[float(0x1), float(0x41), 0.0])  # idle; idle and hot; none

    assert names(seer, metric="clock_reasons") == ["gpu-1/1"]
    assert names(seer, metric="clock_reasons", reading="zero", ordering="node") == ["gpu-1/0", "gpu-1/2"]


def test_the_first_of_an_order_are_the_first_of_all_of_it(seer, cluster):
    make.a_source(cluster)
    devices = []
    for number in range(6):
        node = make.a_node(cluster, f"gpu-{number}", gpus=8)
        if number in (2, 4):
            make.a_finding(cluster, f"GPU {number} of gpu-{number}", node=node, rule="gpu-hot", severity="warning")
        devices += [GpuDevice(f"gpu-{number}", index, f"GPU-{number}-{index}") for index in range(8)]
    tell(cluster, *devices, temperature_celsius=[float(place % 7) for place in range(48)])
    for ordering in ("-temperature", "temperature", "-health", "health", "-driver", "node"):
        wanted = selection.GpuFilter(ordering=ordering)
        roster_cache.forget()
        whole = selection.read_roster(seer, wanted, now=NOON)
        some = selection.read_roster(seer, wanted, now=NOON, stop=5)

        assert list(some.order)[:5] == list(whole.order)[:5], ordering
        assert some.matching == whole.matching == 48


def test_the_worst_finding_of_a_gpu_or_of_its_node_comes_first(seer, cluster):
    one, other = make.a_node(cluster, "gpu-1", gpus=2), make.a_node(cluster, "gpu-2", gpus=1)
    make.a_node(cluster, "gpu-3", gpus=1)
    make.a_finding(cluster, "GPU 1 of gpu-1", node=one, rule="gpu-silent", severity="critical")
    make.a_finding(cluster, "GPU 1 of gpu-1", node=one, rule="gpu-hot", severity="warning")
    make.a_finding(cluster, node=other, rule="node-not-ready", severity="warning")
    make.a_finding(cluster, "GPU 0 of gpu-1", node=one, rule="gpu-memory", severity="note")

    rows = list(table(seer).every())

    assert [(seen.node.name, seen.gpu.index, seen.finding and seen.finding.rule) for seen in rows] == [
        ("gpu-1", 1, "gpu-silent"), ("gpu-2", 0, "node-not-ready"), ("gpu-1", 0, "gpu-memory"), ("gpu-3", 0, None),
    ]  # fmt: skip
    assert [seen.finding.is_of_node for seen in rows[:2]] == [False, True]
    assert names(seer, faults="1") == ["gpu-1/1", "gpu-2/0"]
    assert names(seer, severity="note") == ["gpu-1/0"]
    assert names(seer, severity="none") == ["gpu-3/0"]


def test_a_finding_that_is_resolved_muted_or_listed_under_another_is_not_the_worst(seer, cluster):
    node = make.a_node(cluster, "gpu-1", gpus=1)
    cause = make.a_finding(cluster, "GPU 0 of gpu-1", node=node, rule="gpu-hot", severity="warning")
    make.a_finding(cluster, node=node, rule="allocatable-below-expected", severity="critical", parent=cause)
    make.a_finding(cluster, "GPU 0 of gpu-1", node=node, rule="a", severity="critical", resolved_at=NOON)
    make.a_finding(cluster, "GPU 0 of gpu-1", node=node, rule="b", severity="critical", state="muted")

    (seen,) = table(seer).every()

    assert seen.finding.rule == "gpu-hot"
    assert Finding.objects.count() == 4


def test_the_table_and_the_counts_of_nodes_tell_of_the_same_findings(seer, cluster):
    """What the cluster's own finding explains is still its nodes': a driver that all of them lack, say."""
    one, two, three, _ = [make.a_node(cluster, f"gpu-{number}", gpus=1) for number in range(1, 5)]
    whole = make.a_finding(cluster, "GPU operator", rule="operator-down", severity="critical")
    make.a_finding(cluster, "GPU 0 of gpu-1", node=one, rule="gpu-silent", severity="critical", parent=whole)
    own = make.a_finding(cluster, node=two, rule="operand-down", severity="warning", parent=whole)
    make.a_finding(cluster, "GPU 0 of gpu-2", node=two, rule="gpu-silent", severity="critical", parent=own)
    make.a_finding(cluster, "GPU 0 of gpu-3", node=three, rule="gpu-hot", severity="warning")

    count_on_nodes(cluster)

    counted = dict(Node.objects.filter(unresolved__gt=0).values_list("name", "unresolved"))
    assert counted == {"gpu-1": 1, "gpu-2": 1, "gpu-3": 1}
    rows = [(seen.node.name, seen.finding.rule) for seen in table(seer, faults="1").every() if seen.finding]
    assert rows == [("gpu-1", "gpu-silent"), ("gpu-2", "operand-down"), ("gpu-3", "gpu-hot")]
    assert len(rows) == sum(counted.values())


def test_drivers_are_in_the_order_of_their_numbers_and_who_has_none_comes_last(seer, cluster):
    for name, driver in (("a", "580.65.06"), ("b", "580.126.20"), ("c", ""), ("d", "1000.1.1"), ("e", "580.95.05")):
        make.a_node(cluster, name, gpus=1, driver_version=driver)

    assert names(seer, ordering="-driver") == ["d/0", "b/0", "e/0", "a/0", "c/0"]
    assert names(seer, ordering="driver") == ["a/0", "e/0", "b/0", "d/0", "c/0"]


def test_a_driver_whose_label_is_gone_is_in_no_order_until_it_is_back(seer, cluster):
    make.a_node(cluster, "a", gpus=1, driver_version="570.172.08")
    node = make.a_node(cluster, "b", gpus=1, driver_version="580.95.05")
    assert names(seer, ordering="-driver") == ["b/0", "a/0"]

    node.driver_unknown_since = node.changed_at = NOON
    node.save()

    assert names(seer, ordering="-driver") == ["a/0", "b/0"]


def test_a_filter_by_a_pool_that_is_not_seen_finds_none_of_the_nodes_that_are(cluster):
    mine = make.a_pool(cluster, "mine")
    make.a_node(cluster, "gpu-1", gpus=1, pool=mine).pools.add(make.a_pool(cluster, "secret"))
    pat = make.a_user("pat", role="viewer", on=mine)

    assert names(pat, pool="east/mine") == names(pat, pool="mine") == ["gpu-1/0"]
    assert names(pat, pool="east/secret") == names(pat, pool="secret") == []


def test_a_finding_of_a_gpu_that_has_only_a_uuid_is_that_gpus(seer, cluster):
    node = make.a_node(cluster, "gpu-1", gpus=2)
    Gpu.objects.filter(index=1).update(uuid="GPU-x")
    make.a_finding(cluster, "GPU GPU-x of gpu-1, slice 2", node=node, rule="gpu-hot")

    assert names(seer, faults="1") == ["gpu-1/1"]


def test_each_part_of_the_filter_narrows_it_down(seer, cluster):
    pool = make.a_pool(cluster, "h200")
    make.a_node(cluster, "gpu-1", gpus=1, pool=pool)
    make.a_node(cluster, "gpu-2", gpus=1, is_ready=False)
    far = make.a_node(make.a_cluster("west"), "far-1", gpus=1)
    Gpu.objects.filter(node=far).update(product="NVIDIA-L4", uuid="GPU-ABC")
    make.a_source(cluster)
    tell(cluster, GpuDevice("gpu-2", 0, "GPU-told"), temperature_celsius=[40.0])

    assert names(seer, cluster="west") == ["far-1/0"]
    assert names(seer, pool="east/h200") == names(seer, pool="h200") == ["gpu-1/0"]
    assert names(seer, product="NVIDIA-L4") == ["far-1/0"]
    assert names(seer, state="not-ready") == ["gpu-2/0"]
    assert names(seer, q="GPU-1") == ["gpu-1/0"]
    assert names(seer, q="gpu-abc") == ["far-1/0"]
    assert names(seer, q="told") == ["gpu-2/0"]
    for wanted in ({"cluster": "no"}, {"pool": "west/h200"}, {"state": "no"}, {"product": "no"}, {"q": "no"}):
        assert names(seer, **wanted) == [], wanted


def test_a_namespace_finds_the_gpus_that_its_pods_are_known_to_hold(seer, cluster, monkeypatch):
    node = make.a_node(cluster, "gpu-1", gpus=2)
    Gpu.objects.filter(index=1).update(uuid="GPU-b")
    devices = {"nvidia.com/gpu": ["GPU-b"]}
    make.a_pod(node, "mine", namespace="team-a", devices=devices, resources={"nvidia.com/gpu": 1}, is_tenant=True)

    assert names(seer, namespace="team-a") == ["gpu-1/1"]
    assert names(seer, namespace="team-b") == []

    monkeypatch.setattr(selection, "MOST_NODES", 0)
    with pytest.raises(TooWide, match="Pods of team-a are on 1 of these nodes"):
        names(seer, namespace="team-a")


def test_a_person_sees_the_gpus_of_their_clusters_and_pools_and_counts_no_others(cluster):
    mine = make.a_pool(cluster, "mine")
    make.a_node(cluster, "mine-1", gpus=1, pool=mine)
    make.a_node(cluster, "theirs-1", gpus=2, pool=make.a_pool(cluster, "theirs"))
    west = make.a_cluster("west")
    make.a_node(west, "west-1", gpus=1)
    pat, will, eve = (
        make.a_user("pat", role="viewer", on=mine),
        make.a_user("will", role="viewer", on=west),
        make.a_user(),
    )

    assert (names(pat), table(pat).total) == (["mine-1/0"], 1)
    assert (names(will), table(will).total) == (["west-1/0"], 1)
    assert (names(eve), table(eve).total) == ([], 0)
    assert names(pat, cluster="west") == names(pat, pool="theirs") == names(pat, q="theirs") == []


def test_what_came_or_went_is_seen_at_once(seer, cluster):
    node = make.a_node(cluster, "gpu-1", gpus=1)
    assert names(seer) == ["gpu-1/0"]
    wanted = selection.GpuFilter()

    Gpu.objects.create(node=node, index=1)
    assert selection.read_roster(seer, wanted, now=NOON).matching == 2
    node.changed_at, node.name = NOON + timedelta(seconds=1), "renamed"
    node.save()
    found = selection.read_roster(seer, wanted, now=NOON)
    assert found.nodes[node.pk].name == "renamed"
    node.delete()
    assert selection.read_roster(seer, wanted, now=NOON).matching == 0


VALUE = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([math.nan, math.inf, 0.0]))
TIME = st.one_of(st.floats(-200_000, 10_000), st.sampled_from([math.nan, -5.0, -90.0, -91.0]))


@given(st.lists(st.tuples(VALUE, TIME), max_size=6), st.booleans())
def test_an_order_takes_for_of_now_what_a_reading_does(said, is_silent):
    now = NOON.timestamp()
    devices = tuple(GpuDevice("gpu-1", place, f"GPU-{place}") for place in range(len(said)))
    column = MetricColumn(array("d", [value for value, _ in said]), array("d", [now + at for _, at in said]))
    kept = StoredSnapshot(TelemetrySnapshot(now, devices, {"power_watts": column}), frozenset({"power_watts"}))
    standing = Standing(has_source=True, is_silent=is_silent, exported=kept.exported)
    told = ClusterTelemetry(1, standing, kept=kept, boards=boards_in(devices))

    values, is_fresh = column_of(told, "power", now=now)

    for place in range(len(said)):
        reading = told.read("power_watts", place, node="gpu-1", vendor="nvidia", now=now)
        assert (reading.value is None) == (values[place] != values[place])
        assert reading.value is None or (reading.value == values[place] and reading.is_fresh == is_fresh[place])


@given(st.lists(st.tuples(VALUE, TIME, VALUE, TIME), max_size=6), st.booleans())
def test_an_order_by_utilisation_goes_by_what_a_row_shows(said, is_silent):
    """By the engine's where the usual one says nothing, or nothing of now."""
    now = NOON.timestamp()
    devices = tuple(GpuDevice("gpu-1", place, f"GPU-{place}") for place in range(len(said)))
    columns = {
        key: MetricColumn(array("d", [each[at] for each in said]), array("d", [now + each[at + 1] for each in said]))
        for key, at in (("gpu_utilisation_ratio", 0), ("engine_active_ratio", 2))
    }
    kept = StoredSnapshot(TelemetrySnapshot(now, devices, columns), frozenset(columns))
    standing = Standing(has_source=True, is_silent=is_silent, exported=kept.exported)
    told = ClusterTelemetry(1, standing, kept=kept, boards=boards_in(devices))

    values, is_fresh = column_of(told, "utilisation", now=now)

    for place in range(len(said)):
        readings = {
            key: told.read(key, place, node="gpu-1", vendor="nvidia", now=now)
            for key in ("gpu_utilisation_ratio", "engine_active_ratio")
        }
        _, reading = utilisation(readings)
        assert (reading.value is None) == (values[place] != values[place])
        assert reading.value is None or (reading.value == values[place] and reading.is_fresh == is_fresh[place])


def test_old_gpus_do_not_stay_in_memory_when_those_of_their_cluster_are_not_read_again(cluster, monkeypatch):
    clusters = [cluster, make.a_cluster("west")]
    for number, each in enumerate(clusters):
        make.a_node(each, f"gpu-{number}", gpus=1)
    parts = list(roster_cache.gpus_of([each.pk for each in clusters]).values())
    kept = [ref(gpus) for gpus in (*parts, roster_cache.joined(parts))]
    del parts
    collect()
    before = [gpus() is None for gpus in kept]

    monkeypatch.setattr(roster_cache, "KEPT_S", 0.0)
    roster_cache.gpus_of([cluster.pk])
    collect()

    assert (before, [gpus() is None for gpus in kept]) == ([False] * 3, [True] * 3)
