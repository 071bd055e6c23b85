"""Reads the facts of a pod's checklist from rows and from the telemetry of its node."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from django.db.models import Max, Q, Sum

from fleet.allocation.allocations import Board, NodeAllocations
from fleet.allocation.gpu_holders import allocations_on
from fleet.freshness.cluster import ClusterFreshness, load_cluster_freshness
from fleet.freshness.kinds import NODES, PODS, never_listed
from fleet.models import ClusterEvent, Pod, ResourceClaim
from fleet.states.pod import ENDED
from fleet.web.node_gpus import allocated_to
from gpu.resources import Layout
from health.models import Finding, GpuHour
from health.pod_checklist.allocation_checks import RECENT
from health.pod_checklist.checks import check_pod
from health.pod_checklist.facts import CountedXids, GpuFault, PodCheckFacts, PodGpu
from health.rules.gpus.ecc_uncorrected import EccUncorrected
from health.rules.gpus.row_remap import RowRemap
from health.rules.gpus.xid import LastXid
from health.sources.node_telemetry import DeviceTelemetry, NodeTelemetry, instant, telemetry_of
from health.stack import ChecklistItem, read_stack
from health.stack.causes import Cause, PodSigns, Signs, why_waits
from health.stack.pods import causes_of
from kube.resources import EVENTS

LONGEST = timedelta(days=30)  # longest part of the pod's life that is read
HOUR = timedelta(hours=1)
REPEATS = ("BackOff", "Unhealthy")  # Events about the program, and not about its GPUs
WARNINGS_AT_MOST = 20
MEMORY_RULES = (EccUncorrected.key, RowRemap.key)
SILENT = "The telemetry source of the node does not answer."
NO_TELEMETRY = "The cluster has no telemetry source."


def checklist_of_pod(pod: Pod, *, now: datetime) -> tuple[list[ChecklistItem], ClusterFreshness]:
    """Returns the checklist of a pod with loaded cluster, observer and node, and the freshness of its cluster.

    At most 30 queries and two Redis requests, whatever the fleet is.
    """
    freshness = load_cluster_freshness(pod.cluster, now=now)
    return check_pod(facts_of_pod(pod, freshness, now=now)), freshness


def facts_of_pod(pod: Pod, freshness: ClusterFreshness, *, now: datetime) -> PodCheckFacts:
    node = pod.node
    events = freshness.by_kind.get(EVENTS.name) or never_listed(EVENTS.name)
    claims = dict(
        ResourceClaim.objects.filter(cluster=pod.cluster_id, namespace=pod.namespace, name__in=pod.claims).values_list(
            "name", "allocated"
        )
    )
    layout = Layout.read(node.layout) if node else Layout()
    is_shared = any(layout.way(name).sharing for name in pod.resources)
    telemetry = telemetry_of(node, now=now) if node and pod.phase not in ENDED else None
    there = allocations_on([node], now=now)[node.pk] if node and pod.phase not in ENDED else NodeAllocations()
    return PodCheckFacts(
        pod=pod,
        now=now,
        asks=allocated_to(pod, layout),
        seen_at=freshness.by_kind[PODS].last_seen_at,
        node_seen_at=freshness.by_kind[NODES].last_seen_at,
        node=node,
        stack=read_stack(node, now=now) if node else None,
        cause=next((cause for _, cause in causes_of(pod.cluster_id, [pod], now=now)), None),
        ended_cause=_cause_of_end(pod),
        warnings=list(_warnings(pod, now=now)),
        events_gap="" if events.is_known else events.sentence or "They were never read.",
        unallocated_claims=[name for name in pod.claims if name in claims and not claims[name]],
        missing_claims=[name for name in pod.claims if name not in claims],
        gpus=_gpus(pod, there, telemetry, layout, now=now),
        unplaced=any(each.pod.pk == pod.pk for each in there.unplaced),
        is_shared=is_shared,
        sharers=[f"{each.pod} ({allocated_to(each.pod, layout)})" for each in there.unplaced if each.pod.pk != pod.pk],
        telemetry_gap=_telemetry_gap(telemetry),
        sampled_at=_sampled_at(telemetry),
    )


def _cause_of_end(pod: Pod) -> Cause | None:
    """Returns the cause that the last failed end of a container names by its words."""
    words = pod.container_settings.get("ended", {}).get("words", "")
    if not words:
        return None
    return why_waits(Signs("", "", pod.node_name, {}, is_gpu_node=False, pod=PodSigns(str(pod), last_words=words)))


def _warnings(pod: Pod, *, now: datetime):
    rows = ClusterEvent.objects.filter(cluster=pod.cluster_id, about_uid=pod.uid, is_warning=True)
    recent = rows.filter(source__startswith="kubelet", last_at__gte=now - RECENT).exclude(reason__in=REPEATS)
    return recent.order_by("-last_at", "-pk")[:WARNINGS_AT_MOST]


def _gpus(
    pod: Pod, there: NodeAllocations, telemetry: NodeTelemetry | None, layout: Layout, *, now: datetime
) -> list[PodGpu]:
    boards = [board for board in there.boards if any(each.pod.pk == pod.pk for each in board.allocations)]
    if not boards or telemetry is None:
        return []
    since = max(pod.started_at or pod.created_at, now - LONGEST)
    xids = _xids_of(pod, boards, since, now=now)
    faults = _faults_of(pod, since)
    return [_gpu(pod, board, telemetry, layout, xids, faults) for board in boards]


def _gpu(
    pod: Pod,
    board: Board,
    telemetry: NodeTelemetry,
    layout: Layout,
    xids: Mapping[str, CountedXids],
    faults: Mapping[str, Sequence[GpuFault]],
) -> PodGpu:
    own = next(each for each in board.allocations if each.pod.pk == pod.pk)
    others = {each.pod.pk: each.pod for each in board.allocations if each.pod.pk != pod.pk and not each.only_looks}
    devices = [each for each in telemetry.devices if _is_of(each, board)]
    whole = next((each for each in devices if not each.gi_id), next(iter(devices), None))
    return PodGpu(
        name="a GPU" if board.index is None else f"GPU {board.index}",
        uuid=board.uuid,
        profile=own.profile,
        neighbours=[f"{each} ({allocated_to(each, layout)})" for each in others.values()],
        memory_used_mib=_fresh(whole, "memory_used_mib") if whole and not whole.gi_id else None,
        memory_mib=board.memory_mib,
        xids=xids.get(board.uuid, CountedXids()),
        ecc_uncorrected=_fresh(whole, "ecc_uncorrected"),
        faults=faults.get(board.uuid, ()),
    )


def _is_of(device: DeviceTelemetry, board: Board) -> bool:
    return device.uuid == board.uuid if board.uuid else device.index == board.index


def _fresh(device: DeviceTelemetry | None, key: str) -> float | None:
    reading = device.metrics.get(key) if device else None
    return reading.value if reading is not None and reading.is_fresh else None


def _xids_of(pod: Pod, boards: Sequence[Board], since: datetime, *, now: datetime) -> dict[str, CountedXids]:
    """Returns the Xids of the recorded hours in the pod's time, by UUID. One query."""
    whole = since.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    begins = whole if whole == since else whole + HOUR  # an hour that began before the pod may have Xids of others
    uuids = [board.uuid for board in boards if board.uuid]
    rows = GpuHour.objects.filter(cluster=pod.cluster_id, uuid__in=uuids, hour__gte=begins).order_by()
    expected = max(1.0, (now - begins) / HOUR - 1)  # the running hour is not recorded yet
    told = rows.values("uuid", "gi_id").annotate(
        count=Sum("xids"), last=Max("hour", filter=Q(xids__gt=0)), seen=Sum("seen_s", filter=Q(xids__isnull=False))
    )
    found: dict[str, CountedXids] = {}
    for row in told:  # a slice repeats the number of its board
        known = found.get(row["uuid"])
        if row["count"] is not None and (known is None or row["count"] > (known.number or 0)):
            covered = min(1.0, (row["seen"] or 0.0) / HOUR.total_seconds() / expected)
            found[row["uuid"]] = CountedXids(row["count"], row["last"] + HOUR if row["last"] else None, covered)
    return found


def _faults_of(pod: Pod, since: datetime) -> dict[str, list[GpuFault]]:
    """Returns the findings about GPUs of its node that were open in the pod's time, by UUID. One query."""
    was_open = Q(resolved_at__isnull=True) | Q(resolved_at__gt=since)
    rows = Finding.objects.notified().filter(was_open, node=pod.node_id, opened_at__isnull=False).exclude(gpu_uuid="")
    found: dict[str, list[GpuFault]] = {}
    for row in rows.order_by("-opened_at"):
        is_memory, is_xid = row.rule in MEMORY_RULES, row.rule == LastXid.key
        if (is_memory or is_xid) and row.opened_at is not None:
            found.setdefault(row.gpu_uuid, []).append(GpuFault(row.title, row.opened_at, is_memory, is_xid))
    return found


def _telemetry_gap(telemetry: NodeTelemetry | None) -> str:
    if telemetry is None or not telemetry.standing.has_source:
        return NO_TELEMETRY
    return telemetry.trouble or (SILENT if telemetry.standing.is_silent else "")


def _sampled_at(telemetry: NodeTelemetry | None) -> datetime | None:
    times = [each.busy.sampled_at for each in telemetry.devices if each.busy.sampled_at] if telemetry else []
    return instant(max(times, default=None))
