"""NVSentinel's janitor: a RebootNode makes it reboot the node through the cloud or the host.

NVIDIA/NVSentinel, janitor/api/v1alpha1/rebootnode_types.go, read 2026-11-29.
"""

from collections.abc import Mapping
from typing import ClassVar

from maintenance.actors.base import ActorReport, ObjectActor, ObjectStatus, RepairTask
from maintenance.lifecycle import RepairAnswer, RepairKind

MANUAL = "NVSentinel is in manual mode. Reboot the node by hand. The case continues once it has booted and is Ready."


class NvsentinelReboot(ObjectActor):
    key: ClassVar[str] = "nvsentinel-reboot"
    title: ClassVar[str] = "NVSentinel RebootNode"
    kinds: ClassVar[frozenset[RepairKind]] = frozenset({RepairKind.REBOOT})
    waiting: ClassVar[str] = "NVSentinel reboots the node. The case continues by itself."
    object_kind: ClassVar[str] = "RebootNode"
    group_suffix: ClassVar[str] = "nvidia.com"

    def spec(self, task: RepairTask) -> Mapping[str, object]:
        return {"nodeName": task.node, "force": False}

    def report(self, status: ObjectStatus) -> ActorReport:
        """Reads the answer. The condition NodeReady is no proof of a reboot: only a new boot ID is."""
        sent, ready = status.condition("SignalSent"), status.condition("NodeReady")
        if status.condition("ManualMode").is_true:
            return ActorReport(MANUAL)
        if not status.is_completed:
            return ActorReport(f"NVSentinel sent the reboot signal. {sent.message}".strip() if sent.is_true else "")
        if sent.is_true and ready.is_true:
            return ActorReport("NVSentinel reports that the node is Ready after the reboot.", RepairAnswer.DONE)
        why = ready.words or sent.words or "no reason given"
        return ActorReport(f"NVSentinel ended the reboot: {why}", RepairAnswer.UNCLEAR)
