"""What the rows of a cluster say about the stack of one node."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from fleet.models import ClusterEvent, CrashLog, DriverObject, Operand, OperandRevision, Pod
from fleet.stack.causes import Event


@dataclass(frozen=True)
class StackRows:
    operands: list[Operand]
    revisions: Iterable[OperandRevision]
    driver_objects: list[DriverObject]
    pods: list[Pod]  # the operands' on this node, and those that were given none
    now: datetime
    events: Iterable[ClusterEvent] = ()
    crash_logs: Iterable[CrashLog] = ()
    sees_pods: bool = True  # False: they were never listed, so that none is no news
    sees_daemon_sets: bool = True

    @cached_property
    def events_by_uid(self) -> Mapping[str, list[Event]]:
        found: dict[str, list[Event]] = defaultdict(list)
        for event in self.events:
            found[event.about_uid].append(Event(event.reason, event.message))
        return found

    @cached_property
    def newest(self) -> Mapping[str, str]:
        """The hash of the newest template of each DaemonSet, by its UID."""
        ordered = sorted(self.revisions, key=lambda row: row.revision)
        return {row.owner_uid: row.revision_hash for row in ordered}

    @cached_property
    def _logs(self) -> Mapping[str, list[CrashLog]]:
        found: dict[str, list[CrashLog]] = defaultdict(list)
        for log in self.crash_logs:
            found[log.pod_uid].append(log)
        return found

    def log_of(self, pod: Pod | None) -> CrashLog | None:
        """Of the container that is in trouble, and where none is, the latest."""
        found = self._logs.get(pod.uid, []) if pod else []
        if pod is not None and pod.stuck_container:
            found = [log for log in found if log.container == pod.stuck_container]
        return max(found, key=lambda log: log.read_at, default=None)
