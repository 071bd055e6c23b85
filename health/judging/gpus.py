"""GPUs as their newest frame shows them, handed to the rules about them.

Nothing is judged on what is old: of a GPU whose samples are, of a node whose driver is being replaced (Z21), and while
no frame is new, findings stay as they are.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Protocol

import structlog
from django.db.models import Count, Max, Q, Sum

from fleet.models import Cluster, Node, NodeEvent, Pod, Pool
from fleet.states.node import AT_REST, RECONFIGURING
from health.judging.limits import LimitsInForce
from health.judging.signals import Signal, Subject
from health.models import Finding
from health.rules.gpus import GPU_RULES
from health.rules.gpus.base import GpuFacts, GpuRule, XidSeen
from health.sources import frames
from health.sources.frames import KeptFrame
from health.telemetry.base import STALE_AFTER_S
from health.telemetry.frame import Frame, GpuDevice
from health.telemetry.hours import utilisation
from health.telemetry.peers import medians
from health.telemetry.remembering import COUNTERS, growth

AT_ONCE = 500  # names in one query
MONTH = timedelta(days=30)
DAY = timedelta(days=1)
FALLEN_OFF = 79
COMPARED = ("nvlink_mib_per_s",)  # with the other GPUs of a node
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Hearing:
    """Of which nodes samples come in now, and of which any ever did."""

    now: frozenset[str]
    ever: frozenset[str]
    frame: Frame | None = None  # that it is from

    @cached_property
    def uuids(self) -> Mapping[tuple[str, int | None], str]:
        """Of boards, by their node's name and their index."""
        devices = self.frame.devices if self.frame is not None else ()
        return {(device.node_name, device.index): device.uuid for device in devices}

    def busy(self, uuids: Collection[str], *, least: float) -> set[str]:
        """Those of these boards that are so busy now, or of which nothing says it."""
        return {uuid for uuid in uuids if not self._busiest.get(uuid, math.inf) < least}

    @cached_property
    def _busiest(self) -> Mapping[str, float]:
        """By board, what the busiest of its slices says. Infinite: one says nothing."""
        if self.frame is None:
            return {}
        found: dict[str, float] = {}
        pairs = zip(self.frame.devices, utilisation(self.frame, self.frame.taken_at - STALE_AFTER_S), strict=True)
        for device, value in pairs:
            found[device.uuid] = max(found.get(device.uuid, 0.0), value if value == value else math.inf)
        return found


@dataclass(frozen=True)
class GpuJudgement:
    """`judged`: the rules that could see. `can_tell`: whether a finding may be resolved because its rule is silent."""

    signals: tuple[Signal, ...] = ()
    judged: frozenset[str] = frozenset()
    can_tell: Callable[[str, str], bool] = lambda _rule, _subject: True
    hearing: Hearing | None = None  # None: nobody listens now


def judge_gpus(cluster: Cluster, *, now: datetime) -> GpuJudgement:
    """Where nothing is read, one question to Redis; else a query, and four more where something is suspect."""
    kept = _newest(cluster, now=now)
    if kept is None:
        return GpuJudgement()
    rules = [rule for rule in GPU_RULES if not rule.metrics or kept.exported.intersection(rule.metrics)]
    limits = LimitsInForce.of(cluster, rules)
    suspects: dict[int, list[GpuRule]] = {}
    for rule in rules:
        for place in limits.suspects(rule, kept.frame):
            suspects.setdefault(place, []).append(rule)
    rows = _Rows(cluster, kept.frame.devices, frozenset(suspects), now)
    judging = Judging(kept, limits, rows, now)
    signals = tuple(signal for place, asked in suspects.items() for signal in judging.signals(place, asked))

    def can_tell(rule: str, subject: str) -> bool:
        return judging.can_tell(rule, subject, rows.nodes_of_findings)

    return GpuJudgement(signals, frozenset(rule.key for rule in rules), can_tell, _hearing(kept.frame))


def _hearing(frame: Frame) -> Hearing:
    oldest, newest = frame.taken_at - STALE_AFTER_S, frame.newest_by_device()
    pairs = list(zip(frame.devices, newest, strict=True))
    return Hearing(
        frozenset(device.node_name for device, at in pairs if at >= oldest),
        frozenset(device.node_name for device, at in pairs if math.isfinite(at)),
        frame,
    )


def _newest(cluster: Cluster, *, now: datetime) -> KeptFrame | None:
    """None: nobody took a frame lately."""
    try:
        kept = frames.newest(cluster.pk)
    except frames.FramesAway as error:
        log.warning("GPUs are not judged: Redis is away", cluster=cluster.name, because=str(error))
        return None
    return kept if kept and now.timestamp() - kept.frame.taken_at <= STALE_AFTER_S else None


class Around(Protocol):
    """What is known of the nodes of a frame beside it: from rows now, or from what is stored of the past."""

    @property
    def nodes(self) -> Mapping[str, Mapping[str, Any]]:
        """By its name what `_rows` has of each node that is asked for."""

    @property
    def of_one_job(self) -> Collection[str]:
        """The names of nodes of which one pod has every board that the frame has."""

    @property
    def repeats(self) -> Mapping[int, int]:
        """By the node's key how often a GPU of it fell off its bus in thirty days."""

    @property
    def driver_changed(self) -> Mapping[str, datetime]:
        """By the node's UID when its driver last changed within a day."""

    @property
    def classes(self) -> Mapping[int, frozenset[str]]:
        """By the node's key the workload classes of its pools."""


@dataclass
class Judging:
    """One look at one frame."""

    kept: KeptFrame
    limits: LimitsInForce
    around: Around
    now: datetime

    def signals(self, place: int, rules: Collection[GpuRule]) -> list[Signal]:
        node = self.around.nodes.get(self._device(place).node_name)
        if node is None or is_changing(node):
            return []
        facts = self._facts(place, node, {metric for rule in rules for metric in rule.metrics})
        subject = Subject(facts.name, node["id"], node["uid"], node["name"], self._device(place).uuid)
        asked = [self.limits.rule_for(rule, facts.node_name) for rule in rules]
        return [Signal(subject, rule, wrong) for rule in asked if (wrong := rule.judge(facts))]

    def can_tell(self, rule: str, subject: str, nodes: Mapping[str, Mapping[str, Any]]) -> bool:
        """Not of a GPU that says nothing now, but that it is silent; nor while its node is being changed."""
        place = self._places.get(subject)
        if place is None:
            return True  # its node is gone, or it was cut anew
        node = nodes.get(self._device(place).node_name)
        if node is not None and is_changing(node):
            return False
        return rule == "gpu-silent" or bool(self._fresh(place))

    def _device(self, place: int) -> GpuDevice:
        return self.kept.frame.devices[place]

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {name_of(device): place for place, device in enumerate(self.kept.frame.devices)}

    def _fresh(self, place: int) -> dict[str, float]:
        oldest = self.kept.frame.taken_at - STALE_AFTER_S
        columns = self.kept.frame.columns.items()
        return {key: column.values[place] for key, column in columns if column.times[place] >= oldest}

    def _facts(self, place: int, node: Mapping[str, Any], read: Collection[str]) -> GpuFacts:
        """`read`: the metrics that its rules read. Many a GPU is suspect of a full memory alone: no counter is read."""
        frame, device, fresh = self.kept.frame, self._device(place), self._fresh(place)
        counters = [key for key in COUNTERS if key in read and key in fresh]
        grown = {key: each for key in counters if (each := growth(frame, key, place)) is not None}
        peers = {key: self._peers[key][device.node_name] for key in COMPARED if device.node_name in self._peers[key]}
        return GpuFacts(
            node_name=device.node_name,
            name=name_of(device),
            product=device.product,
            now=fresh,
            grown=grown,
            parts={key: parts for key, parts in self.kept.parts.get(device.key, {}).items() if key in fresh},
            xid=self._xid(place),
            repeats=self.around.repeats.get(node["id"], 0),
            driver_changed_at=self.around.driver_changed.get(node["uid"]),
            workload_classes=self.around.classes.get(node["id"], frozenset()),
            is_of_one_job=node["name"] in self.around.of_one_job,
            peers=peers,
            judged_at=self.now,
        )

    def _xid(self, place: int) -> XidSeen | None:
        """Also of a GPU that went silent: its last one may say why."""
        column, latched = self.kept.frame.columns.get("xid"), self.kept.frame.latched.get("xid")
        if column is None or not column.values[place] >= 1:
            return None
        number, told = int(column.values[place]), self.kept.xids.get(self._device(place).key)
        at = latched[place] if latched is not None else float("nan")
        since = datetime.fromtimestamp(at, UTC) if at == at else None
        return XidSeen(number, since, told.words if told and told.xid == number else "")

    @cached_property
    def _peers(self) -> Mapping[str, Mapping[str, float]]:
        return {key: medians(self.kept.frame, key) for key in COMPARED}


@dataclass
class _Rows:
    """As the rows have it now, of the suspects' nodes."""

    cluster: Cluster
    devices: Sequence[GpuDevice]
    suspects: frozenset[int]
    now: datetime

    @cached_property
    def nodes(self) -> Mapping[str, dict[str, Any]]:
        return _rows(self.cluster, {self.devices[place].node_name for place in self.suspects})

    @cached_property
    def nodes_of_findings(self) -> Mapping[str, dict[str, Any]]:
        keys = [rule.key for rule in GPU_RULES]
        waiting = Finding.objects.filter(cluster=self.cluster, rule__in=keys, resolved_at=None, node__isnull=False)
        return _rows(self.cluster, set(waiting.values_list("node__name", flat=True)))

    @cached_property
    def of_one_job(self) -> frozenset[str]:
        boards = Counter(device.node_name for device in self.devices if not device.gi_id)
        names = list(self.nodes)
        pods = Pod.objects.filter(cluster=self.cluster, node_name__in=names, gpus__gt=0, operand="").not_done()
        held = pods.order_by().values_list("node_name", "gpus")
        return frozenset(name for name, gpus in held if gpus >= boards[name])

    @cached_property
    def repeats(self) -> Mapping[int, int]:
        nodes = [row["id"] for row in self.nodes.values()]
        fallen = Finding.objects.filter(
            cluster=self.cluster, rule="gpu-xid", evidence__xid=FALLEN_OFF, since__gte=self.now - MONTH
        )
        turned = Count("pk", filter=~Q(resolved_because=""))  # what went on with its rule's trial in a row of its own
        counted = fallen.filter(node__in=nodes).order_by().values_list("node").annotate(number=Sum("times") - turned)
        return {node: number for node, number in counted if node is not None}

    @cached_property
    def driver_changed(self) -> Mapping[str, datetime]:
        events = NodeEvent.objects.filter(cluster=self.cluster, at__gte=self.now - DAY).driver_changes()
        uids = [row["uid"] for row in self.nodes.values()]
        return dict(events.filter(node_uid__in=uids).order_by().values_list("node_uid").annotate(last=Max("at")))

    @cached_property
    def classes(self) -> Mapping[int, frozenset[str]]:
        return classes_of(self.cluster, [row["id"] for row in self.nodes.values()])


def classes_of(cluster: Cluster, nodes: Collection[int]) -> dict[int, frozenset[str]]:
    """The workload classes of each node's pools."""
    found: dict[int, frozenset[str]] = {}
    members = Pool.objects.filter(cluster=cluster, nodes__in=nodes).values_list("nodes", "workload_class")
    for node, workload_class in members:
        found[node] = found.get(node, frozenset()) | {workload_class}
    return found


def name_of(device: GpuDevice) -> str:
    """What a person calls it, and what its findings are known by."""
    board = f"GPU {device.index}" if device.index is not None else f"GPU {device.uuid}"
    part = f", slice {device.gi_id}{f' ({device.profile})' if device.profile else ''}" if device.gi_id else ""
    return f"{board} of {device.node_name}{part}"


def is_changing(node: Mapping[str, Any]) -> bool:
    return node["upgrade_state"] not in AT_REST or node["mig_config_state"] in RECONFIGURING


def _rows(cluster: Cluster, names: Collection[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    wanted = sorted(names)
    for start in range(0, len(wanted), AT_ONCE):
        rows = Node.objects.filter(cluster=cluster, name__in=wanted[start : start + AT_ONCE])
        found |= {
            row["name"]: dict(row) for row in rows.values("id", "uid", "name", "upgrade_state", "mig_config_state")
        }
    return found
