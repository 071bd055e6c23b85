"""The evidence of the gate on slow drift: hours of GPU telemetry of changed nodes and of their unchanged peers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db.models import Avg

from fleet.models import Node
from health.models import GpuHour
from rollouts.engine.gpu_health import unchanged_peers
from rollouts.gates.base import HoursEvidence, MeasuredHour
from rollouts.gates.drift import MEASURES, Drift
from rollouts.lifecycle import TargetState
from rollouts.models import Plan, Stage

PAST = timedelta(hours=24)
MOST_AFTER = timedelta(days=3)  # the last release
MOST_NODES = 64  # changed ones, and unchanged ones
WHOLE_S = 1800  # seconds with telemetry, from which an hour of a GPU counts
Hours = dict[str, tuple[MeasuredHour, ...]]


def read_hours(
    plan: Plan, stages: Sequence[Stage], nodes: Mapping[str, Node], *, now: datetime
) -> Mapping[int, HoursEvidence]:
    """Returns the hours by key of a stage. One query for each stage whose gate asks and that has a changed node.

    Another query a minute reads the hours.

    `nodes` are those of the plan by UID.
    """
    found = {}
    for stage in stages:
        every = [
            target
            for target in stage.targets.all()
            if target.state == TargetState.CHANGED and target.baseline and target.node_uid in nodes
        ]
        if Drift.key in stage.gate_options and not stage.is_rollback and every:
            changed, left_out = every[:MOST_NODES], every[MOST_NODES:]
            releases = [datetime.fromisoformat(target.baseline["at"]) for target in changed if target.baseline]
            first, last = min(releases), max(releases)
            products = {nodes[target.node_uid].gpu_product for target in changed}
            peers = sorted(unchanged_peers(plan, stages, products, first).values())[:MOST_NODES]
            names = [target.node_name for target in changed]
            minute = int(now.timestamp()) // 60
            hours = _hours_of(plan.cluster_id, (*names, *peers), first - PAST, last + MOST_AFTER, minute)
            found[stage.pk] = HoursEvidence(
                {name: hours.get(name, ()) for name in names},
                {name: hours.get(name, ()) for name in peers},
                frozenset(target.node_name for target in left_out),
            )
    return found


@lru_cache(maxsize=4)  # rounds come every second, hours once an hour; up to 7 MB each, and a minute makes a new one
def _hours_of(cluster_id: int, names: tuple[str, ...], since: datetime, until: datetime, _minute: int) -> Hours:
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
