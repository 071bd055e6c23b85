"""One rule: its shadow mode with its shadow findings, and the limits of pools. It makes the same calls as REST."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.digits import whole_number
from edges.fields import WholeNumber
from edges.kept_input import BadForm, WhyForm, cleaned_input, reason_of
from edges.requests import PersonRequest, reason, report_act
from edges.transition_errors import LostRace
from fleet.models import Pool
from health.backtest.backtest import why_not as why_not_replayed
from health.inbox import shadow_mode
from health.inbox.pool_limits import CHANGED, LimitsAsked, put_limits, remove_limits, require_limit, why_not_limit
from health.inbox.refusals import BadAct, FindingRefusal
from health.inbox.rulebook import on_page
from health.models import Finding, PoolLimits, RuleShadow
from people.rights import NotAllowed, Permission, require, why_not

SHOWN = 50  # findings of a trial, the newest
POOL_GONE = "The chosen pool no longer exists, or you may not see it. Choose another pool and save again."
REFUSALS = (BadForm, FindingRefusal, LostRace, NotAllowed)


class LimitsForm(forms.Form):
    pool = forms.IntegerField(min_value=1)
    version = forms.IntegerField(min_value=1, required=False)
    warn = forms.FloatField()
    critical = forms.FloatField(required=False)
    warn_after_s = forms.IntegerField(min_value=0, max_value=86_400)
    critical_after_s = forms.IntegerField(min_value=0, max_value=86_400, required=False)
    reason = forms.CharField(max_length=1000)


class UnlimitForm(WhyForm):
    """`version` is that of the displayed limits. Without it nothing is removed."""

    version = WholeNumber(required=False, error_messages={"invalid": CHANGED})


def rule(request: PersonRequest, rule: str) -> HttpResponse:
    key = whole_number(request.GET.get("pool", "")[:18])
    rows = {row.pool_id: row for row in _limits(request).filter(rule=rule)}
    return _page(request, rule, form=_form(rows.get(key or 0), key))


@require_POST
def shadow(request: PersonRequest, rule: str) -> HttpResponse:
    with report_act(request, REFUSALS, done="The rule is in shadow mode: it runs and notifies nobody.", ends_form=True):
        require(request.user, Permission.ADMINISTER)
        shadow_mode.begin(rule, actor=request.user.get_username(), reason=reason_of(request), now=timezone.now())
    return redirect("rule", rule=rule)


@require_POST
def end_shadow(request: PersonRequest, shadow_id: int) -> HttpResponse:
    row = get_object_or_404(RuleShadow, pk=shadow_id)
    with report_act(request, REFUSALS, done="Shadow mode has ended: the rule notifies again.", ends_form=True):
        require(request.user, Permission.ADMINISTER)
        shadow_mode.end_shadow_mode(
            row, actor=request.user.get_username(), reason=reason_of(request), now=timezone.now()
        )
    return redirect("rule", rule=row.rule)


@require_POST
def limit(request: PersonRequest, rule: str) -> HttpResponse:
    form = LimitsForm(request.POST)
    if not form.is_valid():
        return _page(request, rule, form=form, status=400)
    given = form.cleaned_data
    pool = Pool.objects.visible_to(request.user).select_related("cluster").filter(pk=given["pool"]).first()
    if pool is None:
        form = LimitsForm({**request.POST.dict(), "version": ""})  # any other pool has none yet
        form.add_error(None, POOL_GONE)
        return _page(request, rule, form=form, status=409)
    asked = LimitsAsked(given["warn"], given["critical"], given["warn_after_s"], given["critical_after_s"] or 0)
    done = f"These limits apply in {pool.cluster.name}/{pool.name} from the next evaluation on."
    try:
        with report_act(request, (NotAllowed,), done=done, ends_form=True):
            require_limit(request.user, pool)
            put_limits(
                pool, rule, asked, version=given["version"], actor=request.user.get_username(),
                reason=given["reason"], now=timezone.now(),
            )  # fmt: skip
    except BadAct as wrong:
        for problem in wrong.problems:
            form.add_error(problem["field"] if problem["field"] in form.fields else None, problem["sentence"])
        return _page(request, rule, form=form, status=400)
    except LostRace as refusal:
        # The submitted text, below the limits as they are now.
        row = _limits(request).filter(rule=rule, pool=pool).first()
        form = LimitsForm({**request.POST.dict(), "version": row.version if row else ""})
        form.add_error(None, str(refusal))
        return _page(request, rule, form=form, status=409)
    return redirect("rule", rule=rule)


@require_POST
def unlimit(request: PersonRequest, limits_id: int) -> HttpResponse:
    row = get_object_or_404(_limits(request), pk=limits_id)
    where = f"{row.pool.cluster.name}/{row.pool.name}"
    done = f"The rule’s own limits apply in {where} again."
    try:
        with report_act(request, (BadForm, BadAct, NotAllowed), done=done, ends_form=True):
            require_limit(request.user, row.pool)
            asked = cleaned_input(UnlimitForm(request.POST))
            del asked["key"]
            remove_limits(row, **asked, actor=request.user.get_username(), now=timezone.now())
    except LostRace as refusal:
        messages.error(request, str(refusal))
        by_now = _limits(request).filter(pk=row.pk).first()
        return _page(request, row.rule, form=_form(by_now, row.pool_id), removed_reason=reason(request), status=409)
    return redirect("rule", rule=row.rule)


def _page(
    request: PersonRequest, rule: str, *, form: LimitsForm, removed_reason: str = "", status: int = 200
) -> HttpResponse:
    """Renders the page. `removed_reason` is the reason entered for a refused removal of the form's limits."""
    row = next((each for each in on_page(request.user, now=timezone.now()) if each.entry.key == rule), None)
    if row is None:
        raise Http404
    pools = Pool.objects.visible_to(request.user).select_related("cluster").order_by("cluster__name", "name")
    limits = [(each, why_not_limit(request.user, each.pool)) for each in _limits(request).filter(rule=rule)]
    theirs = [pool for pool in pools if not why_not_limit(request.user, pool)] if row.limits else []
    never = "" if row.shadow else shadow_mode.why_never(rule)  # a trial that there is can be ended
    may_not = why_not(request.user, Permission.ADMINISTER) or never
    context: dict[str, Any] = {
        "row": row,
        "may_not_shadow": may_not,
        "no_replay": why_not_replayed(rule),
        "tried": _shadow_findings(request, rule),
        "most": SHOWN,
        "limits": limits,
        "pools": _choices(theirs, form, limited={each.pool_id for each, _ in limits}),
        "may_limit": bool(theirs),
        "form": form,
        "removed_reason": removed_reason,
        "has_pools": pools.exists(),
    }
    return render(request, "health/rules/rule.html", context, status=status)


def _shadow_findings(request: PersonRequest, rule: str) -> list[Finding]:
    """Returns shadow findings, newest first, including resolved ones."""
    rows = Finding.objects.visible_to(request.user).filter(rule=rule, is_shadow=True, opened_at__isnull=False)
    return list(rows.select_related("cluster").order_by("-opened_at", "-pk")[:SHOWN])


def _choices(pools: list[Pool], form: LimitsForm, *, limited: set[int]) -> list[Pool]:
    """Returns the pools that the form offers: the one being changed, or those without limits."""
    if form["version"].value():
        return [pool for pool in pools if str(pool.pk) == str(form["pool"].value())]
    return [pool for pool in pools if pool.pk not in limited]


def _limits(request: PersonRequest) -> Any:
    return PoolLimits.objects.visible_to(request.user).select_related("pool__cluster")


def _form(row: PoolLimits | None, pool: int | None) -> LimitsForm:
    if row is None:
        return LimitsForm(initial={"pool": pool} if pool else None)
    names = ("version", "warn", "critical", "warn_after_s", "critical_after_s")
    return LimitsForm(initial={"pool": row.pool_id, **{name: getattr(row, name) for name in names}})


def rules(request: PersonRequest) -> HttpResponse:
    return render(request, "health/rules/page.html", {"rules": on_page(request.user, now=timezone.now())})
