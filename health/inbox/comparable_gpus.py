"""A comparable healthy GPU: another GPU of the node, or else a GPU of a comparable healthy node.

GPUs of one node share its driver, its kernel, its air and, where one pod has all of them, its work. What differs is
then the GPU's own. The same rows and telemetry always give the same GPU.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from fleet.allocation.allocations import AllocatedGpu
from fleet.allocation.gpu_holders import allocations_on
from fleet.freshness.cluster import load_cluster_freshness
from fleet.models import Gpu, Node
from health.inbox.comparable_nodes import (
    NOTHING,
    PROPERTIES,
    Compared,
    chosen_for,
    differences_by_hour,
    differences_now,
    labels_of,
)
from health.inbox.hours import HOURS, hours_of
from health.models import Finding
from health.sources.node_telemetry import NodeTelemetry, of_gpu, telemetry_of
from people.models import User
from wording.instants import moment
from wording.lists import names
from wording.numbers import count


@dataclass(frozen=True)
class ComparableGpu:
    """A comparable GPU and why it was chosen. If `gpu` is None, there is none, and `reason` says why."""

    gpu: Gpu | None
    reason: str
    properties: Sequence[Compared] = ()  # the properties that differ
    measured: Sequence[Compared] = ()  # present values and hourly means of both, equal or not
    alike: Sequence[str] = ()  # titles of the properties that do not differ


def comparable_gpu_of(gpu: Gpu, user: User, *, now: datetime) -> ComparableGpu:
    """Returns a comparable GPU with its node and cluster, with 27 queries at most."""
    known = telemetry_of(gpu.node, now=now)
    allocated = allocations_on([gpu.node], now=now)[gpu.node_id]
    chosen, reason = _gpu_on_same_node(
        gpu, known, {each.pk: allocated.of(each) for each in gpu.node.gpus.all()}, now=now
    )
    there, allocated_there = known, allocated
    if chosen is None:
        node, reason_of_node = chosen_for(gpu.node, user, now=now)
        if node is None:
            return ComparableGpu(None, f"{reason} {reason_of_node}")
        chosen, of_other = _gpu_on_comparable_node(node, gpu)
        reason = f"{reason} {of_other} {reason_of_node}"
        if chosen is None:
            return ComparableGpu(None, reason)
        there, allocated_there = telemetry_of(node, now=now), allocations_on([node], now=now)[node.pk]
    pairs = _properties(gpu, chosen, allocated.of(gpu), allocated_there.of(chosen), known, there)
    different = [pair for pair in pairs if pair.here != pair.there]
    labels = labels_of(gpu.node, chosen.node, different) if chosen.node_id != gpu.node_id else []
    devices = [replace(all_of, devices=of_gpu(all_of.devices, one)) for all_of, one in ((known, gpu), (there, chosen))]
    return ComparableGpu(
        chosen,
        reason,
        properties=[*different, *labels],
        measured=[
            *differences_now(*devices, is_of_one=True),
            *differences_by_hour(*(hours_of(one.node, gpu=one, hours=HOURS, now=now) for one in (gpu, chosen))),
        ],
        alike=[pair.title for pair in pairs if pair not in different and pair.here],
    )


def _gpu_on_same_node(
    gpu: Gpu, known: NodeTelemetry, allocated: dict[int, AllocatedGpu], *, now: datetime
) -> tuple[Gpu | None, str]:
    """Returns a GPU of the same node: reporting GPUs first, then GPUs of the same pod, then the lowest number."""
    freshness = load_cluster_freshness(gpu.node.cluster, now=now)
    if freshness.last_seen_at is None:
        return None, "The cluster was never observed, so the healthy GPUs of the node are unknown."
    then = (
        "" if freshness.is_fresh else f" when its cluster was last observed, {moment(freshness.last_seen_at, now=now)}"
    )
    others = [each.gpu for each in allocated.values() if each.gpu.pk != gpu.pk and each.gpu.product == gpu.product]
    if not others:
        return None, "The node has no other GPU of this product."
    well = _healthy_gpus(others)
    if not well:
        return None, f"Each of the {count(len(others), 'other GPU')} of the node has an open finding."
    pods = _pods(allocated[gpu.pk])

    def rank(one: Gpu) -> tuple[bool, bool]:
        is_reporting = any(device.busy.is_fresh for device in of_gpu(known.devices, one))
        return not is_reporting, not pods & _pods(allocated[one.pk])

    ranks = {one: rank(one) for one in well}
    best = min(ranks.values())
    alike = sorted((one for one in well if ranks[one] == best), key=lambda one: one.index)
    is_silent, is_apart = best
    is_said = not is_silent and any(silent for silent, _ in ranks.values())
    why = ", and ".join(["it reports telemetry"] * is_said + ["the same pod has both"] * (not is_apart))
    said = f"It {'has' if freshness.is_fresh else 'had'} no open finding{then}, is on the same node"
    said += f", {'' if ' and ' in why else 'and '}{why}" if why else ""
    return alike[0], f"{said}. It is the first of {count(len(alike), 'such GPU')}." if len(alike) > 1 else f"{said}."


def _gpu_on_comparable_node(node: Node, gpu: Gpu) -> tuple[Gpu | None, str]:
    """Returns a GPU of the comparable node: the one with the same number first."""
    others = list(Gpu.objects.filter(node=node, product=gpu.product).select_related("node__cluster"))
    well = sorted(_healthy_gpus(others), key=lambda one: (one.index != gpu.index, one.index))
    if not well:
        return None, f"{NOTHING}: each GPU of this product on {node.name}, the comparable node, has a finding."
    return well[0], f"So a GPU of {node.name}, the comparable node, is used."


def _healthy_gpus(gpus: Collection[Gpu]) -> list[Gpu]:
    """Returns the GPUs of one node without an open or pending finding, with one query."""
    if not gpus:
        return []
    told = (
        Finding.objects.filter(node=next(iter(gpus)).node)
        .notified()
        .unresolved()
        .only("subject", "gpu_uuid", "node_id")
    )
    uuids = {one.index: one.uuid for one in gpus}
    sick = {finding.gpu_among(uuids) for finding in told}
    return [one for one in gpus if one.index not in sick]


def _pods(allocated: AllocatedGpu) -> set[int]:
    return {allocation.pod.pk for allocation in allocated.allocations or () if not allocation.only_looks}


def _properties(
    gpu: Gpu, comparable: Gpu, allocated: AllocatedGpu, its: AllocatedGpu, known: NodeTelemetry, there: NodeTelemetry
) -> list[Compared]:
    own = [
        Compared("Memory", *(f"{one.memory_mib} MiB" if one.memory_mib else "" for one in (gpu, comparable))),
        Compared("Allocated to", _allocated_to(allocated), _allocated_to(its)),
        Compared("MIG slices", _slices(known, gpu), _slices(there, comparable)),
        Compared("Taints of its DRA driver", ", ".join(allocated.taints), ", ".join(its.taints)),
    ]
    if gpu.node_id == comparable.node_id:
        return own
    return [
        *own,
        *(Compared(f"Its node: {title}", said(gpu.node), said(comparable.node)) for title, said in PROPERTIES),
    ]


def _allocated_to(allocated: AllocatedGpu) -> str:
    if allocated.allocations is None:
        return "not known"
    return (
        names([str(allocation.pod) for allocation in allocated.allocations], most=3)
        if allocated.allocations
        else "nobody"
    )


def _slices(known: NodeTelemetry, gpu: Gpu) -> str:
    return ", ".join(sorted(device.profile or device.gi_id for device in of_gpu(known.devices, gpu) if device.gi_id))
