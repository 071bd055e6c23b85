"""Tries a telemetry source from its form before it is saved: requested, followed and shown."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Cluster
from health.inbox.source_trials import OVER, TRIED, TrialOpen, ask_trial, exporting_by, trial_summary
from health.inbox.telemetry_sources import BadSource
from health.models import TelemetryTrial, TrialState
from health.web.telemetry import source_card
from health.web.telemetry_form import TelemetrySourceForm
from people.rights import Permission, why_not

LOOKS = {TrialState.ANSWERED: "is-ok", TrialState.TROUBLED: "is-bad", TrialState.LOST: "is-bad"}


@require_POST
def try_source(request: PersonRequest, cluster_id: int) -> HttpResponse:
    """Starts a trial, or shows the form's errors. If the cluster has another trial in progress, that one is shown."""
    cluster = get_object_or_404(Cluster.objects.visible_to(request.user), pk=cluster_id)
    if refusal := why_not(request.user, Permission.ADMINISTER, cluster_id=cluster.pk, where=f"cluster {cluster.name}"):
        return _render_trial(request, None, [refusal], status=403)
    form = TelemetrySourceForm(request.POST)
    if not form.is_valid():
        return _render_trial(request, None, [f"{form[name].label}: {wrong[0]}" for name, wrong in form.errors.items()])
    fields = {name: form.cleaned_data[name] for name in TRIED}
    try:
        trial = ask_trial(cluster, actor=request.user.get_username(), now=timezone.now(), **fields)
    except BadSource as wrong:
        return _render_trial(request, None, [str(wrong)])
    except TrialOpen as open_one:
        return _render_trial(request, open_one.trial, [str(open_one)])
    return _render_trial(request, trial)


@part_response
def trial_part(request: PersonRequest, cluster_id: int, trial_id: int) -> HttpResponse:
    trials = TelemetryTrial.objects.visible_to(request.user)
    return _render_trial(request, get_object_or_404(trials, pk=trial_id, cluster__pk=cluster_id))


def _render_trial(
    request: PersonRequest, trial: TelemetryTrial | None, problems: Sequence[str] = (), *, status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {"trial": trial, "problems": problems}
    if trial is not None:
        now = timezone.now()
        state = trial.state_at(now)
        context |= {
            "state": state, "is_over": state in OVER, "look": LOOKS.get(state, "muted"),
            "said": trial_summary(trial, now=now),
            "card": source_card(None, told=trial.exported, exporting=exporting_by(trial), now=now),
        }  # fmt: skip
    return render(request, "health/cluster/_telemetry_trial.html", context, status=status)
