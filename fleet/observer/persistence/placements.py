"""The history of pods with GPUs of nodes: a row per placement, completed at its end.

Pods that become ready or crash cost nothing. A new observer compares rows and pods once, since the previous one may
have crashed in between.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from fleet.allocation.gpu_holders import GpusOfPod, gpus_of_pods
from fleet.models import Bookmark, Node, Observer, Pod, PodPlacement
from fleet.models.bookmark import STALE_AFTER
from fleet.observer.mirror.rows import Columns
from fleet.observer.persistence.upsert import Written
from fleet.observer.persistence.upsert_statement import upsert
from fleet.owner_chains import owners_of_pods, top_owners_of, topmost
from fleet.states.pod import ENDED
from kube.resources import PODS

# The number of nodes per query of GPU allocations. With more, the exporters' answers would be too recent.
LOOKED_AT_MOST = 4
AT_ONCE = 500
NO_GPUS = GpusOfPod([], [])
ONE_EACH = ("cluster", "pod_uid", "node_uid")
COLUMNS = (*ONE_EACH, "node_name", "namespace", "name", "owner_kind", "owner_name", "top_owner", "resources", "since")
KEPT = ("uid", "namespace", "name", "owner_kind", "owner_name", "owner_uid", "resources", "node_name", "started_at")


def record_placements(cluster_id: int, written: Written, *, now: datetime) -> None:
    """Records begins and ends before the pod rows are written, while they still show the GPUs.

    A query, those of the owners and a statement for begins; five queries, those of the owners and of `allocations_on`
    for ends.
    """
    begun = [row for row in written.new if _holds_gpus(row)]
    begun += [row for old, row in written.changed if _holds_gpus(row) and not _holds_gpus(old)]
    ended = {row["uid"]: "" for row in written.gone if _holds_gpus(row)}
    ended |= {
        row["uid"]: row["status"] or row["phase"]
        for old, row in written.changed
        if _holds_gpus(old) and not _holds_gpus(row)
    }
    if begun:
        _begin_placements(cluster_id, begun, now=now)
    for uids in _batches_of(ended):
        _end_placements(cluster_id, _open_placements(cluster_id).filter(pod_uid__in=uids), ended, now=now)


def begin_on(cluster_id: int, names: Collection[str], *, now: datetime) -> None:
    """Begins placements of pods that arrived before these nodes, or outlived a node of the same name."""
    if names:
        _begin_placements_of(cluster_id, _holding(cluster_id).filter(node_name__in=names), now=now)


def end_on(cluster_id: int, nodes: Iterable[str], *, now: datetime) -> None:
    """Ends placements on removed nodes (by UID). Surviving pods use another node."""
    for uids in _batches_of(nodes):
        _end_placements(cluster_id, _open_placements(cluster_id).filter(node_uid__in=uids), {}, now=now)


def end_all_placements(cluster_id: int, *, epoch: int, clock: Callable[[], datetime]) -> None:
    """Ends all placements of an unobserved cluster in short transactions.

    :raises LostLease: when another worker took the lease
    """
    while some := list(_open_placements(cluster_id).order_by("pk").values_list("pk", flat=True)[:AT_ONCE]):
        with transaction.atomic():
            Observer.keep(cluster_id, epoch=epoch, now=clock(), flushed=False)
            _open_placements(cluster_id).filter(pk__in=some).update(until=clock())


def reconcile(cluster_id: int, *, epoch: int, clock: Callable[[], datetime]) -> None:
    """Ends placements without pods and begins missing ones, in short transactions.

    :raises LostLease: when another worker took the lease
    """
    holding = set(_holding(cluster_id).values_list("uid", "node__uid"))
    written = {
        (pod, node): key for key, pod, node in _open_placements(cluster_id).values_list("pk", "pod_uid", "node_uid")
    }
    for keys in _batches_of(written[pair] for pair in written.keys() - holding):
        with transaction.atomic():
            Observer.keep(cluster_id, epoch=epoch, now=clock(), flushed=False)
            _end_placements(cluster_id, _open_placements(cluster_id).filter(pk__in=keys), {}, now=clock())
    for uids in _batches_of(pod for pod, _ in holding - written.keys()):
        with transaction.atomic():
            Observer.keep(cluster_id, epoch=epoch, now=clock(), flushed=False)
            _begin_placements_of(cluster_id, _holding(cluster_id).filter(uid__in=uids), now=clock())


def _holds_gpus(row: Columns) -> bool:
    return bool(row["is_tenant"] and row["node_name"]) and row["phase"] not in ENDED


def _holding(cluster_id: int) -> QuerySet[Pod]:
    """Filters pods like `_holds`, on existing nodes."""
    return Pod.objects.filter(cluster_id=cluster_id, node__isnull=False).tenants().not_done().order_by()


def _open_placements(cluster_id: int) -> QuerySet[PodPlacement]:
    return PodPlacement.objects.filter(cluster=cluster_id, until=None).order_by()


def _begin_placements(cluster_id: int, rows: Sequence[Columns], *, now: datetime) -> None:
    names = {row["node_name"] for row in rows}
    uids = dict(Node.objects.filter(cluster=cluster_id, name__in=names).order_by().values_list("name", "uid"))
    there = [row for row in rows if row["node_name"] in uids]
    tops = top_owners_of(cluster_id, (row["owner_uid"] for row in there))
    placements = (
        _placement(cluster_id, row, uids[row["node_name"]], tops.get(row["owner_uid"], ""), now) for row in there
    )
    upsert(PodPlacement, placements, unique=ONE_EACH)


def _begin_placements_of(cluster_id: int, pods: QuerySet[Pod], *, now: datetime) -> None:
    """Begins placements; for pods that outlived a node, from now on."""
    rows = list(pods.values(*KEPT))
    before = PodPlacement.objects.filter(cluster=cluster_id, pod_uid__in=[row["uid"] for row in rows]).order_by()
    outlived = set(before.values_list("pod_uid", flat=True))
    _begin_placements(
        cluster_id, [row | {"started_at": None} if row["uid"] in outlived else row for row in rows], now=now
    )


def _placement(cluster_id: int, row: Columns, node_uid: str, top_owner: str, now: datetime) -> dict[str, Any]:
    own = {name: row[name] for name in ("namespace", "name", "owner_kind", "owner_name", "resources", "node_name")}
    since = row["started_at"] or now
    more = {"cluster": cluster_id, "pod_uid": row["uid"], "node_uid": node_uid, "since": since, "top_owner": top_owner}
    return own | more | {"until": None, "seen_until": None, "ended": "", "boards": [], "slices": []}


def _end_placements(cluster_id: int, those: QuerySet[PodPlacement], how: Mapping[str, str], *, now: datetime) -> None:
    """Ends placements. `how` has the result by pod UID; missing: the pod was removed."""
    rows = list(those.values(*COLUMNS))
    if not rows:
        return
    seen_until = _stale_since(cluster_id, now=now)
    names = {row["node_name"] for row in rows}
    above = owners_of_pods(cluster_id, [row["pod_uid"] for row in rows])
    gpus = _gpus(cluster_id, names, now=now) if seen_until is None else {}
    ended = (
        {
            **row,
            "top_owner": topmost(row["top_owner"], above.get(row["pod_uid"], ())),
            "until": now,
            "seen_until": seen_until and max(seen_until, row["since"]),
            "ended": how.get(row["pod_uid"], "")[:128],
            "boards": gpus.get(row["pod_uid"], NO_GPUS).indices,
            "slices": gpus.get(row["pod_uid"], NO_GPUS).slices,
        }
        for row in rows
    )
    upsert(PodPlacement, ended, unique=ONE_EACH)


def _stale_since(cluster_id: int, *, now: datetime) -> datetime | None:
    """Returns the last update of pods. None: live."""
    last_seen_at = (
        Bookmark.objects.filter(cluster=cluster_id, kind=PODS.name).values_list("last_seen_at", flat=True).first()
    )
    return last_seen_at if last_seen_at is not None and now - last_seen_at > STALE_AFTER else None


def _gpus(cluster_id: int, names: Collection[str], *, now: datetime) -> dict[str, GpusOfPod]:
    if len(names) > LOOKED_AT_MOST:
        return {}
    nodes = Node.objects.filter(cluster=cluster_id, name__in=names).defer("labels", "annotations", "taints")
    return gpus_of_pods(list(nodes), now=now)


def _batches_of(those: Iterable[Any]) -> Iterator[list[Any]]:
    left = iter(those)
    while some := list(islice(left, AT_ONCE)):
        yield some
