"""Evaluates the node rules on the current rows."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from django.db.models import TextField
from django.db.models.functions import Cast

from fleet.allocation.slice_pools import PublishedPool, withheld_on_nodes
from fleet.models import Cluster, Node, Pool
from fleet.states.node import RECONFIGURED_WITHIN, RECONFIGURING
from gpu.conditions import is_fault, whole_condition
from gpu.cordons import CordonedNode, StaleCordon, stale_cordon
from gpu.label_conflicts import LabelConflict
from gpu.labels import CORDONED_BY, WAS_CORDONED
from gpu.resources import is_gpu_resource, unhealthy_in_words
from gpu.upgrade_controller import DRIVER_RESTARTED
from gpu.versions import agree
from health.evaluation.driver_reports import LABEL, SLICE, reported_drivers
from health.evaluation.exporter_silence import ReportingNodes
from health.evaluation.failing_pods import failing_pods
from health.evaluation.gpu_evaluation import is_changing
from health.evaluation.idle_gpus import idle_allocations
from health.evaluation.late_pods import starting_pods
from health.evaluation.limits_in_force import LimitsInForce
from health.evaluation.missing_offers import domain_daemons, never_offered, withheld_gpus
from health.evaluation.missing_operands import operands_away
from health.evaluation.node_flaps import flaps_by_node
from health.evaluation.signals import Signal, Subject
from health.evaluation.upgrade_blockers import find_blockers
from health.evaluation.workload_failures import workloads_by_node
from health.models import Finding
from health.rules.base import (
    Blocker,
    FailingPod,
    IdleAllocation,
    NodeCondition,
    NodeFacts,
    NoOffer,
    RequestedByOthers,
    Rule,
    Severity,
    WorkloadHere,
)
from health.rules.cordon_removed import CordonRemoved
from health.rules.idle_gpus import IdleGpus
from wording.reports import EvidenceItem

COLUMNS = (
    "id", "uid", "name", "upgrade_state", "driver_unknown_since", "mig_config", "mig_config_state",
    "mig_changing_since", "layout", "sharing", "sharing_replicas", "is_ready", "not_ready_reason", "is_paused",
    "is_held", "is_unschedulable", "driver_version", "gpu_vendor", "gpu_product", "booted_at", "gpus_free",
    "cpu_others_m", "cpu_allocatable_m", "memory_others_bytes", "memory_allocatable_bytes",
)  # fmt: skip
AS_JSON = (
    "allocatable", "capacity", "expected", "requested", "unhealthy_gpus", "devices_unhealthy", "conditions",
    "label_conflicts",
)  # fmt: skip
UNCORDONED_FOR = timedelta(days=1)  # after this time the person who cordoned it has seen the change
AFTER_A_BOOT = timedelta(hours=1)  # problems that begin this soon may come from the boot
NVIDIA = ("", "nvidia")
GIB = 2**30
MEMORY = ("memory_others_bytes", "memory_allocatable_bytes")


@dataclass(frozen=True)
class _Around:
    """Facts about nodes from other rows."""

    classes: dict[int, frozenset[str]]
    failing: dict[str, list[FailingPod]]
    workloads: dict[str, tuple[WorkloadHere, ...]]
    blockers: dict[int, Blocker]
    uncordoned: dict[int, datetime]
    stale: Mapping[int, StaleCordon]
    drivers: dict[str, dict[str, str]]
    away: Mapping[str, tuple[str, ...]]
    falls: Mapping[str, int]
    idle: Mapping[str, tuple[IdleAllocation, ...]]
    starting: Mapping[str, list[FailingPod]]
    never_offered: Mapping[str, NoOffer]
    withheld: Mapping[str, NoOffer]
    domain_daemons: Mapping[str, FailingPod]
    incomplete_pools: Mapping[str, Sequence[PublishedPool]]
    reporting: ReportingNodes | None

    @classmethod
    def read(
        cls,
        cluster: Cluster,
        reporting: ReportingNodes | None,
        asked: Collection[str],
        limits: LimitsInForce,
        *,
        now: datetime,
    ) -> Self:
        """Loads the facts with 16 queries, two more if idle GPUs are evaluated, and six for every 200 nodes with idle
        GPUs.

        Eleven more for each of a few nodes with a stuck upgrade, nine if pods fail, and nine if plugins withhold GPUs.
        """
        classes = _classes(cluster)
        return cls(
            classes,
            failing_pods(cluster, now=now),
            workloads_by_node(cluster, now=now),
            find_blockers(cluster, now=now),
            _uncordoned(cluster, now=now),
            _stale(cluster),
            reported_drivers(cluster),
            operands_away(cluster, reporting),
            flaps_by_node(cluster, now=now),
            idle_allocations(cluster, reporting, classes, now=now, own=_own_idle_minutes(limits))
            if IdleGpus.key in asked
            else {},
            starting_pods(cluster, now=now),
            never_offered(cluster, now=now),
            withheld_gpus(cluster, now=now),
            domain_daemons(cluster, now=now),
            withheld_on_nodes(cluster.pk),
            reporting,
        )


def evaluate_nodes(
    cluster: Cluster,
    rules: Collection[Rule[NodeFacts]],
    limits: LimitsInForce,
    reporting: ReportingNodes | None,
    *,
    now: datetime,
) -> Iterator[Signal]:
    """Yields signals with 17 queries, and those of `_Around` for faults."""
    around = _Around.read(cluster, reporting, {rule.key for rule in rules}, limits, now=now)
    for row in _load_node_rows(cluster):
        facts = _facts(row, around, now=now)
        for rule in limits.rules_for(rules, row["name"]):
            if wrong := rule.evaluate(facts):
                yield Signal(Subject(f"node {row['name']}", row["id"], row["uid"], row["name"]), rule, wrong)


def _own_idle_minutes(limits: LimitsInForce) -> dict[str, float]:
    """Returns the minutes after which GPUs count as idle, by node name, where a pool has a limit of its own."""
    variants = limits.by_rule.get(IdleGpus.key, ())
    return {name: rule.limits.warn for rule, names in variants if isinstance(rule, IdleGpus) for name in names}


def _load_node_rows(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Yields the rows. Identical JSON of several nodes is decoded once."""
    written = {f"{name}_written": Cast(name, TextField()) for name in AS_JSON}
    rows = Node.objects.filter(cluster=cluster).with_gpus().values(*COLUMNS, **written)
    decoded: dict[str, Any] = {}
    for row in rows.iterator(chunk_size=500):
        for name in AS_JSON:
            text = row.pop(f"{name}_written")
            if text not in decoded:
                decoded[text] = json.loads(text)
            row[name] = decoded[text]
        yield row


def _classes(cluster: Cluster) -> dict[int, frozenset[str]]:
    members = Pool.objects.filter(cluster=cluster, nodes__isnull=False).values_list("nodes", "workload_class")
    found: dict[int, frozenset[str]] = {}
    for node_id, workload_class in members:
        found[node_id] = found.get(node_id, frozenset()) | {workload_class}
    return found


def _uncordoned(cluster: Cluster, *, now: datetime) -> dict[int, datetime]:
    """Returns by node key since when the node has lost the cordon that its upgrade found. Two queries.

    The note of that cordon is written while the upgrade is queued, and until its pod restarts only people remove a
    cordon. The note is removed with the upgrade; then our own finding keeps the fact. A plan restores its own cordon.
    """
    nodes = Node.objects.filter(cluster=cluster, is_unschedulable=False).with_gpus()
    restarted = nodes.filter(upgrade_state__in=DRIVER_RESTARTED).values_list("pk", "annotations")
    theirs = ((pk, has) for pk, has in restarted if CORDONED_BY not in has)
    seen = {pk: now for pk, annotations in theirs if annotations.get(WAS_CORDONED)}
    told = Finding.objects.unresolved().filter(
        cluster=cluster, rule=CordonRemoved.key, since__gt=now - UNCORDONED_FOR, node__isnull=False
    )
    return seen | dict(told.values_list("node", "since"))


def _stale(cluster: Cluster) -> dict[int, StaleCordon]:
    """Returns stale cordons by node key, with one query."""
    columns = (
        "id",
        "name",
        "cordoned_by",
        "labels",
        "annotations",
        "taints",
        "conditions",
        "upgrade_state",
        "is_ready",
    )
    found: dict[int, StaleCordon] = {}
    for row in Node.objects.filter(cluster=cluster, is_unschedulable=True).with_gpus().values(*columns):
        reporters = {whole_condition(each)["reporter"] for each in row["conditions"] if is_fault(each)}
        node = CordonedNode(
            row["name"], row["cordoned_by"], row["labels"], row["annotations"],
            {taint["key"] for taint in row["taints"]}, reporters, row["upgrade_state"], row["is_ready"],
        )  # fmt: skip
        if (stale := stale_cordon(node)) is not None:
            found[row["id"]] = stale
    return found


def _drivers(row: dict[str, Any], around: _Around) -> tuple[tuple[str, str], ...]:
    if row["gpu_vendor"] not in NVIDIA:
        return ()
    beside, said = around.drivers.get(row["name"], {}), row["driver_version"]
    # without a label, the slice is the source of the row's version
    is_of_its_slice = agree(said, beside.get(SLICE, ""))
    is_label = said and row["driver_unknown_since"] is None and not is_of_its_slice
    return ((LABEL, said), *beside.items()) if is_label else tuple(beside.items())


def _facts(row: dict[str, Any], around: _Around, *, now: datetime) -> NodeFacts:
    reporting = around.reporting
    return NodeFacts(
        name=row["name"],
        allocatable=row["allocatable"],
        capacity=row["capacity"],
        expected=row["expected"],
        requested=row["requested"],
        is_changing=is_changing(row),
        mig_config=row["mig_config"],
        mig_state=row["mig_config_state"],
        mig_overdue_since=_mig_overdue_since(row, now=now),
        unhealthy=tuple(unhealthy_in_words(row["unhealthy_gpus"], row["devices_unhealthy"])),
        layout=row["layout"],
        sharing=row["sharing"],
        sharing_replicas=row["sharing_replicas"],
        workload_classes=around.classes.get(row["id"], frozenset()),
        failing_pods=() if row["is_ready"] is None else tuple(around.failing.get(row["name"], ())),
        is_ready=row["is_ready"],
        is_unreported=row["is_ready"] is None,
        not_ready_reason=row["not_ready_reason"],
        falls=around.falls.get(row["uid"], 0),
        conditions=tuple(map(_condition, filter(is_fault, row["conditions"]))),
        booted_at=_booted_at(row, now=now),
        is_paused=row["is_paused"],
        upgrade_state=row["upgrade_state"],
        is_held=row["is_held"],
        upgrade_blocker=around.blockers.get(row["id"], Blocker()),
        is_reporting=reporting is None or row["name"] in reporting.now,
        ever_reported=reporting is None or row["name"] in reporting.ever,
        unplaced_xids=tuple(each.xid for each in reporting.unplaced_xids.get(row["name"], ())) if reporting else (),
        are_others_reporting=reporting is None or bool(reporting.now),
        is_unschedulable=row["is_unschedulable"],
        stale_cordon=around.stale.get(row["id"]),
        uncordoned_since=around.uncordoned.get(row["id"]),
        drivers=_drivers(row, around),
        workloads=around.workloads.get(row["name"], ()),
        operands_away=around.away.get(row["name"], ()),
        idle_allocations=around.idle.get(row["name"], ()),
        starting_pods=tuple(around.starting.get(row["name"], ())),
        never_offered=around.never_offered.get(row["name"]),
        withheld=around.withheld.get(row["name"]),
        domain_daemon=around.domain_daemons.get(row["name"]),
        vendor=row["gpu_vendor"],
        gpu_product=row["gpu_product"],
        label_conflicts=tuple(LabelConflict(**each) for each in row["label_conflicts"]),
        free_gpus=row["gpus_free"] or 0,
        incomplete_pools=tuple(_incomplete(around.incomplete_pools.get(row["name"], ()))),
        requested_by_others=tuple(_requested_by_others(row)),
    )


def _incomplete(pools: Iterable[PublishedPool]) -> Iterator[EvidenceItem]:
    for pool in pools:
        if is_gpu_resource(pool.driver):
            yield EvidenceItem(f"Pool {pool.name} of {pool.driver}", pool.text)


def _requested_by_others(row: Mapping[str, Any]) -> Iterator[RequestedByOthers]:
    if row["cpu_allocatable_m"]:
        yield RequestedByOthers("CPU", row["cpu_others_m"] / 1000, row["cpu_allocatable_m"] / 1000, "cores")
    if row["memory_allocatable_bytes"]:
        requested, allocatable = (round(row[name] / GIB, 1) for name in MEMORY)
        yield RequestedByOthers("memory", requested, allocatable, "GiB")


def _condition(row: Mapping[str, Any]) -> NodeCondition:
    each = whole_condition(row)
    return NodeCondition(
        each["type"],
        each["message"],
        each["status"],
        each["reporter"],
        Severity(each["severity"]),
        each["recommended_action"],
        tuple(each["xids"]),
    )


def _booted_at(row: dict, *, now: datetime) -> datetime | None:
    at: datetime | None = row["booted_at"]
    return at if at is not None and now - at <= AFTER_A_BOOT else None


def _mig_overdue_since(row: dict, *, now: datetime) -> datetime | None:
    since: datetime | None = row["mig_changing_since"]
    if row["mig_config_state"] not in RECONFIGURING or since is None:
        return None
    return since if now - since >= RECONFIGURED_WITHIN else None
