from health.evaluation.exporter_silence import ReportingNodes
from health.exporters.snapshots import updated_snapshot
from health.telemetry.exposition import read_node
from health.telemetry.snapshot import TelemetrySnapshot

NOW = 1_000_000.0
# ROCm/device-metrics-exporter: of a partition gpu_id counts partitions, so that nothing says the number of its board.
PARTITIONED = """\
gpu_gfx_activity{serial_number="s1",gpu_id="0",gpu_partition_id="1",gpu_compute_partition_type="cpx"} 5
gpu_gfx_activity{serial_number="s1",gpu_id="1",gpu_partition_id="2",gpu_compute_partition_type="cpx"} 5
gpu_gfx_activity{serial_number="s2",gpu_id="8",gpu_partition_id="0",gpu_compute_partition_type="spx"} 5
"""


def test_knows_boards_beside_those_of_which_nothing_says_the_number():
    """What has no number was compared with what has one, as all of a node are heard at one time: no look ended."""
    snapshot = updated_snapshot(
        TelemetrySnapshot(NOW, ()), {"n1": read_node(PARTITIONED, "n1")}, nodes={"n1"}, now=NOW
    ).snapshot

    assert ReportingNodes(frozenset({"n1"}), frozenset({"n1"}), snapshot).uuids == {("n1", 8): "s2", ("n1", None): "s1"}
