"""Hours of GPU telemetry of nodes, as means over their GPUs."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db.models import Avg

from health.models import GpuHour
from rollouts.gates.base import MeasuredHour
from rollouts.gates.drift import MEASURES

WHOLE_S = 1800  # seconds with telemetry, from which an hour of a GPU counts
Hours = dict[str, tuple[MeasuredHour, ...]]


@lru_cache(maxsize=4)  # rounds come every second, hours once an hour; up to 7 MB each, and a minute makes a new one
def hours_of(cluster_id: int, names: tuple[str, ...], since: datetime, until: datetime, _minute: int) -> Hours:
    """Returns the hours by name of a node, the oldest first. One query a minute."""
    rows = GpuHour.objects.filter(
        cluster=cluster_id,
        node_name__in=names,
        hour__gte=since,
        hour__lt=until,
        gi_id="",
        seen_s__gte=WHOLE_S,
    )
    keys = [measure.key for measure in MEASURES]
    means = {f"mean_{key}": Avg(key) for key in ("utilisation", *keys)}
    found: dict[str, list[MeasuredHour]] = defaultdict(list)
    written: Any = rows.order_by().values("node_name", "hour").annotate(**means).order_by("hour")
    for row in written:
        values = {key: row[f"mean_{key}"] for key in keys if row[f"mean_{key}"] is not None}
        found[row["node_name"]].append(MeasuredHour(row["hour"], row["mean_utilisation"], values))
    return {name: tuple(its) for name, its in found.items()}
