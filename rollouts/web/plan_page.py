"""The plan page: stages, gate results, reasons and commands."""

import json
from typing import Any
from uuid import uuid4

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.freshness.cluster import load_cluster_freshness
from fleet.models import DriverObject, Node
from people.rights import Permission, scope_of
from rollouts.checks import Check
from rollouts.commands.duration import at_once_now
from rollouts.commands.preview import Preview
from rollouts.commands.remaining_time import label_progress, remaining
from rollouts.commands.rollback_preview import rollback_preview
from rollouts.lifecycle import PlanState
from rollouts.models import Plan, Target
from rollouts.preflight.rollback import rollback_checks
from rollouts.queries.gate_plots import drawn_stages
from rollouts.queries.plan_view import PlanOnPage, buttons, plan_on_page
from rollouts.web.board import Column, column_of, soak_until
from rollouts.web.command_forms import pop_plan_input
from rollouts.web.gate_reviews import is_reviewed
from rollouts.web.history import history_of
from rollouts.web.image_pulls import panel
from rollouts.web.live_checks import panel as live_panel
from rollouts.web.preview import GonePreview, preview_of
from rollouts.web.rehearsals import panel as rehearsal_panel
from rollouts.web.resume_preview import resume_says
from rollouts.web.visible_objects import plan_for

ROLLBACK: dict[str, str] = {
    PlanState.PROMOTED: "The rollback was prepared and not needed",
    PlanState.ROLLED_BACK: "The rollback was carried out",
    PlanState.ROLLING_BACK: "The rollback is being carried out",
    PlanState.ABORTED: "The rollback was not finished",
    PlanState.ABORTING: "No rollback: the plan was aborted",
}


def plan(request: PersonRequest, plan_id: int) -> HttpResponse:
    row = plan_for(request.user, plan_id)
    context = _plan(request, row)
    context |= panel(request, row)
    context |= live_panel(request, row)
    context |= rehearsal_panel(request, row)
    context |= history_of(row, request.GET.get("who", "")[:150])
    written = pop_plan_input(request, row)
    context |= {
        "seq": json.dumps({f"plan-{row.pk}": context["on_page"].seq}),
        "key": uuid4().hex,
        "is_reviewed": is_reviewed(row),
        "rollback_checks": rollback_checks(context["on_page"], now=timezone.now()),
        "written": written,
        # Of a node, a gate and a pull there is no telling whether their form can be opened once more.
        "may_write_again": written.get("verb") in {each.verb for each in context["buttons"] if each.is_allowed},
    }
    return render(request, "rollouts/plan/page.html", context)


@part_response
def plan_part(request: PersonRequest, plan_id: int) -> HttpResponse:
    return render(request, "rollouts/plan/_body.html", _plan(request, plan_for(request.user, plan_id)))


@part_response
def preview_part(request: PersonRequest, plan_id: int) -> HttpResponse:
    """Renders the checks and the forecast of a draft, evaluated now, with the button of its start."""
    row = plan_for(request.user, plan_id)
    if row.state != PlanState.DRAFT:
        return render(request, "rollouts/plan/_preview.html", {"plan": row})
    preview = preview_of(row)
    offered = {button.verb: button for button in buttons(row, request.user, is_barred=bool(preview.blockers))}
    context = {"plan": row, "preview": preview, "overridable": _overridable(preview), "start": offered["start"]}
    return render(request, "rollouts/plan/_preview.html", context)


@part_response
def wave_part(request: PersonRequest, plan_id: int, wave_id: int) -> HttpResponse:
    """Renders the nodes of one wave; finished waves load theirs when unfolded."""
    context = _plan(request, plan_for(request.user, plan_id))
    for column in context["columns"]:
        for group in column.waves:
            if group.wave and group.wave.pk == wave_id:
                shown = context | {"column": column, "stage": column.on_page.stage, "group": group}
                return render(request, "rollouts/plan/_targets.html", shown)
    raise Http404("This plan has no such wave.")


@part_response
def history_part(request: PersonRequest, plan_id: int) -> HttpResponse:
    row = plan_for(request.user, plan_id)
    return render(request, "rollouts/plan/_history.html", history_of(row, request.GET.get("who", "")[:150]))


def _plan(request: PersonRequest, row: Plan) -> dict[str, Any]:
    now = timezone.now()
    on_page = plan_on_page(row, now=now)
    observation = load_cluster_freshness(row.cluster, now=now).observation
    seen_until = None if observation.is_live else observation.last_seen_at or row.cluster.added_at
    its = Target.objects.filter(stage__plan=row).order_by().values("node_uid")
    nodes = Node.objects.visible_to(request.user).filter(cluster=row.cluster_id, uid__in=its)
    node_ids = dict(nodes.order_by().values_list("uid", "pk"))
    driver_object = DriverObject.objects.filter(cluster=row.cluster_id, uid=row.object_uid).first()
    following = [*on_page.stages[1:], None]
    pairs = zip(on_page.stages, following, strict=True)
    at_once = at_once_now(row, on_page, driver_object)
    columns = [
        column_of(stage, node_ids, after, seen_until=seen_until, at_once=at_once.get(stage.stage.pk))
        for stage, after in pairs
    ]
    return {
        "plan": row,
        "on_page": on_page,
        "all_pass_now": row.state == PlanState.HALTED and observation.is_live and _all_pass(columns, on_page),
        "observation": None if row.is_final else observation,
        "columns": [column for column in columns if column.is_shown],
        "drawn_stages": {stage.pk for stage in drawn_stages(column.on_page.stage for column in columns)},
        "buttons": buttons(row, request.user),
        "may_override": scope_of(request.user, Permission.RUN).covers_cluster(row.cluster_id),
        "may_acknowledge": scope_of(request.user, Permission.STOP).covers_cluster(row.cluster_id),
        "may_exclude": scope_of(request.user, Permission.RUN).covers_cluster(row.cluster_id),
        "why": _why(on_page),
        "rollback_preview": rollback_preview(on_page, now=now),
        "resume_says": resume_says(row, on_page, driver_object, at_once),
        "since_then": _since_then(row) if observation.is_live else "",
        "shown_state": on_page.shown_state,
        "soak_until": soak_until(on_page.current) if observation.is_live else None,
        "rollback": row.sealed.get("rollback", ""),
        "rollback_title": ROLLBACK.get(row.state, "The rollback is prepared"),
        "driver_object": driver_object,
        "asks_otherwise": _asks_otherwise(row, driver_object),
        "label_progress": label_progress(on_page, now=now),
        "duration": remaining(row, on_page, at_once, observation, now=now),
    }


def _overridable(preview: Preview | GonePreview) -> list[Check]:
    """Returns the blockers that a reason overrides, from rows and from the live check."""
    live = preview.live.overridable if isinstance(preview, Preview) and preview.live else []
    return [check for check in [*preview.blockers, *(one.check for one in live)] if check.may_be_overridden]


def _all_pass(columns: list[Column], on_page: PlanOnPage) -> bool:
    """Returns whether everything evaluated for the current stage passes. No evaluation since the halt is no pass."""
    lines = [line for column in columns if column.on_page is on_page.current for line in column.gates]
    asked = [line.answer for line in lines if not line.is_over and not line.gate.advisory]
    since = on_page.plan.state_since
    return bool(asked) and all(answer and answer.answer == "pass" and answer.at > since for answer in asked)


def _asks_otherwise(row: Plan, driver_object: DriverObject | None) -> str:
    """Returns the armed object's version if it is not the new one; empty otherwise."""
    named = f"{row.to_version} was written, and {row.object_kind} {row.object_name}"
    if row.armed_since is None:
        return ""
    if driver_object is None:
        return f"{named} is gone."
    if driver_object.version == row.to_version or driver_object.changed_at <= row.armed_since:
        return ""
    return f"{named} {f'asks for {driver_object.version}' if driver_object.version else 'names no version'} now."


def _since_then(row: Plan) -> str:
    """Returns what a halted plan has met since its halt; empty if nothing."""
    said = row.waiting_for.removeprefix("Halted. ")
    return "" if row.state != PlanState.HALTED or said.startswith("A person decides") else said


def _why(on_page: PlanOnPage) -> str:
    if on_page.plan.state != PlanState.DRAFT or on_page.plan.waiting_for:
        return on_page.why
    return f"{on_page.why} Read the preview, then start the plan."
