"""What a round of exporters keeps of what they say, without a round."""

from collections.abc import Collection, Mapping

from fleet.models import Cluster
from health.exporters.snapshots import reading_of
from health.sources.storage import keep
from health.telemetry.exposition import NodeSamples


def hear_exporters(cluster: Cluster, said: Mapping[str, NodeSamples], *, nodes: Collection[str], now: float) -> None:
    taken = reading_of(cluster, said, nodes=nodes, now=now)
    assert taken is not None
    keep(cluster.pk, taken, assert_lease=lambda: None, now=now)
