"""NVSentinel's janitor: a GPUReset makes it reset GPUs of the node in a privileged Job.

NVIDIA/NVSentinel, janitor/api/v1alpha1 and the CRD of its chart, read 2026-11-29. An empty selector means all GPUs of
the node, so that every GPU is named.
"""

from collections.abc import Mapping
from typing import ClassVar

from maintenance.actors.base import ActorReport, ObjectActor, ObjectStatus, RepairTask
from maintenance.lifecycle import RepairAnswer, RepairKind

ENDED = ("Complete", "GPUReset")  # newer and older releases


class NvsentinelGpuReset(ObjectActor):
    key: ClassVar[str] = "nvsentinel-gpu-reset"
    title: ClassVar[str] = "NVSentinel GPUReset"
    kinds: ClassVar[frozenset[RepairKind]] = frozenset({RepairKind.GPU_RESET})
    waiting: ClassVar[str] = "NVSentinel resets the GPUs. The case continues by itself."
    object_kind: ClassVar[str] = "GPUReset"
    group_suffix: ClassVar[str] = "nvidia.com"

    def why_not_this(self, task: RepairTask) -> str:
        if not task.gpu_uuids:
            return "The UUIDs of the node's GPUs are unknown. A GPUReset without one would reset every GPU."
        return ""

    def spec(self, task: RepairTask) -> Mapping[str, object]:
        return {"nodeName": task.node, "selector": {"uuids": list(task.gpu_uuids)}}

    def report(self, status: ObjectStatus) -> ActorReport:
        if not status.is_completed:
            return ActorReport("")
        ended = next((found for name in ENDED if (found := status.condition(name)).status), None)
        if ended is not None and ended.is_true and ended.reason not in ("Failed", "Unknown"):
            return ActorReport("NVSentinel reset the GPUs.", RepairAnswer.DONE)
        words = ended.words if ended else "no reason given"
        return ActorReport(f"NVSentinel ended the GPU reset: {words}", RepairAnswer.UNCLEAR)
