"""The pool file page: show, paste or upload, compare, then import."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from edges.documents import LARGEST_BYTES, BadDocument, text_of
from edges.requests import PersonRequest
from fleet.models import Cluster
from fleet.pools.approval_rules import ProductionAsks
from fleet.pools.changes import PoolGone, PoolInUse, PoolTaken
from fleet.pools.files import BadPoolFile, OutOfStep, PoolFile, compare, parse_pool_file, take_over, write
from fleet.web.pools_page import may_change
from people.rights import Permission, why_not

CHOOSE = "Choose the cluster that the file is for, one whose pools you may change, or name it in the file."


def pool_file(request: PersonRequest) -> HttpResponse:
    clusters = may_change(request, Cluster.objects.visible_to(request.user))
    asked = request.POST.get("in") or request.GET.get("in") or ""
    cluster = next((each for each in clusters if str(each.pk) == asked), clusters[0] if len(clusters) == 1 else None)
    context: dict[str, Any] = {"clusters": clusters, "cluster": cluster}
    if not clusters:
        return _page(
            request, {**context, "refusal": why_not(request.user, Permission.ADMINISTER, where="a cluster")}, 403
        )
    if request.method != "POST":
        return _page(request, {**context, "text": write(cluster) if cluster else ""}, 200)
    context |= {"prune": bool(request.POST.get("prune"))}
    try:
        context["text"] = _file_text(request)
        file = parse_pool_file(context["text"])
    except BadPoolFile as refusal:
        return _page(request, {**context, "problems": refusal.lines}, 400)
    cluster = _cluster(file, cluster, clusters)
    if cluster is None:
        return _page(request, {**context, "refusal": CHOOSE}, 400)
    return _render_comparison(request, {**context, "cluster": cluster}, cluster, file)


def _render_comparison(
    request: PersonRequest, context: dict[str, Any], cluster: Cluster, file: PoolFile
) -> HttpResponse:
    comparison = compare(cluster, file.entries, prune=context["prune"])
    context["comparison"] = comparison
    seen = request.POST.get("seen", "")
    if not seen:
        return _page(request, context, 200)
    try:
        take_over(comparison, actor=request.user.username, now=timezone.now(), expected=seen)
    except (OutOfStep, PoolGone, PoolInUse, PoolTaken, ProductionAsks) as refusal:
        return _page(request, {**context, "refusal": str(refusal)}, 409)
    said = ", ".join(f"{number} {what}" for what, number in comparison.numbers.items() if number)
    messages.success(request, f"Pools of {cluster.name}: {said}.")
    return redirect("pools")


def _file_text(request: PersonRequest) -> str:
    """Returns the uploaded file, else the field's text."""
    sent = request.FILES.get("file")
    if sent is None:
        return request.POST.get("text", "").replace("\r\n", "\n")
    try:
        return text_of(sent.read(LARGEST_BYTES + 1))
    except BadDocument as refusal:
        raise BadPoolFile(refusal.lines) from refusal


def _cluster(file: PoolFile, chosen: Cluster | None, clusters: list[Cluster]) -> Cluster | None:
    """Returns the file's cluster. None if another cluster was chosen."""
    if not file.cluster:
        return chosen
    return next((each for each in clusters if each.name == file.cluster and chosen in {None, each}), None)


def _page(request: PersonRequest, context: dict[str, Any], status: int) -> HttpResponse:
    return render(request, "fleet/pools/file.html", context, status=status)
