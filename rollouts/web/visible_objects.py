"""Loads the objects that a page's person may see; others are 404."""

from django.shortcuts import get_object_or_404

from people.models import User
from rollouts.models import Plan, Stage, Target


def plan_for(user: User, plan_id: int) -> Plan:
    return get_object_or_404(Plan.objects.visible_to(user).select_related("cluster"), pk=plan_id)


def stage_for(user: User, stage_id: int) -> Stage:
    rows = Stage.objects.visible_to(user).select_related("plan", "plan__cluster", "pool")
    return get_object_or_404(rows, pk=stage_id)


def target_for(user: User, target_id: int) -> Target:
    plans = Plan.objects.visible_to(user)
    rows = Target.objects.filter(stage__plan__in=plans).select_related("stage", "stage__plan", "stage__plan__cluster")
    return get_object_or_404(rows, pk=target_id)
