"""The nodes of a stage with the gate `window` that no maintenance window covers for long enough.

Existing windows bind every node as restraints. The gate adds that a window must exist until the operator has begun,
since somebody may remove it meanwhile (Z3).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from rollouts.gates.base import WindowEvidence
from rollouts.gates.window import Window
from rollouts.lifecycle import TargetState
from rollouts.models import Stage, Target
from rollouts.queries.restraints import OpenHours, restraints_of


def window_gate_of(stage: Stage, *, now: datetime) -> Window | None:
    """Returns the stage's window gate; None if it has none that counts, or the stage goes back. One query."""
    gate = None if stage.is_rollback else next((one for one in stage.gates if isinstance(one, Window)), None)
    return None if gate is None or gate.advisory or gate.key in stage.overrides_now(now=now) else gate


def outside(
    gate: Window, targets: Iterable[Target], openings: Mapping[str, OpenHours], *, now: datetime
) -> dict[str, str]:
    """Returns why windows forbid a node's release, by UID. Nodes of the same windows share a sentence."""
    by_openings: dict[OpenHours | None, dict[str, str]] = {}
    for target in targets:
        by_openings.setdefault(openings.get(target.node_uid), {})[target.node_uid] = target.node_name
    said: dict[str, str] = {}
    for its, nodes in by_openings.items():
        seen = WindowEvidence(tuple(nodes.values()), *(its or ()))
        if sentence := gate.why_not(seen, now=now):
            said |= dict.fromkeys(nodes, sentence)
    return said


def released_outside_windows(
    stages: Iterable[Stage], openings: Mapping[str, OpenHours], there: Collection[str], *, now: datetime
) -> dict[str, str]:
    """Returns why released nodes that have not begun are held again, by UID.

    The required length counts only while the label is there; what waits for the operator was released in time.
    """
    found: dict[str, str] = {}
    for stage in stages:
        released = [one for one in stage.targets.all() if one.state in RELEASED_STATES and one.node_uid in there]
        if released and (gate := window_gate_of(stage, now=now)):
            to_go = [one for one in released if one.state == TargetState.RELEASING]
            queued = [one for one in released if one.state == TargetState.RELEASED]
            found |= outside(gate, to_go, openings, now=now)
            found |= outside(replace(gate, must_last=timedelta(0)), queued, openings, now=now)
    return found


RELEASED_STATES = frozenset({TargetState.RELEASING, TargetState.RELEASED})


def why_not_released(stage: Stage, targets: Collection[Target], *, now: datetime) -> str:
    restraints, uids = restraints_of(stage.plan, now=now), [target.node_uid for target in targets]
    if reason := restraints.why_not(uids):
        return reason
    gate = window_gate_of(stage, now=now)
    if gate is None:
        return ""
    openings = restraints.openings_of(uids, lasting=gate.must_last)
    return next(iter(outside(gate, targets, openings, now=now).values()), "")
