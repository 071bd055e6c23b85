"""The pool form: create, change or delete, each after a preview of the nodes."""

from copy import copy
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from edges.concurrent_edits import LENGTH
from edges.fields import DecimalAmount, WholeNumber
from edges.requests import PersonRequest
from edges.transition_errors import LostRace
from fleet.models import Cluster, Node, Pool
from fleet.models.pool import (
    CLASS_PLACEMENTS,
    MOST_WORSE_PERCENT,
    ClassPlacement,
    PlacementPolicy,
    PoolApproval,
    WorkloadClass,
)
from fleet.pools.approval_rules import ProductionAsks
from fleet.pools.changes import (
    WRITTEN,
    PoolGone,
    PoolInUse,
    PoolTaken,
    change_pool,
    create_pool,
    delete_pool,
    going_with,
    in_use,
    mark_of,
)
from fleet.pools.membership import MembershipPreview, preview
from fleet.segments.selector_offers import PoolOffer, offer
from fleet.web.filters import read_choice
from fleet.web.pools_page import may_change
from people.models import RoleBinding
from people.models.user import ScopeKind
from people.rights import NotAllowed, Permission, require, why_not
from wording.numbers import count

GONE = "The pool no longer exists, or you may not see it. Choose a cluster and save it as a new pool."
APPROVALS = [("as-cluster", "as the cluster"), ("required", "required"), ("none", "none")]

PLACEMENTS = [("none", "no policy"), ("pack", "pack on few nodes"), ("spread", "spread over a node label")]
CLASS_CHOICES = [("as-pool", "as the pool"), *PLACEMENTS]


class PoolForm(forms.ModelForm):
    max_unavailable = WholeNumber(min_value=1, max_value=100_000, initial=1)
    workload_class = forms.ChoiceField(choices=WorkloadClass.choices, initial=WorkloadClass.MIXED)
    approval = forms.ChoiceField(choices=APPROVALS, initial=PoolApproval.AS_CLUSTER, required=False)
    price_per_gpu_hour = DecimalAmount(max_digits=10, decimal_places=4, min_value=0, required=False)

    placement_policy = forms.ChoiceField(choices=PLACEMENTS, initial=PlacementPolicy.NONE, required=False)
    training_placement = forms.ChoiceField(choices=CLASS_CHOICES, initial=ClassPlacement.AS_POOL, required=False)
    inference_placement = forms.ChoiceField(choices=CLASS_CHOICES, initial=ClassPlacement.AS_POOL, required=False)
    development_placement = forms.ChoiceField(choices=CLASS_CHOICES, initial=ClassPlacement.AS_POOL, required=False)

    test_worse_percent = WholeNumber(min_value=1, max_value=MOST_WORSE_PERCENT, required=False)

    class Meta:
        model = Pool
        fields = WRITTEN
        error_messages = {
            "name": {"invalid": "Letters, digits, - and _ only."},
            "selector": {"required": "Without a selector a pool would have every node of its cluster."},
        }

    def clean_approval(self) -> str:
        return self.cleaned_data["approval"] or PoolApproval.AS_CLUSTER

    def clean_placement_policy(self) -> str:
        return self.cleaned_data["placement_policy"] or PlacementPolicy.NONE

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        return cleaned | {name: cleaned.get(name) or ClassPlacement.AS_POOL for name in CLASS_PLACEMENTS.values()}

    def clean_selector(self) -> str:
        """Joins the selector into one line. Blanks or commas alone count as empty."""
        if not (text := " ".join(self.cleaned_data["selector"].split()).strip(" ,")):
            raise ValidationError("Without a selector a pool would have every node of its cluster.")
        return text


def new_pool(request: PersonRequest) -> HttpResponse:
    clusters = may_change(request, Cluster.objects.visible_to(request.user))
    begun = _initial_offer(request)
    asked = request.POST.get("in") or request.GET.get("in") or str(begun.cluster.pk if begun.cluster else "")
    cluster = next((each for each in clusters if str(each.pk) == asked), clusters[0] if len(clusters) == 1 else None)
    refusal = _why_no_cluster(request, clusters)
    context: dict[str, Any] = {"clusters": clusters, "cluster": cluster, "begun": begun, "why_not": refusal}
    if request.method != "POST":
        name, selector = request.GET.get("name", begun.name), request.GET.get("selector", begun.selector)
        return _form(request, PoolForm(initial={"name": name[:63], "selector": selector[:1000]}), **context)
    form = PoolForm(request.POST)
    if cluster is None:
        form.add_error(None, refusal or "Choose the cluster of the pool's nodes.")
        return _form(request, form, status=403 if refusal else 400, **context)
    return _save(request, form, Pool(cluster=cluster), context)


def edit(request: PersonRequest, pool_id: int) -> HttpResponse:
    is_written = any(request.POST.get(name) for name in WRITTEN)
    if is_written and not Pool.objects.visible_to(request.user).filter(pk=pool_id).exists():
        return _offer_as_new_pool(request, GONE)
    pool = _pool(request, pool_id)
    refusal = _refusal(request, pool)
    context: dict[str, Any] = {"pool": pool, "cluster": pool.cluster, "name_was": pool.name, "why_not": refusal}
    context |= {"was": request.POST.get("was", "")[:LENGTH] if request.method == "POST" else mark_of(pool)}
    if request.method != "POST":
        return _form(request, PoolForm(instance=pool), **context)
    form = PoolForm(request.POST, instance=copy(pool))
    if refusal:
        form.add_error(None, refusal)
        return _form(request, form, status=403, **context)
    return _save(request, form, pool, context)


def delete(request: PersonRequest, pool_id: int) -> HttpResponse:
    """Shows what is deleted with the pool, then deletes it."""
    pool = _pool(request, pool_id)
    shown, refusal = preview(pool.cluster, None, pool=pool), _refusal(request, pool)
    roles = RoleBinding.objects.filter(scope=ScopeKind.POOL, scope_id=pool.pk).select_related("user")
    context = {
        "pool": pool,
        "preview": shown,
        "may_see_roles": not refusal,
        "roles": roles if not refusal else (),
        "going": going_with(pool, now=timezone.now()) if not refusal else (),
        "why_not": refusal or in_use(pool),
    }
    if request.method != "POST":
        return render(request, "fleet/pool/delete.html", context)
    if context["why_not"]:
        return render(request, "fleet/pool/delete.html", context, status=403 if refusal else 409)
    if request.POST.get("seen") != shown.fingerprint:
        messages.error(
            request, "The nodes that leave differ from the preview. Nothing was deleted. Read the preview again."
        )
        return render(request, "fleet/pool/delete.html", context, status=409)
    try:
        delete_pool(pool, actor=request.user.username, now=timezone.now())
    except (PoolGone, PoolInUse) as refusal:
        return render(request, "fleet/pool/delete.html", {**context, "why_not": str(refusal)}, status=409)
    messages.success(request, f"Pool {pool.name} of {pool.cluster.name} is deleted.")
    return redirect("pools")


def _save(request: PersonRequest, form: PoolForm, pool: Pool, context: dict[str, Any]) -> HttpResponse:
    """Shows a preview; saves when the preview was shown unchanged."""
    if not form.is_valid():
        return _form(request, form, status=400, **context)
    fields = form.cleaned_data
    shown = preview(pool.cluster, fields["selector"], pool=pool if pool.pk else None)
    if request.POST.get("seen") != shown.fingerprint:
        is_stale = bool(request.POST.get("seen"))
        return _form(request, form, preview=shown, is_stale=is_stale, status=409 if is_stale else 200, **context)
    actor, now = request.user.username, timezone.now()
    try:
        require(request.user, Permission.ADMINISTER, cluster_id=pool.cluster_id, where=f"cluster {pool.cluster.name}")
        if pool.pk:
            saved = change_pool(pool, actor=actor, now=now, was=context["was"], **fields)
        else:
            saved = create_pool(cluster=pool.cluster, actor=actor, now=now, **fields)
    except PoolTaken as refusal:
        form.add_error("name", str(refusal))
        return _form(request, form, preview=shown, status=409, **context)
    except ProductionAsks as refusal:
        form.add_error("approval", str(refusal))
        return _form(request, form, preview=shown, status=409, **context)
    except LostRace as refusal:
        by_now = Pool.objects.filter(pk=pool.pk).first()
        if by_now is None:
            return _offer_as_new_pool(request, GONE)
        form.add_error(None, str(refusal))
        return _form(request, form, preview=shown, status=409, **context | {"was": mark_of(by_now)})
    except PoolGone as refusal:
        return _offer_as_new_pool(request, f"{refusal} Choose a cluster and save it as a new pool.")
    except NotAllowed as refusal:
        form.add_error(None, str(refusal))
        return _form(request, form, status=403, **context)
    messages.success(request, f"Pool {saved.name} of {saved.cluster.name} has {count(shown.nodes, 'node')}.")
    return redirect("pool", pool_id=saved.pk)


def _offer_as_new_pool(request: PersonRequest, refusal: str) -> HttpResponse:
    """Offers the input of a removed pool as a new pool. The form has no cluster."""
    clusters = may_change(request, Cluster.objects.visible_to(request.user))
    if not clusters:
        raise Http404
    form = PoolForm(request.POST)
    form.add_error(None, refusal)
    cluster = clusters[0] if len(clusters) == 1 else None
    return _form(request, form, status=409, clusters=clusters, cluster=cluster, is_another=True)


def _form(
    request: PersonRequest,
    form: PoolForm,
    *,
    status: int = 200,
    preview: MembershipPreview | None = None,
    **context: Any,
) -> HttpResponse:
    context = {"form": form, "preview": preview, **context}
    return render(request, "fleet/pool/form.html", context, status=status)


def _initial_offer(request: PersonRequest) -> PoolOffer:
    """Starts from the choice on the segments page."""
    choice = read_choice(request.GET)
    return offer(Node.objects.visible_to(request.user).with_gpus(), choice) if choice else PoolOffer()


def _pool(request: PersonRequest, pool_id: int) -> Pool:
    return get_object_or_404(Pool.objects.visible_to(request.user).select_related("cluster"), pk=pool_id)


def _refusal(request: PersonRequest, pool: Pool) -> str:
    return why_not(
        request.user, Permission.ADMINISTER, cluster_id=pool.cluster_id, where=f"cluster {pool.cluster.name}"
    )


def _why_no_cluster(request: PersonRequest, clusters: list[Cluster]) -> str:
    return "" if clusters else why_not(request.user, Permission.ADMINISTER, where="a cluster")
