"""The pods that hold each device, from the labels of an exporter's series.

NVIDIA/dcgm-exporter, internal/pkg/rendermetrics/render_metrics.go: each series of a GPU has `gpu` and `UUID`; those of
a MIG slice also have `GPU_I_PROFILE` and `GPU_I_ID`, with the board's UUID. internal/pkg/transformation/kubernetes.go:
it asks the kubelet who holds the device and adds `pod`, `namespace`, `container` (`pod_name`, … with
--use-old-namespace), and `pod_uid` if that is enabled. For a shared device it names whichever pod comes last; with
KUBERNETES_VIRTUAL_GPUS there is a series for each, distinguished by `vgpu`. A Prometheus that keeps its own labels
prefixes these: `exported_pod`. Its `pod` is then the exporter's own, on every series (dcgm-exporter #363, #27), and an
idle GPU has no other. internal/pkg/transformation/hpc.go: with DCGM_HPC_JOB_MAPPING_DIR it adds `hpc_job`, a series for
each job on the GPU. ROCm/device-metrics-exporter names pods of GPUs and of their partitions by the same labels, and a
Slurm job by `job_id` (docs/integrations/slurm-integration.md), which is empty if no job runs.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from health.telemetry.identity import device_of
from health.telemetry.lines import UnreadableMetrics, labels_in, lines_in

EXPORTER = re.compile(r"(?:dcgm|device-metrics)-exporter")
DEVICES_AT_MOST = 1024  # 16 boards of 7 slices are 112
PODS_AT_MOST = 2048  # 112 slices with ten users each are 1,120
JOBS_AT_MOST = 16  # of one device: more are not worth naming


@dataclass(frozen=True)
class ExporterPod:
    namespace: str
    name: str
    container: str
    uid: str = ""  # blank: it does not say


@dataclass(frozen=True)
class ExporterDevice:
    """A board, or a slice of one. `uuid` is the board's in both cases."""

    uuid: str  # of an AMD GPU its serial number
    index: int | None  # of the board
    gi_id: str = ""  # of the slice; blank: the whole board
    profile: str = ""
    pods: tuple[ExporterPod, ...] = ()
    jobs: tuple[str, ...] = ()  # of a batch system, which Kubernetes knows nothing of


def read_devices(text: str) -> tuple[ExporterDevice, ...]:
    """Returns the devices in the order of their first series.

    :raises UnreadableMetrics: with the reason
    """
    found: dict[tuple[str, str], ExporterDevice] = {}
    pods: dict[tuple[str, str], dict[ExporterPod, None]] = {}
    jobs: dict[tuple[str, str], dict[str, None]] = {}
    for labels in _label_sets(text):
        device = _device(labels)
        if device is None:
            continue
        key = device.uuid, device.gi_id
        if key not in found and len(found) >= DEVICES_AT_MOST:
            raise UnreadableMetrics(f"The answer names more than {DEVICES_AT_MOST} devices. No node has so many.")
        found.setdefault(key, device)
        if pod := _pod(labels):
            pods.setdefault(key, {})[pod] = None
        if job := _job(labels):
            jobs.setdefault(key, {})[job] = None
    if sum(map(len, pods.values())) > PODS_AT_MOST:
        raise UnreadableMetrics(f"The answer names more than {PODS_AT_MOST} pods. No node has so many.")
    return tuple(
        replace(device, pods=tuple(pods.get(key, ())), jobs=tuple(jobs.get(key, ()))[:JOBS_AT_MOST])
        for key, device in found.items()
    )


def _label_sets(text: str) -> Iterable[Mapping[str, str]]:
    """Returns distinct label sets: a device has the same in each of its 35 series. Values do not matter."""
    for written in dict.fromkeys(line.labels for line in lines_in(text)):
        yield labels_in(written)


def _device(labels: Mapping[str, str]) -> ExporterDevice | None:
    """Returns the device; None if the series is not of a GPU."""
    found = device_of(labels, "")
    if found is None or (found.index is None and not (found.gi_id or labels.get("UUID") or labels.get("uuid"))):
        return None
    return ExporterDevice(found.uuid, found.index, found.gi_id[:16], found.profile)


def _pod(labels: Mapping[str, str]) -> ExporterPod | None:
    """Returns the pod; None if nobody holds the device, or the exporter does not report it."""
    name, namespace, container = (_exported(labels, what) for what in ("pod", "namespace", "container"))
    if not name:
        name, namespace, container = (labels.get(old, "") for old in ("pod_name", "pod_namespace", "container_name"))
    if not name or len(name) > 253 or len(namespace) > 63 or _is_scraped_pod(labels, name, container):
        return None
    return ExporterPod(namespace, name, container[:253], labels.get("pod_uid", "")[:64])


def _job(labels: Mapping[str, str]) -> str:
    """Returns the batch job; empty if there is none."""
    is_amds = "serial_number" in labels or "gpu_uuid" in labels
    return (_exported(labels, "hpc_job") or (_exported(labels, "job_id") if is_amds else ""))[:64]


def _is_scraped_pod(labels: Mapping[str, str], pod: str, container: str) -> bool:
    """Returns whether the pod is the scraped one. Prometheus adds `job` and `instance` to all scraped series."""
    if labels.get("exported_pod"):
        return False
    return ("job" in labels and "instance" in labels) or any(EXPORTER.search(name) for name in (pod, container))


def _exported(labels: Mapping[str, str], name: str) -> str:
    return labels.get(f"exported_{name}") or labels.get(name, "")
