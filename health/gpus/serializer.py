"""A GPU of the table as REST and files write it: one shape for all, so that no two of them disagree."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from io import StringIO
from typing import Any

from health.gpus.table import GpuSeen
from health.sources.node_telemetry import instant
from health.sources.readings import MetricReading
from health.telemetry.metrics import METRICS

FORMULA = frozenset("=+-@\t\r\n")  # what a spreadsheet takes for the beginning of one


def written(seen: GpuSeen) -> dict[str, Any]:
    """As JSON has it. Zero is a value; null says that there is none, and `state` why."""
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
                "told_by": allocation.told.value,
                "is_current": allocation.is_current,
            }
            for allocation in seen.allocations
        ],
        "may_have_more": seen.may_have_more,
        "finding": None if finding is None else {
            "id": finding.key,
            "rule": finding.rule,
            "title": seen.finding_title,
            "severity": finding.severity,
            "sentence": finding.sentence,
            "is_of_node": finding.is_of_node,
        },
        "driver_version": node.driver_version,
        "driver_unknown_since": spelt(node.driver_unknown_since),
        "is_seen": seen.is_seen,
        "is_told": seen.is_told,
        "metrics": {key: written_reading(key, reading) for key, reading in seen.metrics.items()},
        "utilisation_by": seen.busy_key,
        "xid_words": seen.xid_words,
        "sampled_at": spelt(instant(seen.sampled_at)),
    }  # fmt: skip


def written_reading(key: str, reading: MetricReading) -> dict[str, Any]:
    return {
        "state": reading.state.value,
        "value": reading.value,
        "unit": METRICS[key].unit,
        "sampled_at": spelt(instant(reading.sampled_at)),
        "since": spelt(instant(reading.since)),
    }


def spelt(at: datetime | None) -> str | None:
    """As ISO 8601 has it, in UTC."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")


_BEGIN = (
    "cluster", "node", "index", "uuid", "product", "pools", "use", "allocated_to", "is_allocation_known", "severity",
    "finding", "is_finding_of_node", "driver_version", "driver_unknown_since", "is_cluster_seen", "is_told",
    "xid_words", "sampled_at",
)  # fmt: skip


def head(metrics: Iterable[str]) -> Sequence[str]:
    """Of a table of which these are read."""
    return (*_BEGIN, *(f"{key}{part}" for key in metrics for part in ("", "_state", "_sampled_at", "_since")))


def line(seen: GpuSeen) -> list[Any]:
    """As a row of CSV has it, by `head`: beside each value what it is worth; an empty one is none."""
    said: Mapping[str, Any] = written(seen)
    finding, allocations = said["finding"] or {}, said["allocations"]
    begin = (
        said["cluster"]["name"], said["node"]["name"], said["index"], said["uuid"], said["product"],
        " ".join(said["pools"]), said["use"],
        " ".join(f"{each['namespace']}/{each['name']}" for each in allocations or ()),
        "no" if allocations is None else "yes", finding.get("severity"), finding.get("title"),
        _yes(finding.get("is_of_node")), said["driver_version"], said["driver_unknown_since"], _yes(said["is_seen"]),
        _yes(said["is_told"]),
        said["xid_words"], said["sampled_at"],
    )  # fmt: skip
    metrics = said["metrics"].values()
    rest = (value for each in metrics for value in (each["value"], each["state"], each["sampled_at"], each["since"]))
    return [*begin, *rest]


def _yes(said: bool | None) -> str:  # noqa: FBT001 - a value of a cell
    return "" if said is None else "yes" if said else "no"


def as_csv(rows: Iterable[Iterable[Any]]) -> str:
    """No cell is a formula: what would begin one is text behind an apostrophe."""
    out = StringIO()
    csv.writer(out).writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in FORMULA and value else value
