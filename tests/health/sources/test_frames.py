import pytest
from redis import Redis

from health.sources import snapshots
from health.telemetry.base import DeviceXid, TelemetryReading
from health.telemetry.snapshot import WITHOUT, GpuDevice, MetricColumn, TelemetrySnapshot

pytestmark = [pytest.mark.rounds, pytest.mark.usefixtures("redis")]
NODES = ("gpu-1", "gpu-2", "gpu-3")
CLUSTER = 7


def a_frame(*nodes: str, at: float = 1000.0) -> TelemetrySnapshot:
    """Two devices a node, each as warm as its place."""
    devices = tuple(
        GpuDevice(name, index, f"GPU-{name}-{index}", product="NVIDIA H200") for name in nodes for index in (0, 1)
    )
    column = MetricColumn.empty(len(devices))
    for place in range(len(devices)):
        column.values[place], column.times[place] = 60.0 + place, at
    return TelemetrySnapshot(at, devices, {"temperature_celsius": column})


def taken(snapshot: TelemetrySnapshot, **given) -> TelemetryReading:
    return TelemetryReading(snapshot, frozenset({"temperature_celsius"}), **{"xids": {}, **given})


def test_gives_back_what_was_kept():
    snapshots.store(CLUSTER, taken(a_frame(*NODES), xids={("GPU-gpu-1-0", ""): DeviceXid(79, "fell off the bus")}))

    kept = snapshots.newest(CLUSTER)

    assert kept.snapshot == a_frame(*NODES)
    assert kept.exported == {"temperature_celsius"}
    assert kept.xids == {("GPU-gpu-1-0", ""): DeviceXid(79, "fell off the bus")}


@pytest.mark.parametrize("lost", ["devices", "nodes"])
def test_devices_that_redis_lost_are_written_with_the_next_frame(redis, lost):
    snapshots.store(CLUSTER, taken(a_frame(*NODES)))
    (key,) = Redis.from_url(redis).keys(f"*:{CLUSTER}:*:{lost}")
    Redis.from_url(redis).delete(key)

    snapshots.store(CLUSTER, taken(a_frame(*NODES, at=1015.0)))

    assert snapshots.newest(CLUSTER).snapshot == a_frame(*NODES, at=1015.0)
    assert snapshots.of_node(CLUSTER, "gpu-2").snapshot.devices[0].node_name == "gpu-2"


def test_gives_the_devices_of_one_node():
    snapshots.store(CLUSTER, taken(a_frame(*NODES)))

    kept = snapshots.of_node(CLUSTER, "gpu-2")

    assert [device.index for device in kept.snapshot.devices] == [0, 1]
    assert list(kept.snapshot.columns["temperature_celsius"].values) == [62.0, 63.0]
    assert list(kept.snapshot.columns["temperature_celsius"].times) == [1000.0, 1000.0]


def test_knows_no_cluster_and_no_node_that_nobody_kept():
    snapshots.store(CLUSTER, taken(a_frame(*NODES)))

    assert snapshots.newest(8) is None
    assert snapshots.of_node(CLUSTER, "gpu-9") is None


def test_reads_only_the_columns_that_are_asked_for():
    snapshots.store(CLUSTER, taken(a_frame(*NODES)))

    assert snapshots.newest(CLUSTER, ["power_watts"]).snapshot.columns == {}


def test_keeps_nothing_of_an_order_that_is_over(redis):
    snapshots.store(CLUSTER, taken(a_frame(*NODES)))
    number = Redis.from_url(redis).dbsize()

    snapshots.store(CLUSTER, taken(a_frame("gpu-1", "gpu-3")))

    assert Redis.from_url(redis).dbsize() == number
    assert snapshots.of_node(CLUSTER, "gpu-2") is None
    assert list(snapshots.of_node(CLUSTER, "gpu-3").snapshot.columns["temperature_celsius"].values) == [62.0, 63.0]


def test_forgets_a_cluster_whole(redis):
    snapshots.store(CLUSTER, taken(a_frame(*NODES)))

    snapshots.forget(CLUSTER)

    assert Redis.from_url(redis).dbsize() == 0


def test_says_that_redis_is_away(settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/none.sock"

    for act in (snapshots.newest, snapshots.exporters, lambda cluster: snapshots.of_node(cluster, "gpu-1")):
        with pytest.raises(snapshots.SnapshotsUnavailable):
            act(CLUSTER)


def exporting(**has: float) -> TelemetrySnapshot:
    """By node when its first device last said how much power it draws; how warm all are, they say."""
    snapshot = a_frame(*NODES)
    column = snapshot.columns["power_watts"] = MetricColumn.empty(len(snapshot.devices))
    for node, at in has.items():
        column.times[2 * NODES.index(node.replace("_", "-"))] = at
    return snapshot


WARM, BOTH = frozenset({"temperature_celsius"}), frozenset({"temperature_celsius", "power_watts"})


def test_knows_of_each_node_what_its_exporter_has():
    snapshots.store(CLUSTER, taken(exporting(gpu_2=1000.0, gpu_3=WITHOUT)))

    kept = snapshots.exporters(CLUSTER)

    assert kept.exported == WARM
    assert kept.by_node == {"gpu-1": WARM, "gpu-2": BOTH, "gpu-3": BOTH}


@pytest.mark.parametrize("then", [{"gpu_1": 1015.0}, {"gpu_2": WITHOUT}, {}, {"gpu_2": 1015.0, "gpu_3": 1.0}])
def test_what_an_exporter_has_anew_or_no_more_is_known_at_once(then):
    snapshots.store(CLUSTER, taken(exporting(gpu_2=1000.0)))

    snapshots.store(CLUSTER, taken(exporting(**then)))

    its = {node: BOTH if node.replace("-", "_") in then else WARM for node in NODES}
    assert snapshots.exporters(CLUSTER).by_node == its


def test_a_node_whose_exporter_has_nothing_that_is_read_was_heard():
    snapshot = a_frame(*NODES)
    snapshot.columns = {}

    snapshots.store(CLUSTER, taken(snapshot))

    assert snapshots.exporters(CLUSTER).by_node == dict.fromkeys(NODES, frozenset())


def test_of_a_frame_from_before_it_is_not_known_which_nodes_have_what(redis):
    snapshots.store(CLUSTER, taken(a_frame(*NODES)))
    (key,) = Redis.from_url(redis).keys(f"*:{CLUSTER}:*:exporters")
    Redis.from_url(redis).delete(key)

    assert snapshots.exporters(CLUSTER) == (WARM, {})
    assert snapshots.exporters(8) is None
