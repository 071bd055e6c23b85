"""The GPU telemetry of nodes as gates read it: how many GPUs of each node have fresh samples, and of which metrics."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, TypeGuard

from fleet.models import Node
from health.sources.cluster_telemetry import ClusterTelemetry
from rollouts.gates.base import Gate, GpuTelemetry
from rollouts.gates.findings import NewFindings
from rollouts.gates.telemetry_fresh import REPORTED, TelemetryFresh

HealthGate = NewFindings | TelemetryFresh
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class NodesTelemetry(NamedTuple):
    has_source: bool
    trouble: str  # why no telemetry arrives from a source; blank: it arrives
    by_node: Mapping[str, GpuTelemetry]  # by UID, for nodes in the newest snapshot


def reads_health(gate: Gate) -> TypeGuard[HealthGate]:
    return isinstance(gate, HealthGate)


def metrics_of(gates: Iterable[Gate]) -> frozenset[str]:
    """Returns the metrics that gates measure, and those that show whether a GPU reports at all."""
    rules = {gate.measured_by for gate in gates if isinstance(gate, NewFindings) and gate.measured_by is not None}
    return frozenset(REPORTED).union(*(rule.metrics for rule in rules))


def telemetry_of_nodes(
    telemetry: ClusterTelemetry,
    nodes: Iterable[Node],
    metrics: Collection[str],
    *,
    since: Mapping[str, datetime] | None = None,
    now: datetime,
) -> NodesTelemetry:
    """Returns the telemetry of nodes. `since` is by node UID the moment from which samples count."""
    standing = telemetry.standing
    trouble = telemetry.trouble or ("The telemetry source is silent." if standing.is_silent else "")
    by_node = {
        node.uid: _telemetry_of_node(node, places, telemetry, metrics, (since or {}).get(node.uid, LONG_AGO), now)
        for node in nodes
        if (places := telemetry.boards.by_node.get(node.name))
    }
    return NodesTelemetry(standing.has_source, trouble, by_node)


def _telemetry_of_node(
    node: Node, places: Collection[int], telemetry: ClusterTelemetry, metrics: Collection[str], since: datetime,
    now: datetime,
) -> GpuTelemetry:  # fmt: skip
    fresh: dict[str, set[int]] = {}
    for key in metrics:
        for place in places:
            reading = telemetry.read(key, place, node=node.name, vendor=node.gpu_vendor, now=now.timestamp())
            if reading.is_fresh and (reading.sampled_at or 0.0) >= since.timestamp():
                fresh.setdefault(key, set()).add(place)
    return GpuTelemetry(
        gpus=node.physical_gpus or len(places),
        reporting=len(set().union(*fresh.values())),
        fresh={key: len(found) for key, found in fresh.items()},
        exported=frozenset(key for key in metrics if telemetry.is_exported(key, node.name, node.gpu_vendor)),
        vendor=node.gpu_vendor,
    )
