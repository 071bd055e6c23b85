"""A GPU of the table as REST and files write it, in one shape."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from health.gpus.table import GpuSeen
from health.sources.node_telemetry import instant
from health.sources.readings import MetricReading
from health.telemetry.metrics import METRICS


def gpu_data(seen: GpuSeen) -> dict[str, Any]:
    """Returns the GPU for JSON. Zero is a value; null means none, and `state` gives the reason."""
    gpu, node, finding = seen.gpu, seen.node, seen.finding
    return {
        "id": gpu.pk,
        "cluster": {"id": node.cluster_id, "name": node.cluster.name},
        "node": {"id": node.pk, "name": node.name},
        "index": gpu.index,
        "uuid": seen.uuid or None,
        "product": gpu.product or node.gpu_product,
        "pools": list(seen.pools),
        "use": seen.use or "whole",
        "allocations": None if seen.allocations is None else [
            {
                "namespace": allocation.pod.namespace,
                "name": allocation.pod.name,
                "profile": allocation.profile,
                "reported_by": allocation.source.value,
                "is_current": allocation.is_current,
            }
            for allocation in seen.allocations
        ],
        "may_have_more": seen.may_have_more,
        "finding": None if finding is None else {
            "id": finding.key,
            "rule": finding.rule,
            "title": finding.title,
            "severity": finding.severity,
            "is_of_node": finding.is_of_node,
        },
        "driver_version": node.driver_version,
        "driver_unknown_since": iso_time(node.driver_unknown_since),
        "is_seen": seen.is_seen,
        "is_exported": seen.is_exported,
        "metrics": {key: reading_data(key, reading) for key, reading in seen.metrics.items()},
        "utilisation_by": seen.busy_key,
        "xid_words": seen.xid_words,
        "sampled_at": iso_time(instant(seen.sampled_at)),
    }  # fmt: skip


def reading_data(key: str, reading: MetricReading) -> dict[str, Any]:
    return {
        "state": reading.state.value,
        "value": reading.value,
        "unit": METRICS[key].unit,
        "sampled_at": iso_time(instant(reading.sampled_at)),
        "since": iso_time(instant(reading.since)),
    }


def iso_time(at: datetime | None) -> str | None:
    """Returns the time in ISO 8601 in UTC."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")


_BEGIN = (
    "cluster", "node", "index", "uuid", "product", "pools", "use", "allocated_to", "is_allocation_known", "severity",
    "finding", "is_finding_of_node", "driver_version", "driver_unknown_since", "is_cluster_seen", "is_exported",
    "xid_words", "sampled_at",
)  # fmt: skip


def head(metrics: Iterable[str]) -> Sequence[str]:
    return (*_BEGIN, *(f"{key}{part}" for key in metrics for part in ("", "_state", "_sampled_at", "_since")))


def line(seen: GpuSeen) -> list[Any]:
    """Returns a CSV row for `head`: each value is followed by its state; a missing value is empty."""
    said: Mapping[str, Any] = gpu_data(seen)
    finding, allocations = said["finding"] or {}, said["allocations"]
    begin = (
        said["cluster"]["name"], said["node"]["name"], said["index"], said["uuid"], said["product"],
        " ".join(said["pools"]), said["use"],
        " ".join(f"{each['namespace']}/{each['name']}" for each in allocations or ()),
        "no" if allocations is None else "yes", finding.get("severity"), finding.get("title"),
        _yes_or_no(finding.get("is_of_node")), said["driver_version"], said["driver_unknown_since"],
        _yes_or_no(said["is_seen"]),
        _yes_or_no(said["is_exported"]),
        said["xid_words"], said["sampled_at"],
    )  # fmt: skip
    metrics = said["metrics"].values()
    rest = (value for each in metrics for value in (each["value"], each["state"], each["sampled_at"], each["since"]))
    return [*begin, *rest]


def _yes_or_no(said: bool | None) -> str:  # noqa: FBT001 - a value of a cell
    return "" if said is None else "yes" if said else "no"
