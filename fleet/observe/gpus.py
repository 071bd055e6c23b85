"""The GPU rows of a node: as many as it was ever seen to have, so that one that is lost is missed."""

from collections.abc import Iterable

from django.db.models import Count

from fleet.models import Gpu
from fleet.observe.diff import Row
from fleet.observe.quantity import whole
from fleet.observe.rows.labels import GPU_COUNT
from fleet.observe.upsert import Written


def follow(written: Written) -> None:
    changed = [row for old, row in written.changed if _board(old) != _board(row)]
    fit([*written.new, *changed])


def fit(nodes: Iterable[Row]) -> None:
    """Make rows for GPUs that have none, and give all of a node what its labels say of them."""
    wanted = {row["id"]: row for row in nodes if _number(row)}
    if not wanted:
        return
    there = dict(Gpu.objects.filter(node__in=wanted).values_list("node").annotate(Count("id")))
    Gpu.objects.bulk_create(
        (
            Gpu(node_id=node_id, index=index, product=row["gpu_product"], memory_mib=row["gpu_memory_mib"])
            for node_id, row in wanted.items()
            for index in range(there.get(node_id, 0), _number(row))
        ),
        ignore_conflicts=True,
    )
    for node_id in there:
        row = wanted[node_id]
        Gpu.objects.filter(node=node_id).update(product=row["gpu_product"], memory_mib=row["gpu_memory_mib"])


def _board(row: Row) -> tuple[object, ...]:
    return row["gpu_product"], row["gpu_memory_mib"], _number(row)


def _number(row: Row) -> int:
    """Physical GPUs. Where they are shared the node offers each several times; the label counts them once."""
    return whole(row["labels"].get(GPU_COUNT)) or row["gpu_expected"] or 0
