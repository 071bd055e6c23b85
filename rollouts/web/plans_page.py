"""The plans page: in progress, drafts, ended."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, Max, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.freshness.observation_state import all_observations
from people.rights import Permission, scope_of
from rollouts.approvals.decisions import waits_for
from rollouts.lifecycle import PLAN_FINAL, PlanState, TargetState
from rollouts.models import Plan, Stage, StageKind, Target
from rollouts.models.plan import PlanQuerySet
from rollouts.queries.plan_view import standings_of
from rollouts.web.external_rollouts_page import listed

PER_PAGE = 30
FORWARD = ~Q(stages__kind=StageKind.ROLLBACK)


def plans(request: PersonRequest) -> HttpResponse:
    return render(request, "rollouts/plans/page.html", _plans(request))


@part_response
def plans_part(request: PersonRequest) -> HttpResponse:
    return render(request, "rollouts/plans/_body.html", _plans(request))


@part_response
def strip_part(request: PersonRequest) -> HttpResponse:
    under_way = _plans_in_progress(Plan.objects.visible_to(request.user))
    return render(request, "rollouts/plans/_strip.html", {"plans": under_way, "may_draft": _may_draft(request)})


def _plans(request: PersonRequest) -> dict[str, Any]:
    visible = Plan.objects.visible_to(request.user)
    over = Paginator(_counted(visible.filter(state__in=sorted(PLAN_FINAL))), PER_PAGE).get_page(request.GET.get("page"))
    now = timezone.now()
    over.object_list = _add_wait_reasons(_add_node_counts(over.object_list), now=now)
    under_way = _plans_in_progress(visible)
    return {
        "seq": json.dumps({f"plan-{plan.pk}": plan.newest or 0 for plan in under_way}),  # type: ignore[attr-defined]
        "under_way": under_way,
        "external_rollouts": listed(request.user, now=now),
        "drafts": _add_wait_reasons(list(_counted(visible.filter(state=PlanState.DRAFT))), now=now),
        "over": over,
        "waiting_for_me": _stages_to_decide(request),
        "may_draft": _may_draft(request),
    }


def _plans_in_progress(visible) -> list[Plan]:
    now = timezone.now()
    under_way, observations = (
        _add_wait_reasons(_add_node_counts(_counted(visible.under_way())), now=now),
        all_observations(now=now),
    )
    for plan in under_way:
        plan.observation = observations[plan.cluster_id]  # type: ignore[attr-defined]
    return under_way


def _add_wait_reasons(plans: list[Plan], *, now: datetime) -> list[Plan]:
    """Adds why each plan does not move. One query."""
    for each in standings_of(plans, now=now):
        each.plan.standing = each  # type: ignore[attr-defined]
    return plans


def _counted(plans: PlanQuerySet) -> QuerySet[Plan]:
    targets = Count("stages__targets", filter=FORWARD & ~Q(stages__targets__state=TargetState.EXCLUDED), distinct=True)
    changed = Count("stages__targets", filter=FORWARD & Q(stages__targets__state=TargetState.CHANGED), distinct=True)
    failed = Count("stages__targets", filter=FORWARD & Q(stages__targets__state=TargetState.FAILED), distinct=True)
    newest = Max("events__pk")
    return (
        plans.with_pending_stop()
        .select_related("cluster")
        .annotate(target_count=targets, changed_count=changed, failed_count=failed, newest=newest)
        .order_by("-created_at")
    )


def _add_node_counts(plans: Iterable[Plan]) -> list[Plan]:
    """Adds how many nodes run the old and the new version. One query."""
    listed = list(plans)
    back = Target.objects.filter(stage__plan__in=[plan.pk for plan in listed]).back_on_old_version().order_by()
    numbers = {
        plan: (number, changed)
        for plan, number, changed in back.values_list("stage__plan").annotate(
            number=Count("pk"), changed=Count("pk", filter=Q(state=TargetState.CHANGED))
        )
    }
    for plan in listed:
        plan.back_count, changed = numbers.get(plan.pk, (0, 0))  # type: ignore[attr-defined]
        plan.running_count = plan.changed_count - changed  # type: ignore[attr-defined]
    return listed


def _stages_to_decide(request: PersonRequest) -> list[Stage]:
    return [each.stage for each in waits_for(request.user) if each.is_theirs]


def _may_draft(request: PersonRequest) -> bool:
    return not scope_of(request.user, Permission.DRAFT).nowhere
