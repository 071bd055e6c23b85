"""Times of pods with GPUs of a node."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from itertools import product
from operator import add
from typing import Any

from django.db.models import BigIntegerField, F, Func, IntegerField, Q, QuerySet, TextField, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce

from fleet.allocation.gpu_holders import allocated_indices
from fleet.freshness.cluster import stale_since
from fleet.freshness.kinds import PODS
from fleet.models import GoneNode, Gpu, Node, PodPlacement
from fleet.owner_chains import owners_of_pods, topmost
from gpu.resources import Layout, ResourceKind
from gpu.resources.names import GPU
from wording.durations import spell
from wording.instants import to_the_minute

NAMED_AT_ONCE = 500
BoardsOfPods = Mapping[str, Collection[int]]  # by pod UID


@dataclass(frozen=True)
class GpuPlacement:
    """A pod's time with GPUs of a node, in view of one GPU."""

    row: PodPlacement
    gpus: tuple[int, ...]  # indices of its known GPUs
    is_known: bool  # False: it may have had this GPU or another one of the node
    seen_until: datetime | None = None  # last confirmation; None: still there, or its end was observed


def placements_of(node: Node | GoneNode) -> QuerySet[PodPlacement]:
    return PodPlacement.objects.filter(cluster=node.cluster_id, node_uid=node.uid)


def name_top_owners(cluster_id: int) -> int:
    """Names the topmost owners of present pods whose owners were read after them, and returns how many placements.

    Two queries, those of the owners, and a statement for each 500 placements that change.
    """
    present = PodPlacement.objects.filter(cluster=cluster_id, until=None).exclude(owner_name="").order_by()
    above, changed = owners_of_pods(cluster_id, present.values("pod_uid")), list[PodPlacement]()
    for row in present.only("pod_uid", "top_owner"):
        top = topmost(row.top_owner, above.get(row.pod_uid, ()))
        if top != row.top_owner:
            row.top_owner = top
            changed.append(row)
    return present.bulk_update(changed, ["top_owner"], batch_size=NAMED_AT_ONCE)


def placed_at(node: Node | GoneNode, at: datetime) -> QuerySet[PodPlacement]:
    """Returns the placements at a moment, oldest first."""
    return placements_of(node).filter(Q(until=None) | Q(until__gt=at), since__lte=at).order_by("since", "pk")


def boards_now(node: Node | GoneNode, rows: Collection[PodPlacement], *, now: datetime) -> BoardsOfPods:
    """Returns the GPUs by pod: from `allocations_on` for present pods (with its cost), from rows for others."""
    kept: dict[str, Collection[int]] = {row.pod_uid: row.boards for row in rows if row.until is not None}
    if isinstance(node, GoneNode) or len(kept) == len(rows):
        return kept
    return allocated_indices([node], now=now) | kept


def on_gpu(gpu: Gpu, *, since: datetime, now: datetime, most: int) -> list[GpuPlacement]:
    """Returns the users of a GPU after `since`, newest first, and pods whose GPUs are unknown.

    Load the GPU with its node. Three queries, and those of `allocations_on` for pods with GPUs.
    """
    rows, last_seen_at = placements_of(gpu.node), stale_since(gpu.node.cluster_id, PODS, now=now)
    there = list(rows.filter(until=None))
    boards = boards_now(gpu.node, there, now=now)
    lately = rows.filter(Q(until=None) | Q(until__gt=since), since__lte=now)
    found = []
    for row in of_gpu(lately, gpu, there, boards)[:most]:
        its = gpu_indices(row, boards)
        found.append(GpuPlacement(row, tuple(its), gpu.index in its, seen_until_of(row, last_seen_at)))
    return found


def of_gpu(
    rows: QuerySet[PodPlacement], gpu: Gpu, there: Collection[PodPlacement], boards: BoardsOfPods
) -> QuerySet[PodPlacement]:
    """Returns the placements without pods that are known to have only other GPUs.

    `there` and `boards` are present pods and their GPUs. The database filters, since a node may have thousands of
    rows.
    """
    whole = _whole_gpu_resources(gpu.node)
    elsewhere = [row.pk for row in there if _is_elsewhere(row, gpu, boards.get(row.pod_uid, ()), whole)]
    text = Q()
    for begin, end in product("[ ", ",]"):
        text |= Q(text__contains=f"{begin}{gpu.index}{end}")
    each = (Coalesce(Cast(KeyTextTransform(name, "resources"), BigIntegerField()), 0) for name in whole)
    asked = reduce(add, each, Value(0))
    told = rows.alias(text=Cast("boards", TextField()), told=JsonLength("boards"), asked=asked)
    return told.filter(text | Q(until=None) | Q(told=0) | Q(told__lt=F("asked"))).exclude(pk__in=elsewhere)


def _whole_gpu_resources(node: Node) -> list[str]:
    layout = Layout.read(node.layout)
    names = {GPU, *node.expected, *node.capacity}
    return sorted(name for name in names if layout.way(name).kind is ResourceKind.WHOLE)


def _is_elsewhere(row: PodPlacement, gpu: Gpu, its: Collection[int], whole: Collection[str]) -> bool:
    asked = sum(row.resources.get(name, 0) for name in whole)
    return bool(its) and gpu.index not in its and len(its) >= asked


class JsonLength(Func):
    function = "JSON_ARRAY_LENGTH"
    output_field = IntegerField()

    def as_postgresql(self, compiler: Any, connection: Any, **more: Any) -> Any:
        return super().as_sql(compiler, connection, function="JSONB_ARRAY_LENGTH", **more)


def gpu_indices(row: PodPlacement, boards: BoardsOfPods) -> Collection[int]:
    """Returns the indices of its GPUs. Empty: unknown."""
    return boards.get(row.pod_uid, ()) if row.until is None else row.boards


def gpus_text(row: PodPlacement, boards: BoardsOfPods) -> str:
    """Returns "GPU 0, 1" if known, else "2 nvidia.com/gpu"."""
    its = gpu_indices(row, boards)
    asked = (
        ", ".join(f"{number} {name}" for name, number in sorted(row.resources.items()))
        or "the devices that a claim or a scheduler allocated"
    )
    return f"GPU {', '.join(map(str, its))} ({asked})" if its else asked


def how_it_ended(row: PodPlacement, boards: BoardsOfPods) -> str:
    how = f"ended ({row.ended})" if row.ended else "is gone"
    if row.seen_until is not None:
        lasted = f" for at least {spell(row.seen_until - row.since)}"
        seen = f"was last seen at {to_the_minute(row.seen_until)}"
        return f"{row} {how}, and {seen}: it had {gpus_text(row, boards)}{lasted}."
    lasted = f" for {spell(row.until - row.since)}" if row.until is not None else ""
    return f"{row} {how}: it had {gpus_text(row, boards)}{lasted}."


def how_it_was(row: PodPlacement, at: datetime, boards: BoardsOfPods, last_seen_at: datetime | None) -> str:
    """Returns a sentence. `last_seen_at` is the last update of pods, if they are not live."""
    had, seen_until = f"{row} had {gpus_text(row, boards)}", seen_until_of(row, last_seen_at)
    if seen_until is None or at <= seen_until:
        return f"{had}."
    then = (
        f"; at {to_the_minute(row.until)} it was gone" if row.until is not None else ", and it was not observed since"
    )
    return f"{had} when it was last seen, at {to_the_minute(seen_until)}{then}."


def seen_until_of(row: PodPlacement, last_seen_at: datetime | None) -> datetime | None:
    """Returns the last confirmation. None: still there, or its end was observed."""
    return row.seen_until if row.until is not None else last_seen_at and max(last_seen_at, row.since)


def detail_of(row: PodPlacement, boards: BoardsOfPods) -> dict[str, Any]:
    return {
        "pod": str(row),
        "pod_uid": row.pod_uid,
        "owner": f"{row.owner_kind}/{row.owner_name}" if row.owner_name else "",
        "resources": row.resources,
        "gpus": list(gpu_indices(row, boards)),
        "since": row.since.isoformat(),
        "until": None if row.until is None else row.until.isoformat(),
        "seen_until": None if row.seen_until is None else row.seen_until.isoformat(),
    }
