import re
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from fleet.history.lines import PLAN, NodeKept, Span, TimelineLine, position_in
from fleet.history.moment import TrueThen
from people.models import User
from rollouts.lifecycle import PLAN_FINAL, PLAN_UNDER_WAY, PlanState, TargetState
from rollouts.models import Plan, PlanEvent, Target
from rollouts.web.history import ENGINE
from rollouts.web.states import glyph_of, word_of

# Moves of a whole plan after which it does other things with each of its nodes.
OF_ALL_NODES = (PlanState.ROLLING_BACK, PlanState.ROLLED_BACK, PlanState.ABORTING, PlanState.ABORTED)


def lines_of_plans(node: NodeKept, user: User, span: Span) -> Iterator[TimelineLine]:
    """Yields the node's own events, and events of plans that have it as target. One query.

    A halt is shown only on the nodes that caused it.
    """
    if not span.has(PLAN):
        return
    plans = Plan.objects.visible_to(user).filter(cluster=node.cluster_id)
    with_it = Target.objects.filter(node_uid=node.uid).values("stage__plan")
    halted = Q(to=PlanState.HALTED) & (
        ~Q(actor__in=ENGINE) | Q(reason__regex=_name_pattern(node.name)) | Exists(_failures(node))
    )
    of_plan = Q(what="plan", plan__in=with_it) & (Q(to__in=OF_ALL_NODES) | halted)
    is_told = Q(target__node_uid=node.uid) | of_plan
    events = PlanEvent.objects.filter(span.of("at", "plans"), is_told, plan__in=plans)
    for event in events.select_related("plan").order_by("-at", "-pk")[: span.most]:
        yield TimelineLine(
            at=event.at,
            kind=PLAN,
            sentence=f"{event.plan.title}: {_whole_plan_prefix(event)}{word_of(event.to)}. {event.reason}",
            who=event.actor,
            href=reverse("plan", args=[event.plan_id]),
            glyph=glyph_of("target" if event.target_id else "plan", event.to),
            detail={"plan": event.plan_id, "was": event.was, "is": event.to},
            position=position_in("plans", event.pk),
        )


def _whole_plan_prefix(event: PlanEvent) -> str:
    return "" if event.target_id else "whole plan "


def _name_pattern(name: str) -> str:
    """Returns a pattern that matches this node's name, and no longer name that contains it."""
    return rf"(^|[^a-z0-9.-]){re.escape(name)}\.?([^a-z0-9.-]|$)"


def _failures(node: NodeKept) -> QuerySet[PlanEvent]:
    """Returns the node's earlier failures in the same plan."""
    of_node = PlanEvent.objects.filter(target__node_uid=node.uid, to=TargetState.FAILED)
    return of_node.filter(plan=OuterRef("plan"), at__lte=OuterRef("at"))


def plans_then(node: NodeKept, user: User, at: datetime) -> Iterator[TrueThen]:
    """Yields the plans in progress with this node as target. Three queries."""
    plans = Plan.objects.visible_to(user).filter(cluster=node.cluster_id)
    targets = list(Target.objects.filter(stage__plan__in=plans, node_uid=node.uid).select_related("stage__plan"))
    mine = {target.stage.plan_id: target.stage.plan for target in targets}
    moves = PlanEvent.objects.filter(plan__in=mine, what="plan").order_by("plan_id", "at", "pk")
    of_targets = list(PlanEvent.objects.filter(target__in=targets).order_by("at", "pk"))
    for plan_id, events in groupby(moves, key=lambda event: event.plan_id):
        under_way = _time_in_progress(list(events), at)
        if under_way is None:
            continue
        began, until = under_way
        plan = mine[plan_id]
        state = _state_at(at, [event for event in of_targets if event.plan_id == plan_id])
        where = f": the node was {word_of(state)}" if state else ", and had not changed the node yet"
        href = reverse("plan", args=[plan_id])
        yield TrueThen(PLAN, f"{plan.title} was in progress{where}.", began, until, href, glyph_of("target", state))


def _time_in_progress(moves: list[PlanEvent], at: datetime) -> tuple[datetime, datetime | None] | None:
    """Returns the plan's begin and end; None if it had not begun or had ended."""
    began = next((move.at for move in moves if move.to in PLAN_UNDER_WAY), None)
    until = next((move.at for move in moves if move.to in PLAN_FINAL), None)
    if began is None or at < began or (until is not None and at >= until):
        return None
    return began, until


def _state_at(at: datetime, moves: list[PlanEvent]) -> str:
    return next((move.to for move in reversed(moves) if move.at <= at), "")
