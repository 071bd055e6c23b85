"""What a round of exporters keeps of what they say, without a round."""

from collections.abc import Collection, Mapping

from fleet.models import Cluster
from health.exporters.snapshots import exporter_reading
from health.sources.storage import store_snapshot_of_round
from health.telemetry.exposition import NodeSamples


def hear_exporters(cluster: Cluster, said: Mapping[str, NodeSamples], *, nodes: Collection[str], now: float) -> None:
    taken = exporter_reading(cluster, said, nodes=nodes, now=now)
    assert taken is not None
    store_snapshot_of_round(cluster.pk, taken, assert_lease=lambda: None, now=now)
