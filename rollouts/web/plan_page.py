"""One plan: where each stage stands, what every gate says, why it is waiting, and what one may do about it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.http import HttpResponse
from django.shortcuts import render

from fleet.models import DriverObject, Node
from fleet.web.parts import part
from people.rights import Deed, reach
from people.web.requests import PersonRequest
from rollouts.gates.base import Gate
from rollouts.gates.soak import Soak
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import Answer, Plan, StageKind, Target, Wave
from rollouts.queries import PlanPicture, StageOnPage, buttons, plan_picture
from rollouts.web.loading import plan_for
from rollouts.web.previewing import preview_of

MOST_TARGETS = 60  # a stage; the rest are counted
MOST_EVENTS = 50
NEEDS_TO_EXCLUDE = {TargetState.HELD, TargetState.FAILED}
CONSEQUENCES: dict[str, str] = {
    "start": "Seals the plan, holds every node of the driver object, then writes the new version. The first stage "
    "waits for its approval before any node is released.",
    "halt": "Nothing more is released, from this moment. Released nodes that have not begun are held again. Changed "
    "nodes stay changed until you resume, roll back or abort.",
    "pause": "Nothing more is released until somebody resumes. Gates go on being asked.",
    "resume": "Takes the plan up where it stands. Every gate is asked anew; what still fails halts it again.",
    "rollback": "Holds all nodes, puts the old version back, and brings every changed node back in waves. The plan's "
    "approval covers this: nobody needs to approve it.",
    "abort": "Gives the plan up: the old version is put back and unchanged nodes are let go. Changed nodes keep the "
    "new driver and stay held.",
    "discard": "Throws the draft away. Nothing in any cluster has been touched.",
}


def plan(request: PersonRequest, plan_id: int) -> HttpResponse:
    row = plan_for(request.user, plan_id)
    context = _plan(request, row)
    context |= {
        "place": "plans",
        "seq": json.dumps({f"plan-{row.pk}": context["picture"].seq}),
        "history": _history(row),
        "key": uuid4().hex,
        "consequences": CONSEQUENCES,
    }
    return render(request, "rollouts/plan.html", context)


@part
def plan_part(request: PersonRequest, plan_id: int) -> HttpResponse:
    return render(request, "rollouts/_plan.html", _plan(request, plan_for(request.user, plan_id)))


@part
def history_part(request: PersonRequest, plan_id: int) -> HttpResponse:
    row = plan_for(request.user, plan_id)
    return render(request, "rollouts/_history.html", {"plan": row, "history": _history(row)})


def _plan(request: PersonRequest, row: Plan) -> dict[str, Any]:
    picture = plan_picture(row)
    node_ids = dict(Node.objects.visible_to(request.user).filter(cluster=row.cluster_id).values_list("uid", "pk"))
    columns = [_column(stage, node_ids) for stage in picture.stages]
    return {
        "plan": row,
        "picture": picture,
        "columns": [column for column in columns if column.is_shown],
        "buttons": buttons(row, request.user),
        "may_exclude": reach(request.user, Deed.RUN).covers_cluster(row.cluster_id),
        "why": _why(row, picture),
        "preview": preview_of(row) if row.state == PlanState.DRAFT else None,
        "way_back": row.sealed.get("way_back", ""),
        "driver_object": DriverObject.objects.filter(cluster=row.cluster_id, uid=row.object_uid).first(),
    }


def _why(row: Plan, picture: PlanPicture) -> str:
    """Why it is not moving, in one sentence. Never blank: silence at this place would look like health."""
    if picture.pause:
        return f"{picture.pause.actor} paused it: {picture.pause.because}"
    if row.state == PlanState.HALTED:
        return row.because or "It was halted."
    if row.state == PlanState.DRAFT:
        return "It is a draft: nothing in the cluster has been touched."
    if row.is_final:
        return row.because or f"It is {row.state}."
    return row.waiting_for or "A worker has not looked at it yet."


@dataclass(frozen=True)
class GateLine:
    gate: Gate
    answer: Answer | None
    soak_until: datetime | None = None

    @property
    def options(self) -> str:
        return ", ".join(f"{name.replace('_', ' ')} {_option(value)}" for name, value in vars(self.gate).items())


def _option(value: Any) -> str:
    return f"{value.total_seconds() / 60:g} min" if isinstance(value, timedelta) else str(value)


@dataclass(frozen=True)
class WaveGroup:
    wave: Wave | None  # None: not released yet
    targets: list[Target]
    more: int


@dataclass(frozen=True)
class Column:
    """One stage as the board draws it."""

    on_page: StageOnPage
    gates: list[GateLine]
    waves: list[WaveGroup]
    node_ids: dict[str, int]
    segments: list[tuple[str, float, float]]
    changed: int
    total: int
    is_shown: bool

    @property
    def wants_approval(self) -> bool:
        return self.on_page.stage.state == StageState.OPENING and "approval" in self.on_page.stage.gate_options


def _column(on_page: StageOnPage, node_ids: dict[str, int]) -> Column:
    stage, counts = on_page.stage, on_page.counts
    total = sum(counts.values()) - counts[TargetState.EXCLUDED]
    for target in on_page.targets:
        target.node_id = node_ids.get(target.node_uid)  # type: ignore[attr-defined]
        target.may_be_excluded = target.state in NEEDS_TO_EXCLUDE  # type: ignore[attr-defined]
    return Column(
        on_page=on_page,
        gates=[_gate_line(gate, on_page) for gate in stage.gates],
        waves=list(_waves(on_page.targets)),
        node_ids=node_ids,
        segments=_segments(counts, len(on_page.targets)),
        changed=counts[TargetState.CHANGED],
        total=total,
        is_shown=stage.kind != StageKind.BACK or stage.state != StageState.WAITING,
    )


def _gate_line(gate: Gate, on_page: StageOnPage) -> GateLine:
    answer = on_page.answers.get(gate.key)
    is_running = on_page.stage.state == StageState.SOAKING
    return GateLine(gate, answer, _soak_until(gate, answer) if is_running else None)


def _soak_until(gate: Gate, answer: Answer | None) -> datetime | None:
    """When the soak would be over; None where its clock does not run."""
    if not isinstance(gate, Soak) or answer is None or answer.answer != "hold":
        return None
    soaked = answer.measured.get("soaked_s") or 0
    return answer.at + gate.duration - timedelta(seconds=soaked) if soaked else None


def _waves(targets: Iterable[Target]) -> Iterable[WaveGroup]:
    by_wave: dict[int | None, list[Target]] = {}
    for target in targets:
        by_wave.setdefault(target.wave_id, []).append(target)
    for key in sorted((key for key in by_wave if key is not None), reverse=True):
        yield WaveGroup(by_wave[key][0].wave, by_wave[key], 0)
    if waiting := by_wave.get(None):
        yield WaveGroup(None, waiting[:MOST_TARGETS], max(0, len(waiting) - MOST_TARGETS))


def _segments(counts, total: int) -> list[tuple[str, float, float]]:
    """(state, start, width) of 100: how far a stage is, at a glance."""
    start, found = 0.0, []
    for state in (
        TargetState.CHANGED,
        TargetState.FAILED,
        TargetState.CHANGING,
        TargetState.RELEASED,
        TargetState.RELEASING,
    ):
        if counts[state]:
            width = 100 * counts[state] / total
            found.append((state.value, start, width))
            start += width
    return found


def _history(row: Plan):
    return row.events.select_related("stage", "target")[:MOST_EVENTS]
