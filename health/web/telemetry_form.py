"""Adds, changes and removes a cluster's telemetry source from a page, with the same calls as REST."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from edges.concurrent_edits import LENGTH
from edges.requests import PersonRequest
from edges.transition_errors import LostRace
from fleet.models import Cluster
from health import wake
from health.inbox.telemetry_sources import GIVEN, BadSource, mark_of, put_source, remove_source
from health.models import TelemetrySource
from health.sources.manual_refresh import SourceOff, ask_now
from people.rights import Permission, why_not


class TelemetrySourceForm(forms.Form):
    url = forms.CharField(label="Address", max_length=300, error_messages={"required": "Say where it is."})
    matchers = forms.CharField(label="Label matchers", max_length=500, required=False)
    user = forms.CharField(max_length=150, required=False)
    secret_from = forms.CharField(label="Secret is found at", max_length=300, required=False)
    ca_file = forms.CharField(label="CA", max_length=300, required=False)
    is_on = forms.BooleanField(required=False, initial=True)


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: PersonRequest, cluster_id: int) -> HttpResponse:
    cluster = _cluster(request, cluster_id)
    source = TelemetrySource.objects.filter(cluster=cluster).first()
    refusal = _refusal(request, cluster, Permission.ADMINISTER)
    context: dict[str, Any] = {"cluster": cluster, "source": source, "why_not": refusal}
    if refusal:  # nor may they see where its secret is
        return render(request, "health/cluster/telemetry_form.html", {**context, "source": None}, status=403)
    if request.method != "POST":
        initial = {name: getattr(source, name) for name in GIVEN} if source else None
        context |= {"form": TelemetrySourceForm(initial=initial), "was": mark_of(source)}
        return render(request, "health/cluster/telemetry_form.html", context)
    form, was, status = TelemetrySourceForm(request.POST), request.POST.get("was", "")[:LENGTH], 400
    if form.is_valid():
        told: dict[str, Any] = {"actor": request.user.get_username(), "now": timezone.now(), "was": was}
        try:
            saved = put_source(cluster, **told, **form.cleaned_data)
        except BadSource as wrong:
            form.add_error(wrong.field, str(wrong))
        except LostRace as refusal:
            form.add_error(None, str(refusal))
            context["source"] = source = TelemetrySource.objects.filter(cluster=cluster).first()
            was, status = mark_of(source), 409
        else:
            wake.wake_telemetry_of(cluster.pk)
            said = "A worker queries it now." if saved.is_on else "The source is disabled and not queried."
            messages.success(request, f"The telemetry of {cluster.name} is read from {saved.url}. {said}")
            return redirect("cluster", cluster_id=cluster.pk)
    return render(request, "health/cluster/telemetry_form.html", {**context, "form": form, "was": was}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: PersonRequest, cluster_id: int) -> HttpResponse:
    """Shows the consequences, and removes the source when confirmed."""
    cluster = _cluster(request, cluster_id)
    source = get_object_or_404(TelemetrySource.objects.visible_to(request.user), cluster=cluster)
    refusal = _refusal(request, cluster, Permission.ADMINISTER)
    if request.method == "POST" and not refusal:
        remove_source(source, actor=request.user.get_username(), now=timezone.now())
        messages.success(request, f"The telemetry source of {cluster.name} is removed.")
        return redirect("cluster", cluster_id=cluster.pk)
    context = {"cluster": cluster, "source": source, "why_not": refusal}
    return render(request, "health/cluster/telemetry_remove.html", context, status=403 if refusal else 200)


@require_POST
def ask(request: PersonRequest, cluster_id: int) -> HttpResponse:
    """Queries the source at once, before it is due."""
    cluster = _cluster(request, cluster_id)
    source = get_object_or_404(TelemetrySource.objects.visible_to(request.user), cluster=cluster)
    try:
        if refusal := _refusal(request, cluster, Permission.STOP):
            messages.error(request, refusal)
        else:
            ask_now(source, now=timezone.now())
            messages.success(request, f"A worker queries {source.url} now.")
    except SourceOff as off:
        messages.error(request, str(off))
    return redirect("cluster", cluster_id=cluster.pk)


def _cluster(request: PersonRequest, cluster_id: int) -> Cluster:
    return get_object_or_404(Cluster.objects.visible_to(request.user), pk=cluster_id)


def _refusal(request: PersonRequest, cluster: Cluster, permission: Permission) -> str:
    return why_not(request.user, permission, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
