"""The page on which an admin chooses the service level of a pool: preview, save, remove."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from capacity.models import PoolServiceLevel
from capacity.placements.service_level_changes import (
    FIELDS,
    define,
    mark_of,
    may_choose,
    preview_service_level,
    put_service_level,
    remove_service_level,
)
from edges.concurrent_edits import LENGTH
from edges.requests import PersonRequest
from edges.transition_errors import LostRace
from fleet.models import Pool
from fleet.pools.changes import PoolGone
from health.telemetry.service_levels.expression import LONGEST
from health.telemetry.service_levels.indicators import INDICATORS

CHOICES = [("", "an expression of your own"), *((key, each.title) for key, each in INDICATORS.items())]


class ServiceLevelForm(forms.Form):
    indicator = forms.ChoiceField(required=False, choices=CHOICES)
    expression = forms.CharField(required=False, max_length=LONGEST)
    samples = forms.CharField(required=False, max_length=LONGEST)
    unit = forms.CharField(required=False, max_length=16)
    is_higher_better = forms.BooleanField(required=False)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                define(**cleaned)
            except ValueError as problem:
                self.add_error(None, str(problem))
        return cleaned


@require_http_methods(["GET", "HEAD", "POST"])
def service_level(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = get_object_or_404(Pool.objects.visible_to(request.user).select_related("cluster"), pk=pool_id)
    row = PoolServiceLevel.objects.filter(pool=pool).first()
    refusal, now = may_choose(request.user, pool), timezone.now()
    known = {name: getattr(row, name) for name in FIELDS} if row else None
    form = ServiceLevelForm(request.POST or None, initial=known)
    was = request.POST.get("was", "")[:LENGTH] if request.method == "POST" else mark_of(row)
    context: dict[str, Any] = {"pool": pool, "row": row, "form": form, "why_not": refusal, "was": was}
    if request.method != "POST":
        return render(request, "capacity/placements/service_level.html", context)
    if refusal:
        raise PermissionDenied(refusal)
    actor = request.user.get_username()
    try:
        if request.POST.get("do") == "remove":
            remove_service_level(pool, actor=actor, now=now, was=was)
            messages.success(request, f"Pool {pool.name} has no service level.")
            return redirect("pool", pool_id=pool.pk)
        if form.is_valid() and request.POST.get("do") == "save":
            put_service_level(pool, actor=actor, now=now, was=was, **form.cleaned_data)
            messages.success(request, f"The service level of pool {pool.name} is measured from the next hour on.")
            return redirect("pool", pool_id=pool.pk)
    except (LostRace, PoolGone) as lost:
        form.add_error(None, str(lost))
        context["was"] = mark_of(PoolServiceLevel.objects.filter(pool_id=pool.pk).first())
        return render(request, "capacity/placements/service_level.html", context, status=409)
    if form.is_valid():
        context["preview"] = preview_service_level(pool, define(**form.cleaned_data), now=now)
    return render(request, "capacity/placements/service_level.html", context, status=200 if form.is_valid() else 400)
