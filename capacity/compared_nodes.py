"""The nodes of a cluster with which waiting pods are compared: read and indexed once for all who ask together."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from threading import Lock
from typing import Any, NamedTuple

from django.db.models import TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from capacity.device_rows import DeviceCounts, devices_of_nodes
from capacity.rule_rows import LABELS_AT_MOST, read_neighbours, rules_wanted
from capacity.volume_rows import volumes_of_drivers
from capacity.wait_reasons.label_requirements import LabelRequirement
from capacity.wait_reasons.neighbours import Neighbours
from capacity.wait_reasons.node_index import UNKNOWN_LIMIT, ComparedNode, NodeIndex
from capacity.wait_reasons.obstacles import CPU, MEMORY, PODS
from capacity.wait_reasons.pod_volumes import ZONE_LABELS
from capacity.wait_reasons.requirements import WaitingPod, read_taint
from fleet.allocation.cpu_memory import WHOSE
from fleet.models import Node, Observer
from gpu.labels import GPU_PRODUCT
from gpu.resources import Layout, ResourceKind
from gpu.resources.names import profile_in

KEPT_S, SHARED_S = 30, 3  # without a flush of the observer, and despite one
INDEXES_AT_MOST = 4  # that a process remembers: 5 MB each with 5,000 nodes
COLUMNS = (
    "pk", "name", "is_unschedulable", "layout", "cpu_allocatable_m", "memory_allocatable_bytes", "pods_allocatable",
    "pods_bound",
    *(f"cpu_{whose}_m" for whose in WHOSE), *(f"memory_{whose}_bytes" for whose in WHOSE),
)  # fmt: skip

AS_TEXT = {f"{column}_text": column for column in ("taints", "allocatable", "requested", "expected")}


class KeptIndex(NamedTuple):
    mark: tuple[int, int] | None  # epoch and number of the observer's flush before it was read
    at: float  # monotonic
    nodes: NodeIndex


_lock = Lock()
_kept: dict[tuple[Any, ...], KeptIndex] = {}  # by cluster and what the pods mention


def index_of(cluster_id: int, pods: Sequence[WaitingPod]) -> NodeIndex:
    """Returns the nodes of a cluster with the labels that these pods mention. Five queries, or six with rules; three
    more with devices of claims, and six at most with volumes of CSI drivers.

    It is remembered until the next flush of the observer, which writes all that is read here, and `SHARED_S` beyond:
    on a busy cluster every flush makes every open page ask.
    """
    keys = frozenset(each.key for pod in pods for each in _requirements(pod) if not each.is_field)
    keys |= {key for pod in pods for key in pod.rules.topology_keys}
    keys |= {key for pod in pods if any(each.zones for each in pod.volumes or ()) for key in ZONE_LABELS}
    if any(profile_in(name) for pod in pods for name in pod.requests):
        keys |= {GPU_PRODUCT}
    wanted, below = rules_wanted(pods), max((pod.priority for pod in pods), default=0)
    devices = frozenset(each for pod in pods for each in pod.devices or ())
    drivers = frozenset(each.driver for pod in pods for each in pod.volumes or () if each.driver)
    asked = (cluster_id, keys, wanted, below, devices, drivers)
    mark = Observer.objects.filter(cluster=cluster_id).values_list("epoch", "batch").first()
    with _lock:
        kept = _kept.get(asked)
    if kept and time.monotonic() - kept.at < (KEPT_S if kept.mark == mark else SHARED_S):
        return kept.nodes
    volumes = volumes_of_drivers(cluster_id, drivers)
    around = replace(read_neighbours(cluster_id, wanted, below=below), volumes=volumes)
    counts = devices_of_nodes(cluster_id, devices)
    read = KeptIndex(mark, time.monotonic(), _read_index(cluster_id, keys, around, counts))
    with _lock:
        _kept[asked] = read
        while len(_kept) > INDEXES_AT_MOST:
            _kept.pop(min(_kept, key=lambda key: _kept[key].at))
    return read.nodes


def forget_indexes() -> None:
    with _lock:
        _kept.clear()


def _read_index(cluster_id: int, asked: frozenset[str], around: Neighbours, devices: DeviceCounts) -> NodeIndex:
    """Reads the nodes of a cluster with these labels, and those of the domains of other pods' rules. One query."""
    keys = asked | {each.term.key for each in around.exclusions}
    # Most nodes have equal values, which are decoded once.
    written: Any = Node.objects.filter(cluster=cluster_id).order_by("name")
    rows = written.annotate(**{name: Cast(column, TextField()) for name, column in AS_TEXT.items()})
    decoded = cache(json.loads)
    if len(keys) > LABELS_AT_MOST:
        whole = rows.values(*COLUMNS, *AS_TEXT, "labels")
        return NodeIndex((_node(row, row["labels"], decoded, devices) for row in whole), around)
    names = {f"label_{number}": key for number, key in enumerate(sorted(keys))}
    read = rows.annotate(**{name: KeyTextTransform(key, "labels") for name, key in names.items()})
    labelled = (
        _node(row, {key: value for name, key in names.items() if (value := row[name]) is not None}, decoded, devices)
        for row in read.values(*COLUMNS, *AS_TEXT, *names)
    )
    return NodeIndex(labelled, around)


def _requirements(pod: WaitingPod) -> list[LabelRequirement]:
    volumes = [term for volume in pod.volumes or () for term in (*volume.terms, volume.zones)]
    return [*pod.selector, *(each for term in (*pod.terms, *volumes) for each in term)]


@lru_cache(maxsize=4096)
def _parts_in(layout: str) -> frozenset[str]:
    """Returns the resources of a layout whose units are shares or slices of GPUs."""
    kinds = {name: way.kind for name, way in Layout.read(layout).ways.items()}
    return frozenset(name for name, kind in kinds.items() if kind in (ResourceKind.SHARE, ResourceKind.SLICE))


def _node(
    row: Mapping[str, Any], labels: Mapping[str, str], decoded: Callable[[str], Any], devices: DeviceCounts
) -> ComparedNode:
    counts = devices.get(row["name"], {})
    limit = row["pods_allocatable"]
    cpu = {
        CPU: row["cpu_allocatable_m"] or 0,
        MEMORY: row["memory_allocatable_bytes"] or 0,
        PODS: UNKNOWN_LIMIT if limit is None else limit,
    }
    used = {
        CPU: sum(row[f"cpu_{whose}_m"] for whose in WHOSE),
        MEMORY: sum(row[f"memory_{whose}_bytes"] for whose in WHOSE),
        PODS: row["pods_bound"],
    }
    return ComparedNode(
        key=row["pk"],
        name=row["name"],
        labels=labels,
        taints=tuple(map(read_taint, decoded(row["taints_text"]))),
        is_cordoned=row["is_unschedulable"],
        allocatable={**decoded(row["allocatable_text"]), **cpu, **{name: every for name, (every, _) in counts.items()}},
        requested={
            **decoded(row["requested_text"]),
            **used,
            **{name: every - free for name, (every, free) in counts.items()},
        },
        expected=decoded(row["expected_text"]),
        parts=_parts_in(row["layout"]),
    )
