"""Messages about a node's GPU exporter, as far as they concern GPU allocations."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from fleet.allocation.allocations import AllocationSource, NodeAllocations
from fleet.models import ExporterReading, ExporterRound, ExportersState, Node, Pod
from gpu.resources.names import Vendor
from wording.instants import to_the_second
from wording.numbers import either

NONE_HERE = {
    ExportersState.NONE: "in this cluster",
    ExportersState.ASKED: "on this node",
    ExportersState.FORBIDDEN: "on this node",
}
DCGM = "DCGM exporter"
NAMED_WITHIN = timedelta(minutes=1)
CALLED: Mapping[str, str] = {Vendor.AMD: "metrics exporter of AMD's", Vendor.HABANA: "metric exporter of Gaudi's"}


def exporter_note_of(node: Node, allocated: NodeAllocations, asked: ExporterRound | None) -> str:
    """Returns a message about the exporter. Blank: nothing to do or to know."""
    if asked is None or not (allocated.unplaced or _rests_on_it(allocated)):
        return ""
    if allocated.exporter is None:
        where = NONE_HERE.get(ExportersState(asked.state))
        called = CALLED.get(allocated.vendor, DCGM)
        return f"No pod of a {called} is seen {where}: its labels would name the pods." if where else asked.message
    return " ".join(filter(None, (_age(allocated, allocated.exporter), _short_of(node, allocated, allocated.exporter))))


def jobs_in_words(allocated: NodeAllocations) -> list[str]:
    """Returns sentences about GPUs with jobs of a batch system, which Kubernetes counts as free. Current readings
    only."""
    if allocated.exporter is None or not allocated.is_current:
        return []
    said = (
        "its metrics exporter says (job_id)" if allocated.vendor == Vendor.AMD else "its DCGM exporter says (hpc_job)"
    )
    return [_job_on(device, said) for device in allocated.exporter.devices if device.get("jobs")]


def _job_on(device: Mapping[str, Any], said: str) -> str:
    jobs = device["jobs"]
    place = f"GPU {device['index']}" if device["index"] is not None else device["uuid"]
    part = f", slice {device['gi_id']}" if device["gi_id"] else ""
    job, runs = either(len(jobs), "Job", "Jobs"), either(len(jobs), "runs", "run")
    named = f"{job} {', '.join(jobs)} of a batch system {runs}"
    return (
        f"{named} on {place}{part}, as {said}. Kubernetes does not know of such jobs and may also give the GPU "
        "to a pod. Cordon or taint the node while the jobs run."
    )


def _exporter(allocated: NodeAllocations) -> str:
    return "exporter" if allocated.vendor in CALLED else DCGM


def _rests_on_it(allocated: NodeAllocations) -> bool:
    return any(
        allocation.source is AllocationSource.METRICS for board in allocated.boards for allocation in board.allocations
    )


def _age(allocated: NodeAllocations, reading: ExporterReading) -> str:
    why = f"{reading.refused} Since {to_the_second(reading.refused_since)}." if reading.refused else ""
    if allocated.is_current:
        return why
    if reading.read_at is None:
        return f"Its {_exporter(allocated)} was never read. {why}".rstrip()
    read_at = to_the_second(reading.read_at)
    last = f"Its {_exporter(allocated)} was last read at {read_at}. Its values are from that time."
    return f"{last} {why}".rstrip()


def _short_of(node: Node, allocated: NodeAllocations, reading: ExporterReading) -> str:
    """Returns why the exporter does not name all pods with GPUs."""
    if not allocated.is_current or not allocated.unplaced:
        return ""
    if allocated.vendor in CALLED:
        what = "pod. Check whether it reaches the kubelet's pod-resources socket" if reading.devices else "GPU"
        return f"The exporter answers and names no {what}."
    if not reading.devices:
        return "The DCGM exporter answers and names no GPU. Check whether the driver and DCGM run."
    if not any(device["pods"] for device in reading.devices):
        return (
            "The DCGM exporter names no pod. Check whether it runs with DCGM_EXPORTER_KUBERNETES=true and "
            "reaches the kubelet's pod-resources socket."
        )
    if allocated.shares_unplaced:
        return (
            "The DCGM exporter names at most one of the pods that share a GPU. With KUBERNETES_VIRTUAL_GPUS=true "
            "it names all these pods."
        )
    return f"Its DCGM exporter does not name these{_reason(node, allocated, reading)}."


def _reason(node: Node, allocated: NodeAllocations, reading: ExporterReading) -> str:
    if all(_was_new(one.pod, reading) for one in allocated.unplaced):
        return ": a new pod is named within a minute"
    silent = (node.physical_gpus or 0) - len({device["uuid"] for device in reading.devices})
    if not node.gpus_missing or silent < sum(one.number or 0 for one in allocated.unplaced):
        return ""
    what = either(silent, "it is the GPU", f"they are among the {silent} GPUs")
    return f": probably {what} that no source reports any more"


def _was_new(pod: Pod, reading: ExporterReading) -> bool:
    return reading.read_at is not None and reading.read_at - (pod.started_at or pod.created_at) < NAMED_WITHIN
