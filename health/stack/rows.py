"""The rows of a cluster about the stack of one node."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from fleet.models import ClusterEvent, DriverObject, Operand, OperandRevision, Pod, ResourceSlice
from gpu.labels import DEPLOY_PREFIX
from health.models import CrashLog
from health.stack.causes import Event
from health.stack.causes.base import PUBLISHES


@dataclass(frozen=True)
class StackRows:
    operands: list[Operand]
    revisions: Iterable[OperandRevision]
    driver_objects: list[DriverObject]
    pods: list[Pod]  # operand pods on this node, and unscheduled ones
    now: datetime
    events: Iterable[ClusterEvent] = ()
    crash_logs: Iterable[CrashLog] = ()
    missed: Collection[str] = ()  # operands whose work is missing by an open finding of the node
    slices: Sequence[ResourceSlice] = ()  # the node's
    sees_pods: bool = True  # False: they were never listed, so that none is no news
    sees_daemon_sets: bool = True
    sees_slices: bool = True

    @cached_property
    def events_by_uid(self) -> Mapping[str, list[Event]]:
        found: dict[str, list[Event]] = defaultdict(list)
        for event in self.events:
            found[event.about_uid].append(Event(event.reason, event.message))
        return found

    @cached_property
    def has_operator(self) -> bool:
        """Returns whether NVIDIA's GPU Operator acts here, by one of its objects or DaemonSets."""
        gated = (key for each in self.operands for key in each.node_selector)
        return bool(self.driver_objects) or any(key.startswith(DEPLOY_PREFIX) for key in gated)

    @cached_property
    def is_driver_off(self) -> bool:
        """Returns whether the ClusterPolicy in force installs no driver."""
        return any(each.is_driver_off and each.state != "ignored" for each in self.driver_objects)

    @cached_property
    def newest(self) -> Mapping[str, str]:
        """The hash of the newest template of each DaemonSet, by its UID."""
        ordered = sorted(self.revisions, key=lambda row: row.revision)
        return {row.owner_uid: row.revision_hash for row in ordered}

    def devices_of(self, operand: str) -> int | None:
        """Returns how many devices the DRA driver publishes here; None without a slice."""
        mine = [each for each in self.slices if each.driver == PUBLISHES.get(operand)]
        newest = max((each.pool_generation for each in mine), default=0)
        return sum(len(each.devices) for each in mine if each.pool_generation == newest) if mine else None

    @cached_property
    def _logs(self) -> Mapping[str, list[CrashLog]]:
        found: dict[str, list[CrashLog]] = defaultdict(list)
        for log in self.crash_logs:
            found[log.pod_uid].append(log)
        return found

    def log_of(self, pod: Pod | None) -> CrashLog | None:
        """Returns the log of the container in trouble, or the latest one."""
        found = self._logs.get(pod.uid, []) if pod else []
        if pod is not None and pod.stuck_container:
            found = [log for log in found if log.container == pod.stuck_container]
        return max(found, key=lambda log: log.read_at, default=None)
