"""The evidence of the gate on slow drift: hours of GPU telemetry of changed nodes and of their unchanged peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from fleet.models import Node
from rollouts.engine.gpu_health import unchanged_peers
from rollouts.gates.base import HoursEvidence
from rollouts.gates.drift import Drift
from rollouts.lifecycle import TargetState
from rollouts.models import Plan, Stage
from rollouts.queries.gpu_hours import hours_of

PAST = timedelta(hours=24)
MOST_AFTER = timedelta(days=3)  # the last release
MOST_NODES = 64  # changed ones, and unchanged ones


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
            found_peers = unchanged_peers(plan, stages, [nodes[target.node_uid] for target in changed], first)
            peers = sorted(found_peers.names.values())[:MOST_NODES]
            names = [target.node_name for target in changed]
            minute = int(now.timestamp()) // 60
            hours = hours_of(plan.cluster_id, (*names, *peers), first - PAST, last + MOST_AFTER, minute)
            found[stage.pk] = HoursEvidence(
                {name: hours.get(name, ()) for name in names},
                {name: hours.get(name, ()) for name in peers},
                frozenset(target.node_name for target in left_out),
                found_peers.alike,
            )
    return found
