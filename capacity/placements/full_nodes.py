"""The nodes of an hour that were full: all their GPUs were allocated for most of it."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db.models import Count, Sum

from health.models import GpuHour

FULL = 0.9  # share of the hour for which the GPUs of a full node were allocated


def is_full(held_s: float, boards: int) -> bool:
    return held_s >= FULL * 3600 * boards


def nodes_by_fullness(cluster_id: int, names: Collection[str], hour: datetime) -> tuple[list[str], list[str]]:
    """Returns the full nodes of the hour that starts then, and others with allocated GPUs. One query.

    A node with a GPU whose allocation is unknown is in neither.
    """
    rows: Any = GpuHour.objects.filter(cluster=cluster_id, node_name__in=names, hour=hour, gi_id="").order_by()
    full, other = list[str](), list[str]()
    groups = rows.values("node_name").annotate(
        boards=Count("uuid"), known=Count("allocated_s"), held_s=Sum("allocated_s")
    )
    for row in groups:
        if row["known"] == row["boards"] and row["held_s"]:
            (full if is_full(row["held_s"], row["boards"]) else other).append(row["node_name"])
    return sorted(full), sorted(other)
