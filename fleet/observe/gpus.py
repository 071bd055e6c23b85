"""The GPU rows of a node: as many as it was ever seen to have, so that one that is lost is missed."""

from collections.abc import Iterable

from fleet.labels import GPU_COUNT
from fleet.models import Gpu
from fleet.observe.diff import Row
from fleet.observe.statement import upsert
from fleet.observe.upsert import Written
from fleet.quantity import whole


def follow(written: Written) -> None:
    changed = [row for old, row in written.changed if _board(old) != _board(row)]
    fit([*written.new, *changed])


def fit(nodes: Iterable[Row]) -> None:
    """Make rows for GPUs that have none, and give all of a node what its labels say of them."""
    boards = (
        {"node": row["id"], "index": index, "product": row["gpu_product"], "memory_mib": row["gpu_memory_mib"]}
        for row in nodes
        for index in range(_number(row))
    )
    upsert(Gpu, boards, unique=("node", "index"), only_new={"uuid": ""})


def _board(row: Row) -> tuple[object, ...]:
    return row["gpu_product"], row["gpu_memory_mib"], _number(row)


def _number(row: Row) -> int:
    """Physical GPUs. Where they are shared the node offers each several times; the label counts them once."""
    return whole(row["labels"].get(GPU_COUNT)) or row["gpu_expected"] or 0
