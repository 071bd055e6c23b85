import math

from health.exporters.snapshots import updated_snapshot
from health.telemetry.exposition import NodeSamples, read_node
from health.telemetry.snapshot import TelemetrySnapshot

NOW = 1_000_000.0
NODES = {"gpu-1", "gpu-2"}


def said_of(node: str, **celsius: float) -> NodeSamples:
    lines = (f'DCGM_FI_DEV_GPU_TEMP{{gpu="{n}",UUID="{uuid}"}} {c}' for n, (uuid, c) in enumerate(celsius.items()))
    return read_node("\n".join(lines), node)


def framed(before: TelemetrySnapshot | None, *, now: float = NOW, nodes=NODES, **said: NodeSamples):
    by_node = {name.replace("_", "-"): each for name, each in said.items()}
    return updated_snapshot(before or TelemetrySnapshot(now, ()), by_node, nodes=nodes, now=now)


def told(reading) -> dict[str, tuple[float, float]]:
    column = reading.snapshot.columns["temperature_celsius"]
    rows = zip(reading.snapshot.devices, column.values, column.times, strict=True)
    return {device.uuid: (value, at) for device, value, at in rows}


def test_takes_what_each_node_says():
    reading = framed(None, gpu_1=said_of("gpu-1", a=61, b=62), gpu_2=said_of("gpu-2", c=63))

    assert told(reading) == {"a": (61, NOW), "b": (62, NOW), "c": (63, NOW)}
    assert reading.exported == {"temperature_celsius"}


def test_a_node_that_did_not_answer_keeps_what_it_said_with_its_time():
    before = framed(None, gpu_1=said_of("gpu-1", a=61), gpu_2=said_of("gpu-2", c=63)).snapshot

    reading = framed(before, now=NOW + 30, gpu_1=said_of("gpu-1", a=64))

    assert told(reading) == {"a": (64, NOW + 30), "c": (63, NOW)}


def test_a_board_that_is_in_no_series_any_more_is_not_forgotten():
    before = framed(None, gpu_1=said_of("gpu-1", a=61, b=62)).snapshot

    assert told(framed(before, now=NOW + 30, gpu_1=said_of("gpu-1", a=61)))["b"] == (62, NOW)


def test_a_node_that_is_gone_is():
    before = framed(None, gpu_1=said_of("gpu-1", a=61), gpu_2=said_of("gpu-2", c=63)).snapshot

    assert set(told(framed(before, now=NOW + 30, nodes={"gpu-1"}, gpu_1=said_of("gpu-1", a=61)))) == {"a"}


def test_a_device_that_two_nodes_claim_is_neithers():
    reading = framed(None, gpu_1=said_of("gpu-1", a=61), gpu_2=said_of("gpu-2", a=90, c=63))

    assert told(reading) == {"c": (63, NOW)}


def test_counts_what_counters_grew():
    def replays(number: int) -> NodeSamples:
        return read_node(f'DCGM_FI_DEV_PCIE_REPLAY_COUNTER{{gpu="0",UUID="a"}} {number}', "gpu-1")

    snapshot = framed(None, gpu_1=replays(5)).snapshot
    snapshot = framed(snapshot, now=NOW + 30, gpu_1=replays(12)).snapshot

    assert snapshot.columns["pcie_replays"].values[0] - snapshot.checkpoints[0].values["pcie_replays"][0] == 7
    assert not math.isnan(snapshot.columns["pcie_replays"].times[0])
