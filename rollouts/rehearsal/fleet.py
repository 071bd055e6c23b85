"""The virtual fleet of a rehearsal: nodes, the operator that changes them, and what they show. Pure.

The states are those of the GPU Operator's upgrade controller (`gpu/upgrade_controller.py`). The times of a node are
drawn once, so that the same seed gives the same rehearsal.
"""

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from gpu.labels import GPU
from gpu.upgrade_controller import CORDON_REQUIRED, UPGRADE_DONE, UPGRADE_FAILED, UPGRADE_REQUIRED
from health.telemetry.metrics import METRICS
from operations.failure_domains import UNBOUND, Budgets
from rollouts.gates.base import GpuTelemetry, NextWave, WindowEvidence
from rollouts.gates.earlier_findings import EarlierFindings
from rollouts.rehearsal.faults import DriverFault, NodeFault, PodFault, ValidatorFault

RESTART, VALIDATION = "pod-restart-required", "validation-required"
GIVES_UP = timedelta(minutes=35)  # of a driver that never becomes Ready: more than ten restarts of its container
VALIDATION_LIMIT = timedelta(minutes=10)  # then upgrade-failed, and at once upgrade-done: docs/design/nvidia.md 2.7
CRASH_EVERY = timedelta(minutes=2)
RESTART_TAKES = timedelta(minutes=2)
FLAP_EVERY = timedelta(minutes=3)
HARMLESS_AFTER = timedelta(minutes=6)
CRASHES = (PodFault.CRASH, PodFault.TENANTS_CRASH)
SOURCE_SILENT = "The telemetry source does not answer."
GPUS = 8
EVERY_METRIC = GpuTelemetry(GPUS, GPUS, dict.fromkeys(METRICS, GPUS), frozenset(METRICS))


NO_FAULT = DriverFault(key="", title="")


@dataclass(frozen=True)
class Pace:
    """The times of one node."""

    drain: timedelta = timedelta(minutes=2)
    driver: timedelta = timedelta(minutes=4)
    validation: timedelta = timedelta(minutes=2)
    loading: timedelta = timedelta(minutes=3)  # of a tenant's pod, from its start to Ready
    test: timedelta = timedelta(minutes=2)

    @classmethod
    def lasting(cls, change: timedelta) -> "Pace":
        """Returns the pace of a node that takes so long from its release until its new driver is read from it."""
        usual = cls()
        ratio = change / (usual.drain + usual.driver + usual.validation)
        return cls(usual.drain * ratio, usual.driver * ratio, usual.validation * ratio)


@dataclass(frozen=True)
class OwnFinding:
    """A finding that a node has by itself, whichever driver it runs."""

    rule: str
    severity: str
    begins_at: datetime
    ends_at: datetime


@dataclass
class VirtualNode:
    name: str
    facts: Mapping[str, str]  # by `rollouts.node_order.node_selection.FACTORS`
    version: str
    pods: int = 1  # GPU pods of tenants, that come back after the change
    busy_gpus: int = 1  # GPUs that these pods have
    offers: Mapping[str, int] = field(default_factory=lambda: {GPU: GPUS})  # by resource
    mig_gpus: int = 0  # GPUs cut into slices
    telemetry: GpuTelemetry | None = EVERY_METRIC  # None: no exporter reports the node
    pace: Pace = field(default_factory=Pace)
    is_sick_before: bool = False  # a critical finding from before the change
    has_harmless_finding: bool = False  # of an application, after the change
    throughput: float = 1.0  # as a share of the usual one
    restarts_after: timedelta | None = None  # time from Ready to a restart by itself
    exporter_after: timedelta = timedelta(0)  # from the change to the first sample of its exporter
    own_findings: tuple[OwnFinding, ...] = ()
    fault: DriverFault | None = None  # that the new driver has on this node
    state: str = UPGRADE_DONE
    is_held: bool = False
    is_cordoned: bool = False  # by the plan
    is_out: bool = False  # cordoned by the operator
    since: datetime | None = None  # of the state
    changed_at: datetime | None = None
    open_since: datetime | None = None  # since when pods may come: changed and not cordoned

    @property
    def uid(self) -> str:
        return f"uid-of-{self.name}"

    @property
    def is_changed(self) -> bool:
        return self.changed_at is not None

    @property
    def loaded(self) -> str:
        """Returns the driver that the node reports; empty while it changes."""
        return "" if self.state == RESTART else self.version

    @property
    def defect(self) -> DriverFault:
        return self.fault or NO_FAULT

    def shows_since(self, now: datetime) -> datetime | None:
        """Returns since when the changed node shows its fault; None if it does not, or was not changed."""
        first = self.began_to_show(now)
        if first is None or not self.defect.on:
            return first
        return first if (now - first) % (self.defect.on + self.defect.off) < self.defect.on else None

    def began_to_show(self, now: datetime) -> datetime | None:
        """Returns when the changed node first showed its fault, which may have gone since."""
        first = self.changed_at + self.fault.after if self.changed_at and self.fault else None
        return first if first is not None and first <= now else None

    def first_sign(self, now: datetime) -> datetime | None:
        """Returns when the fault showed its first sign to anybody; None if it has not."""
        if self.fault is None or self.since is None:
            return None
        if self.fault.never_loads and self.state in (RESTART, UPGRADE_FAILED):
            return self.since
        if self.fault.validator and (self.changed_at or self.state == VALIDATION):
            return self.changed_at or self.since
        is_seen = self.pods > 0 or self.fault.shows_on_idle_nodes
        return self.began_to_show(now) if is_seen else None

    def is_ready(self, now: datetime) -> bool:
        first = self.shows_since(now)
        if first is None or not self.defect.node:
            return True
        return self.defect.node is NodeFault.FLAPS and (now - first) // FLAP_EVERY % 2 == 1

    def throughput_at(self, now: datetime) -> float:
        """Returns tokens per second as a share of the usual."""
        first, fault = self.shows_since(now), self.defect
        if first is None:
            return self.throughput
        ramp = timedelta(minutes=fault.ramp_minutes)
        fallen = min(1.0, (now - first) / ramp) if ramp else 1.0
        return self.throughput * (1 - (1 - fault.throughput_percent / 100) * fallen)

    def pods_crash(self, now: datetime) -> bool:
        return self.defect.pods in CRASHES and self.shows_since(now) is not None

    def restarts(self, now: datetime) -> int:
        """Returns the restarts of the tenants' pods."""
        first = self.began_to_show(now)
        if first is None or self.defect.pods not in CRASHES:
            return 0
        begin = max(first, self.open_since or first)
        return (self._visible_time(now - first) - self._visible_time(begin - first)) // CRASH_EVERY

    def _visible_time(self, spent: timedelta) -> timedelta:
        """Returns how long the fault was visible in the time `spent`, which begins with its first sign."""
        on, off = self.defect.on, self.defect.off
        return spent // (on + off) * on + min(spent % (on + off), on) if on else spent

    def changes_at(self, now: datetime) -> Iterator[datetime]:
        """Yields when the node next shows something else without a decision: past times count as over."""
        since = self.since or now
        if self.state == CORDON_REQUIRED:
            yield since + self.pace.drain
        elif self.state == RESTART:
            yield since + (GIVES_UP if self.defect.never_loads else self.pace.driver)
        elif self.state == VALIDATION and self.defect.validator is not ValidatorFault.ABSENT:
            yield since + self.validates_for
        yield from self._scattered_changes()
        if self.changed_at and self.has_harmless_finding:
            yield self.changed_at + HARMLESS_AFTER
        if self.changed_at and self.fault:
            first = self.changed_at + self.fault.after
            yield first
            yield from (first + one.after for one in self.fault.opens)
            for every, offset in self._signs_by_period() if now >= first else ():
                yield first + offset + ((now - first - offset) // every + 1) * every

    def _scattered_changes(self) -> Iterator[datetime]:
        """Yields when findings, pods and the exporter change by themselves."""
        for one in self.own_findings:
            yield from (one.begins_at, one.ends_at)
        if self.changed_at and self.exporter_after:
            yield self.changed_at + self.exporter_after
        if self.open_since:
            loaded = self.open_since + self.pace.loading
            yield loaded
            if self.restarts_after:
                yield from (loaded + self.restarts_after, loaded + self.restarts_after + RESTART_TAKES)

    @property
    def validates_for(self) -> timedelta:
        return VALIDATION_LIMIT if self.defect.validator is ValidatorFault.FAILS else self.pace.validation

    def _signs_by_period(self) -> Iterator[tuple[timedelta, timedelta]]:
        """Yields how often a fault shows something else again and again, and the offset of that from its first sign."""
        begins, defect = timedelta(0), self.defect
        if defect.node is NodeFault.FLAPS:
            yield FLAP_EVERY, begins
        if defect.pods in CRASHES:
            yield CRASH_EVERY, begins
        if defect.throughput_percent < 100 and defect.ramp_minutes:
            yield timedelta(seconds=30), begins
        if defect.on:
            yield from ((defect.on + defect.off, offset) for offset in (begins, defect.on))

    def pods_ready(self, now: datetime) -> bool:
        """Returns whether the tenants' pods are Ready again on the changed node."""
        if self.open_since is None or self.pods_crash(now):
            return False
        restarted_at = self.restarted_at(now)
        is_back = restarted_at is None or now - restarted_at >= RESTART_TAKES
        return is_back and now - self.open_since >= self.pace.loading

    def restarted_at(self, now: datetime) -> datetime | None:
        """Returns when a tenant's pod restarted by itself; None if it has not."""
        if self.open_since is None or self.restarts_after is None:
            return None
        at = self.open_since + self.pace.loading + self.restarts_after
        return at if at <= now else None

    def gpu_time(self, now: datetime) -> timedelta:
        """Returns the GPU time of the tenants' pods since the change."""
        if not self.pods or not self.pods_came(now) or not self.pods_ready(now) or self.open_since is None:
            return timedelta()
        return self.busy_gpus * (now - self.open_since - self.pace.loading)

    def pods_came(self, now: datetime) -> bool:
        """Returns whether the tenants' pods were scheduled on the changed node."""
        stays_away = self.defect.pods is PodFault.STAY_AWAY
        return self.open_since is not None and not stays_away and self.open_since <= now


class PodRoom(Protocol):
    """The room for evicted pods in the cluster."""

    def next_wave(self, names: Sequence[str], busy: Collection[str]) -> NextWave: ...


class WindowHours(Protocol):
    """The maintenance windows of the cluster."""

    def closed(self, names: Collection[str], now: datetime) -> Mapping[str, str]:
        """Returns by node why no window lets it go now; only nodes that a window binds."""

    def evidence(self, names: Collection[str], *, lasting: timedelta, now: datetime) -> tuple[WindowEvidence, ...]: ...


@dataclass(frozen=True)
class Noise:
    """The scatter of measurements. The same seed gives the same."""

    seed: str
    of_services: float = 0.05  # standard deviation of the logarithm
    of_tests: float = 0.02

    def service(self, *what: object, windows: float = 1) -> float:
        """Returns the factor of a measurement over so many windows."""
        return self._factor(self.of_services / math.sqrt(windows), what)

    def test(self, *what: object) -> float:
        return self._factor(self.of_tests, what)

    def _factor(self, scatter: float, what: Sequence[object]) -> float:
        return math.exp(random.Random(f"{self.seed} {what}").gauss(0, scatter))


@dataclass
class VirtualFleet:
    nodes: dict[str, VirtualNode]
    from_version: str
    to_version: str
    at_once: int  # nodes that the operator upgrades at once; 0: any number
    version: str = ""  # of the driver object
    has_source: bool = True  # of GPU telemetry
    trouble: str = ""  # why no telemetry arrives from the source; blank: it arrives
    has_prometheus: bool = True
    noise: Noise | None = None  # None: every measurement is exact
    past: EarlierFindings | None = None  # of the nodes; None: nothing is known
    room: PodRoom | None = None  # None: nobody knows
    hours: WindowHours | None = None  # None: the cluster has no maintenance window
    budgets: Budgets = UNBOUND  # of the failure domains, before the plan

    def __post_init__(self) -> None:
        self.version = self.version or self.from_version
        self._silencing = [node for node in self.nodes.values() if node.defect.is_source_silent]
        self._usual_trouble = self.trouble

    def reconcile(self, now: datetime) -> list[VirtualNode]:
        """Moves every node on, as the operator and the kubelets would by now. Returns the nodes in another state."""
        if self._silencing:
            is_silent = any(node.shows_since(now) for node in self._silencing)
            self.trouble = SOURCE_SILENT if is_silent else self._usual_trouble
        moved, busy = [], self._busy()
        for node in self.nodes.values():
            before = node.state
            if before == UPGRADE_DONE:
                if node.version != self.version:
                    self._enter(node, UPGRADE_REQUIRED, now)
            elif before != UPGRADE_REQUIRED:
                self._go_on(node, now)
            elif not node.is_held and (not self.at_once or busy < self.at_once):
                node.is_out, busy = True, busy + 1
                self._enter(node, CORDON_REQUIRED, now)
            if node.open_since is None and node.is_changed and not node.is_cordoned and not node.is_out:
                node.open_since = now
            if node.state != before:
                moved.append(node)
        return moved

    def has_free_slot(self) -> bool:
        """Returns whether the operator begins with a node at the next look."""
        waits = any(node.state == UPGRADE_REQUIRED and not node.is_held for node in self.nodes.values())
        return waits and (not self.at_once or self._busy() < self.at_once)

    def _busy(self) -> int:
        """Returns how many nodes are being changed; 0 where that limits nothing."""
        if not self.at_once:
            return 0
        return sum(node.state not in (UPGRADE_DONE, UPGRADE_REQUIRED) for node in self.nodes.values())

    def _go_on(self, node: VirtualNode, now: datetime) -> None:
        spent = now - (node.since or now)
        if node.state == CORDON_REQUIRED and spent >= node.pace.drain:
            self._enter(node, RESTART, now)
        elif node.state == RESTART and node.defect.never_loads:
            if spent >= GIVES_UP:
                self._enter(node, UPGRADE_FAILED, now)
        elif node.state == RESTART and spent >= node.pace.driver:
            node.version = self.version
            self._enter(node, VALIDATION, now)
        elif node.state == VALIDATION and node.defect.validator is ValidatorFault.ABSENT:
            return
        elif node.state == VALIDATION and spent >= node.validates_for:
            # Also where the validator fails: the driver's pod is Ready, so upgrade-failed lasts less than a second.
            self._end(node, now)

    def _end(self, node: VirtualNode, now: datetime) -> None:
        node.is_out, node.changed_at = False, now
        self._enter(node, UPGRADE_DONE, now)

    def _enter(self, node: VirtualNode, state: str, now: datetime) -> None:
        node.state, node.since = state, now


def afflict(fault: DriverFault, nodes: Sequence[VirtualNode], value: str, dice: random.Random) -> list[VirtualNode]:
    """Gives the fault to its share of the nodes that have the value of its property, and returns them."""
    able = [node for node in nodes if not fault.factor or node.facts.get(fault.factor, "") == value]
    if not able:
        return []
    chosen = dice.sample(able, max(1, round(fault.share_percent / 100 * len(able))))
    for node in chosen:
        node.fault = fault
    return chosen
