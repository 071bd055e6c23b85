"""Commands of the cluster page: the calls of REST, then the page again."""

from collections.abc import Callable

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.fields import Reason
from edges.kept_input import SAY_WHY, BadForm, cleaned_input, kept_if_refused
from edges.requests import PersonRequest, report_act
from fleet.clusters import acceptance
from fleet.clusters.acceptance import CannotAccept
from fleet.models import ApprovalRule, Cluster
from fleet.pools.approval_rules import ProductionAsks, set_approval
from people.rights import NotAllowed, Permission, require

REFUSALS = (BadForm, CannotAccept, NotAllowed, ProductionAsks)
WRITTEN = ("approval", "reason")
WHICH = f"Choose {' or '.join(ApprovalRule.values)}."


class AcceptForm(forms.Form):
    uid = forms.CharField(required=False, max_length=64)
    reason = Reason(error_messages={"required": SAY_WHY})


class ApprovalForm(forms.Form):
    approval = forms.ChoiceField(
        choices=ApprovalRule.choices, error_messages={"required": WHICH, "invalid_choice": WHICH}
    )
    reason = Reason(error_messages={"required": SAY_WHY})


@require_POST
def accept(request: PersonRequest, cluster_id: int) -> HttpResponse:
    """Accepts the cluster at this address as the same one, rebuilt."""
    return _run(request, cluster_id, Permission.ADMINISTER, _accept, verb="accept")


@require_POST
def approval(request: PersonRequest, cluster_id: int) -> HttpResponse:
    """Sets whether plans may change the cluster's nodes without approval."""
    return _run(request, cluster_id, Permission.ADMINISTER, _set_approval, verb="approval")


@require_POST
def try_now(request: PersonRequest, cluster_id: int) -> HttpResponse:
    """Retries a silent cluster at once."""
    return _run(request, cluster_id, Permission.STOP, _try_now)


def about(cluster_id: int) -> str:
    """Returns the key under which refused input is stored."""
    return f"cluster-{cluster_id}"


def _run(
    request: PersonRequest,
    cluster_id: int,
    permission: Permission,
    act: Callable[[PersonRequest, Cluster], str],
    *,
    verb: str = "",
) -> HttpResponse:
    """Runs a command. `act` returns the success sentence; `verb` is the form that gets refused input back."""
    row = get_object_or_404(Cluster.objects.visible_to(request.user).select_related("observer"), pk=cluster_id)
    kept = kept_if_refused(request, about(row.pk), *WRITTEN, refusals=REFUSALS, verb=verb)
    with report_act(request, REFUSALS), kept:
        require(request.user, permission, cluster_id=row.pk, where=f"cluster {row.name}")
        messages.success(request, act(request, row))
    return redirect("cluster", cluster_id=row.pk)


def _accept(request: PersonRequest, row: Cluster) -> str:
    acceptance.accept(
        row, **cleaned_input(AcceptForm(request.POST)), actor=request.user.get_username(), now=timezone.now()
    )
    return f"{row.name} is now the cluster {row.uid}. A worker lists its objects again."


def _set_approval(request: PersonRequest, row: Cluster) -> str:
    given = cleaned_input(ApprovalForm(request.POST))
    actor, now = request.user.get_username(), timezone.now()
    set_approval(row, given["approval"], actor=actor, reason=given["reason"], now=now)
    return f"{row.name} now has “approval: {row.approval}”."


def _try_now(_: PersonRequest, row: Cluster) -> str:
    acceptance.try_now(row)
    return f"A worker contacts {row.name} as soon as it has a free thread."
