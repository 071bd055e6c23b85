"""Evaluates the GPU rules on the newest telemetry snapshot.

Stale samples and nodes whose driver is being replaced (Z21) are not evaluated. While there is no new snapshot, findings
stay as they are.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import structlog

from fleet.models import Cluster
from fleet.states.node import AT_REST, RECONFIGURING
from health.evaluation.exporter_silence import ReportingNodes, called_silent
from health.evaluation.limits_in_force import LimitsInForce
from health.evaluation.node_context import Around, RowsAround
from health.evaluation.signals import Signal, Subject
from health.models import Finding
from health.rules.gpus import GPU_RULES
from health.rules.gpus.base import (
    GpuFacts,
    GpuRule,
    UsualForSome,
    XidSeen,
    is_any_metric_exported,
    is_usual,
    reads_a_share,
)
from health.rules.gpus.ecc_corrected import EccCorrected
from health.rules.gpus.ecc_uncorrected import ROWS, EccUncorrected
from health.rules.gpus.nvlink_errors import NvlinkErrors
from health.rules.gpus.pcie_replays import PcieReplays
from health.rules.gpus.resets import METRIC as RESET_BY
from health.rules.gpus.silent import GpuSilent
from health.rules.gpus.xid import LastXid
from health.sources import snapshots
from health.sources.readings import BY_SLICE
from health.sources.snapshots import StoredSnapshot
from health.subjects import SLICE, identity_of, name_of
from health.telemetry.base import STALE_AFTER_S
from health.telemetry.peers import medians
from health.telemetry.snapshot import GpuDevice, PastXid
from health.telemetry.snapshot_memory import CHECKPOINT_S, COUNTERS, SLOWED_FOR, counters_restarted, growth

METRICS_OF = {rule.key: rule.metrics for rule in GPU_RULES}
USUAL_FOR = {rule.key: rule.usual_for for rule in GPU_RULES if isinstance(rule, UsualForSome)}
OF_SHARES = frozenset(rule.key for rule in GPU_RULES if reads_a_share(rule))
BY_ONE = frozenset({EccUncorrected.key})  # evaluated by the one metric in its facts, even if that is no longer exported
# For rules of counters: the seconds without growth (or restart) after which the fault is absent. By keys of facts.
GROWN_WITHIN_S: Mapping[str, float] = {
    **dict.fromkeys((*EccCorrected.metrics, ROWS, *NvlinkErrors.metrics, *PcieReplays.metrics), CHECKPOINT_S),
    **dict.fromkeys(SLOWED_FOR, STALE_AFTER_S),
    "resets": CHECKPOINT_S,
}
COMPARED = ("nvlink_mib_per_s",)  # with the other GPUs of a node
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class GpuEvaluation:
    """The result.

    `evaluated` holds the rules with data; `can_resolve` tells whether the absence of a signal resolves a finding.
    """

    signals: tuple[Signal, ...] = ()
    evaluated: frozenset[str] = frozenset()
    can_resolve: Callable[[Finding], bool] = lambda _: True
    reporting: ReportingNodes | None = None  # None: no telemetry now


def evaluate_gpus(cluster: Cluster, limits: LimitsInForce, *, now: datetime) -> GpuEvaluation:
    """Evaluates the GPU rules.

    Without telemetry it takes one Redis request; for suspects, five queries.
    """
    kept = _newest(cluster, now=now)
    if kept is None:
        return GpuEvaluation()
    rules = [rule for rule in GPU_RULES if is_any_metric_exported(rule, kept.exported)]
    suspects: dict[int, list[GpuRule]] = {}
    for rule in rules:
        for place in limits.suspects(rule, kept.snapshot):
            suspects.setdefault(place, []).append(rule)
    rows = RowsAround(cluster, kept.snapshot.devices, frozenset(suspects), now)
    evaluator = GpuEvaluator(kept, limits, rows, now)
    signals = evaluator.signals(suspects)

    def can_resolve(finding: Finding) -> bool:
        return evaluator.can_resolve(finding.rule, finding.subject, finding.gpu_uuid, finding.facts, rows.of_findings)

    return GpuEvaluation(
        signals, frozenset(rule.key for rule in rules), can_resolve, _reporting_nodes(cluster, evaluator)
    )


def _reporting_nodes(cluster: Cluster, evaluator: "GpuEvaluator") -> ReportingNodes:
    """Returns the reporting nodes. A node called silent counts as one that ever reported. One query."""
    snapshot = evaluator.kept.snapshot
    ever = {
        device.node_name for device, at in zip(snapshot.devices, evaluator.newest, strict=True) if math.isfinite(at)
    }
    ever_reported = frozenset(ever | called_silent(cluster))
    return ReportingNodes(frozenset(evaluator.reporting), ever_reported, snapshot, evaluator.kept.unplaced_xids)


def _newest(cluster: Cluster, *, now: datetime) -> StoredSnapshot | None:
    """Returns the newest snapshot; None if nobody took one lately."""
    try:
        kept = snapshots.newest(cluster.pk)
    except snapshots.SnapshotsUnavailable as error:
        log.warning("GPUs are not evaluated: Redis is away", cluster=cluster.name, reason=str(error))
        return None
    return kept if kept and now.timestamp() - kept.snapshot.taken_at <= STALE_AFTER_S else None


@dataclass
class GpuEvaluator:
    kept: StoredSnapshot
    limits: LimitsInForce
    around: Around
    now: datetime

    def signals(self, suspects: Mapping[int, Collection[GpuRule]]) -> tuple[Signal, ...]:
        """Returns the worst signal of each subject and rule. `suspects` holds the rules by position of the device.

        A value that exporters repeat on each slice belongs to the board.
        """
        worst: dict[tuple[str, str], Signal] = {}
        for place, rules in suspects.items():
            for signal in self._signals(place, rules):
                known = worst.get(signal.key)
                if known is None or known.problem.severity.is_less_than(signal.problem.severity):
                    worst[signal.key] = signal
        return tuple(worst.values())

    def _signals(self, place: int, rules: Collection[GpuRule]) -> Iterator[Signal]:
        device = self._device(place)
        node = self.around.nodes.get(device.node_name)
        if node is None or is_changing(node) or self._is_replaced(device, node):
            return
        classes = self.around.classes.get(node["id"], frozenset())
        rules = [rule for rule in rules if not (rule.key in USUAL_FOR and is_usual(USUAL_FOR[rule.key], classes))]
        if not rules:
            return  # most suspects end here, and their other facts are not looked up
        facts = self._facts(place, node, {metric for rule in rules for metric in rule.metrics})
        of_board = facts
        if device.gi_id:
            of_board = replace(facts, name=self._name(device._replace(gi_id="", profile="")))
        for rule in rules:
            its = facts if is_evaluated_by_slice(rule) else of_board
            if rule.key == GpuSilent.key and self._is_reporting(device):
                continue  # another part of it is
            with_limits = self.limits.rule_for(rule, its.node_name)
            if problem := with_limits.evaluate(its):
                subject = Subject(its.name, node["id"], node["uid"], node["name"], device.uuid)
                yield Signal(subject, with_limits, problem)

    def can_resolve(
        self,
        rule: str,
        subject: str,
        gpu_uuid: str,
        facts: Mapping[str, Any],
        nodes: Mapping[str, Mapping[str, Any]],
    ) -> bool:
        """Returns whether the finding's device reports now, so that a rule's silence resolves the finding.

        It does not while the node is being changed. A device without samples resolves it only if its node is gone,
        another board took its place, or it was partitioned again. `nodes` holds by name the nodes of all findings that
        may be resolved.
        """
        node = nodes.get(subject.partition(SLICE)[0].rpartition(" of ")[2])
        if node is None:
            return True
        if is_changing(node):
            return False
        its = self._places_of(subject, gpu_uuid)
        if not its:
            return not gpu_uuid or gpu_uuid in self._by_board or self._has_all(node)
        if all(self._is_replaced(self._device(place), node) for place in its):
            return True
        if rule == LastXid.key and any(self._counts_anew(facts.get("counters", {}), place) for place in its):
            return True  # the device reports again, so its silence ended
        if any(self._remembered_s < GROWN_WITHIN_S.get(key, 0.0) for key in facts):
            return False
        return any(self._has_evidence(rule, facts, place) for place in its)

    def _counts_anew(self, before: Mapping[str, float], place: int) -> bool:
        return counters_restarted(before, self._fresh(place))

    def _places_of(self, subject: str, gpu_uuid: str) -> Sequence[int]:
        """Returns the positions of the finding's slice, or of all slices of its board."""
        if not gpu_uuid:
            return [place for place, device in enumerate(self.kept.snapshot.devices) if name_of(device) == subject]
        places = self._by_board.get(gpu_uuid, ())
        if SLICE not in subject:
            return places
        identity = identity_of(subject, gpu_uuid)
        return [one for one in places if identity_of(name_of(self._device(one)), gpu_uuid) == identity]

    def _has_evidence(self, rule: str, facts: Mapping[str, Any], place: int) -> bool:
        fresh, metrics = self._fresh(place), METRICS_OF.get(rule, ())
        compared = [key for key in COMPARED if key in metrics]
        if any(self._device(place).node_name not in self._peers[key] for key in compared):
            return False  # nothing to hold it against
        named = {key.partition(":")[0] for key in facts}
        said = {key for key in metrics if self._has_sample(key, place)}
        rests_on = (named.intersection(metrics) if rule in BY_ONE else said.intersection(named)) or said
        if rule in OF_SHARES:
            return all(key in fresh for key in metrics)  # of a part nothing is known without its whole
        return any(key in fresh for key in rests_on) if metrics else bool(fresh)

    def _has_sample(self, metric: str, place: int) -> bool:
        column = self.kept.snapshot.columns.get(metric)
        return column is not None and math.isfinite(column.times[place])

    def _is_replaced(self, device: GpuDevice, node: Mapping[str, Any]) -> bool:
        """Returns whether the device is silent while its node has as many others as it ever had."""
        return not self._is_reporting(device) and self._has_all(node)

    def _has_all(self, node: Mapping[str, Any]) -> bool:
        """Returns whether as many boards report as the node ever had. For a partitioned node that number is unknown."""
        expected = node["gpu_expected"]
        return (
            bool(expected) and node["name"] not in self._cut and len(self.reporting.get(node["name"], ())) >= expected
        )

    def _is_reporting(self, device: GpuDevice) -> bool:
        return device.uuid in self.reporting.get(device.node_name, ())

    def _device(self, place: int) -> GpuDevice:
        return self.kept.snapshot.devices[place]

    @cached_property
    def oldest(self) -> float:
        """Returns the time of the oldest sample that counts as fresh."""
        return self.kept.snapshot.taken_at - STALE_AFTER_S

    @cached_property
    def _remembered_s(self) -> float:
        """Returns for how many seconds counter values are known; few after Redis was emptied."""
        checkpoints = self.kept.snapshot.checkpoints
        return self.kept.snapshot.taken_at - checkpoints[0].taken_at if checkpoints else 0.0

    @cached_property
    def newest(self) -> Sequence[float]:
        return self.kept.snapshot.newest

    @cached_property
    def _by_board(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for place, device in enumerate(self.kept.snapshot.devices):
            found[device.uuid].append(place)
        return found

    @cached_property
    def reporting(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for device, at in zip(self.kept.snapshot.devices, self.newest, strict=True):
            if at >= self.oldest:
                found[device.node_name].add(device.uuid)
        return dict(found)

    @cached_property
    def _cut(self) -> Collection[str]:
        return {device.node_name for device in self.kept.snapshot.devices if device.gi_id}

    @cached_property
    def _renumbered(self) -> Collection[str]:
        """Returns the UUIDs of silent boards whose index another board of the node has now."""
        first: dict[tuple[str, int | None], str] = {}
        devices = self.kept.snapshot.devices
        twice = {
            (device.node_name, device.index)
            for device in devices
            if first.setdefault((device.node_name, device.index), device.uuid) != device.uuid
        }
        if not twice:  # as nearly always
            return frozenset()
        numbered: dict[tuple[str, int | None], dict[str, float]] = defaultdict(dict)
        for device, at in zip(devices, self.newest, strict=True):
            if (device.node_name, device.index) in twice:
                numbered[device.node_name, device.index][device.uuid] = at
        return {uuid for times in numbered.values() for uuid, at in times.items() if at < max(times.values())}

    def _fresh(self, place: int) -> dict[str, float]:
        columns = self.kept.snapshot.columns.items()
        return {key: column.values[place] for key, column in columns if column.times[place] >= self.oldest}

    def _name(self, device: GpuDevice) -> str:
        return name_of(device, by_uuid=device.uuid in self._renumbered)

    def _facts(self, place: int, node: Mapping[str, Any], read: Collection[str]) -> GpuFacts:
        """Returns the facts of a device. `read` holds the metrics that its rules read."""
        snapshot, device, fresh = self.kept.snapshot, self._device(place), self._fresh(place)
        counters = [key for key in COUNTERS if key in read and key in fresh]
        grown = {key: each for key in counters if (each := growth(snapshot, key, place)) is not None}
        compared = [key for key in COMPARED if key in read]
        peers = {key: self._peers[key][device.node_name] for key in compared if device.node_name in self._peers[key]}
        return GpuFacts(
            node_name=device.node_name,
            name=self._name(device),
            product=device.product,
            vendor=node["gpu_vendor"],
            now=fresh,
            grown=grown,
            parts={key: parts for key, parts in self.kept.parts.get(device.key, {}).items() if key in fresh},
            xid=self._xid(place),
            past_xids=self._past_xids(device),
            again=self.around.xids_found.again(node["id"], device.uuid),
            once_more=self.around.xids_found.once_more(node["id"], device.uuid),
            had=self.around.xids_found.had(device.uuid),
            new=self.around.xids_found.new(device.uuid),
            elsewhere=self.around.xids_found.elsewhere(device.uuid),
            resets=self.around.resets[node["uid"], device.index]
            if RESET_BY in read and device.index is not None
            else 0,
            driver_changed_at=self.around.driver_changed.get(node["uid"]),
            booted_at=node.get("booted_at"),  # of the past, the frames that go on without a gap say as much
            workload_classes=self.around.classes.get(node["id"], frozenset()),
            is_of_one_job=node["name"] in self.around.of_one_job,
            peers=peers,
            evaluated_at=self.now,
        )

    def _xid(self, place: int) -> XidSeen | None:
        """Returns the last Xid, also of a silent GPU, since the Xid may explain the silence."""
        column, latched = self.kept.snapshot.columns.get("xid"), self.kept.snapshot.latched.get("xid")
        if column is None or not column.values[place] >= 1:
            return None
        number, told = int(column.values[place]), self.kept.xids.get(self._device(place).key)
        at = latched[place] if latched is not None else math.nan
        if at != at:  # the gauge was missing for a while, but the Xid is the same
            at = self.kept.snapshot.past_xids.get(self._device(place).key, {}).get(number, PastXid(math.nan)).since
        since = datetime.fromtimestamp(at, UTC) if at == at else None
        words, sampled_at = told.words if told and told.xid == number else "", column.times[place]
        return XidSeen(number, since, words, sampled_at=datetime.fromtimestamp(sampled_at, UTC))

    def _past_xids(self, device: GpuDevice) -> tuple[XidSeen, ...]:
        past = self.kept.snapshot.past_xids.get(device.key, {})
        return tuple(
            XidSeen(number, datetime.fromtimestamp(each.since, UTC) if each.since == each.since else None, each.words)
            for number, each in sorted(past.items())
        )

    @cached_property
    def _peers(self) -> Mapping[str, Mapping[str, float]]:
        return {key: medians(self.kept.snapshot, key) for key in COMPARED}


def is_evaluated_by_slice(rule: GpuRule) -> bool:
    """Returns whether the rule evaluates slices: its metrics are the slice's own (`BY_SLICE`).

    Others are the board's.
    """
    return bool(rule.metrics) and BY_SLICE.issuperset(rule.metrics)


def is_changing(node: Mapping[str, Any]) -> bool:
    return node["upgrade_state"] not in AT_REST or node["mig_config_state"] in RECONFIGURING
