"""The pages of automatic quarantine: all pools, and one pool with its breaker, decisions and backtest."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.fields import Reason
from edges.kept_input import BadForm, cleaned_input, reason_of
from edges.requests import PersonRequest, report_act
from fleet.models import Pool
from maintenance import automatic, automatic_cases
from maintenance.models import AutomaticDecision, AutomaticQuarantine
from maintenance.refusals import CaseRefused
from maintenance.trials import TRIAL, ShadowTrial, acceptance_of, skipped_rules, trial_of, with_judgement
from maintenance.triggers import MODE_MOVES, TITLES, TRIGGERS, VERSION, BreakerState, Mode
from people.rights import NotAllowed, Permission, require, why_not

REFUSALS = (BadForm, NotAllowed, CaseRefused)
SHOWN = 100  # pools, decisions, results of the backtest; all decisions are in REST


class ModeForm(forms.Form):
    mode = forms.ChoiceField(choices=[(mode.value, mode.value) for mode in Mode])
    skip_trial = forms.BooleanField(required=False)
    reason = Reason()


class RuleForm(forms.Form):
    rule = forms.ChoiceField(choices=list(TITLES.items()))
    mode = forms.ChoiceField(choices=[(mode.value, mode.value) for mode in Mode])
    skip_trial = forms.BooleanField(required=False)
    reason = Reason()


class SwitchesForm(forms.Form):
    drain = forms.BooleanField(required=False)
    repair = forms.ChoiceField(
        required=False, choices=[("", "off"), *((key, actor.title) for key, actor in automatic_cases.MACHINES.items())]
    )
    reason = Reason()


def pools(request: PersonRequest) -> HttpResponse:
    visible = Pool.objects.visible_to(request.user).select_related("cluster", "automatic_quarantine")
    shown = list(visible.order_by("cluster__name", "name")[: SHOWN + 1])
    rows = [(pool, getattr(pool, "automatic_quarantine", None)) for pool in shown[:SHOWN]]
    context = {"rows": rows, "is_more": len(shown) > SHOWN, "most": SHOWN}
    return render(request, "maintenance/automatic/list.html", context)


def pool(request: PersonRequest, pool_id: int) -> HttpResponse:
    row = _load(request, pool_id)
    setting = getattr(row, "automatic_quarantine", None)
    now = timezone.now()
    where, mode = f"cluster {row.cluster.name}", Mode(setting.mode) if setting else Mode.OFF
    would = automatic_cases.would_do(row, through=setting.repair_through if setting else "", now=now)
    decisions = AutomaticDecision.objects.filter(automatic__pool=row).order_by("-at", "-pk")
    trial = trial_of(setting) if setting else ShadowTrial(None)
    skipped = skipped_rules(setting) if setting else {}
    context: dict[str, Any] = {
        "pool": row, "setting": setting, "mode": mode.value, "status": automatic.status_of(setting, row, now=now),
        "modes": [each for each in Mode if each in MODE_MOVES[mode]], "trial": trial,
        "accepted": acceptance_of(setting) if setting else None, "trial_days": TRIAL.days,
        "is_trial_short": bool(trial.why_too_short("", Mode.ACT, now=now)),
        "is_open": setting is not None and setting.breaker == BreakerState.OPEN,
        "decisions": [(each, TITLES.get(each.trigger, each.trigger)) for each in with_judgement(decisions)[:SHOWN]],
        "would": would[:SHOWN], "would_act": sum(not each.act.reason for each in would),
        "would_block": sum(bool(each.act.reason) for each in would),
        "would_drain": sum(each.is_drained for each in would), "would_repair": sum(bool(each.repair) for each in would),
        "other": automatic.other_quarantine(row.cluster),
        "machines": automatic_cases.machines_of(row), "is_acting": mode == Mode.ACT,
        "through": automatic_cases.MACHINES.get(setting.repair_through) if setting else None,
        "numbers": automatic.numbers_of(setting, now=now).sentence if setting else "",
        "why_no_mode": why_not(request.user, Permission.ADMINISTER, cluster_id=row.cluster_id, where=where),
        "why_no_reset": why_not(request.user, Permission.RUN, cluster_id=row.cluster_id, where=where),
        "rules": [
            (each, setting.mode_of(each.key) if setting else Mode.OFF, skipped.get(each.key)) for each in TRIGGERS
        ],
        "all_modes": Mode, "rules_version": VERSION,
    }  # fmt: skip
    return render(request, "maintenance/automatic/page.html", context)


@require_POST
def change_mode(request: PersonRequest, pool_id: int) -> HttpResponse:
    return _change(request, pool_id, ModeForm, automatic.change_mode, done="The mode is changed.")


@require_POST
def change_rule(request: PersonRequest, pool_id: int) -> HttpResponse:
    return _change(request, pool_id, RuleForm, automatic.change_rule, done="The rule is changed.")


@require_POST
def set_switches(request: PersonRequest, pool_id: int) -> HttpResponse:
    return _change(request, pool_id, SwitchesForm, automatic_cases.set_switches, done="The switches are set.")


def _change(
    request: PersonRequest, pool_id: int, form: type[forms.Form], change: Callable[..., object], *, done: str
) -> HttpResponse:
    """Changes the settings of a pool as an admin of its cluster asked in a form."""
    row = _load(request, pool_id)
    with report_act(request, REFUSALS, done=done, ends_form=True):
        require(request.user, Permission.ADMINISTER, cluster_id=row.cluster_id, where=f"cluster {row.cluster.name}")
        given = cleaned_input(form(request.POST))
        change(row, actor=request.user.get_username(), now=timezone.now(), **given)
    return redirect("automatic-quarantine", pool_id=pool_id)


@require_POST
def reset_breaker(request: PersonRequest, pool_id: int) -> HttpResponse:
    row = _load(request, pool_id)
    with report_act(request, REFUSALS, done="The breaker is half-open.", ends_form=True):
        require(request.user, Permission.RUN, cluster_id=row.cluster_id, where=f"cluster {row.cluster.name}")
        setting = get_object_or_404(AutomaticQuarantine.objects.select_related("pool"), pool=row)
        reason = reason_of(request)
        automatic.reset_breaker(setting, actor=request.user.get_username(), reason=reason, now=timezone.now())
    return redirect("automatic-quarantine", pool_id=pool_id)


def _load(request: PersonRequest, pool_id: int) -> Pool:
    visible = Pool.objects.visible_to(request.user).select_related("cluster", "automatic_quarantine")
    return get_object_or_404(visible, pk=pool_id)
