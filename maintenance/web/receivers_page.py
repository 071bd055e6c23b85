"""The page of the receivers that get signed repair requests."""

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from edges.fields import WholeNumber
from edges.requests import PersonRequest, report_act
from fleet.models import Cluster, Pool
from maintenance.receivers import REPAIR_SECRETS, receivers_of, remove_receiver, set_receiver
from maintenance.refusals import BadReceiver
from people.rights import NotAllowed, Permission, require, scope_of

SHOWN = 200  # receivers, clusters and pools; all are in REST


class ReceiverForm(forms.Form):
    cluster = WholeNumber(min_value=1, max_value=2**53, widget=forms.Select, label="Cluster")
    pool = WholeNumber(min_value=1, max_value=2**53, widget=forms.Select, required=False, label="Pool")
    address = forms.CharField(max_length=300, label="Address", help_text="https address that gets the POST")
    secret_from = forms.CharField(
        max_length=300, label="Signing secret", help_text=f"Its place, never the secret: {REPAIR_SECRETS.places}"
    )
    ca_file = forms.CharField(
        max_length=300, required=False, label="CA", help_text="a file in the folder QUARTERDECK_SECRETS_DIR, or blank"
    )


@require_http_methods(["GET", "HEAD", "POST"])
def receivers(request: PersonRequest) -> HttpResponse:
    """Shows the receivers, and sets one when the form is sent."""
    form, status = ReceiverForm(request.POST if request.method == "POST" else None), 200
    if form.is_bound and form.is_valid():
        given = dict(form.cleaned_data)
        cluster = get_object_or_404(Cluster.objects.visible_to(request.user), pk=given.pop("cluster"))
        key = given.pop("pool")
        pool = get_object_or_404(Pool.objects.visible_to(request.user), pk=key) if key else None
        try:
            require(request.user, Permission.ADMINISTER, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
            set_receiver(cluster, pool, actor=request.user.get_username(), now=timezone.now(), **given)
        except BadReceiver as bad:
            for problem in bad.problems:
                form.add_error(problem["field"], problem["sentence"])
        except NotAllowed as refusal:
            form.add_error(None, str(refusal))
        else:
            messages.success(request, f"Set the receiver of {pool.name if pool else cluster.name}.")
            return redirect("repair-receivers")
    if form.errors:
        status = 400
    scope = scope_of(request.user, Permission.ADMINISTER)
    clusters = [
        row for row in Cluster.objects.visible_to(request.user).order_by("name") if scope.covers_cluster(row.pk)
    ]
    pools = Pool.objects.filter(cluster__in=clusters).order_by("cluster__name", "name").select_related("cluster")
    form.fields["cluster"].widget.choices = [(row.pk, row.name) for row in clusters[:SHOWN]]
    named = [(row.pk, f"{row.cluster.name}: {row.name}") for row in pools[:SHOWN]]
    form.fields["pool"].widget.choices = [("", "all other nodes of the cluster"), *named]
    rows = [(row, scope.covers_cluster(row.cluster_id)) for row in receivers_of(request.user)[:SHOWN]]
    context = {"rows": rows, "form": form, "may_change": bool(clusters)}
    return render(request, "maintenance/receivers.html", context, status=status)


@require_POST
def remove(request: PersonRequest, receiver_id: int) -> HttpResponse:
    row = get_object_or_404(receivers_of(request.user), pk=receiver_id)
    with report_act(request, (NotAllowed,), done="The receiver is removed."):
        require(request.user, Permission.ADMINISTER, cluster_id=row.cluster_id, where=f"cluster {row.cluster.name}")
        remove_receiver(row, actor=request.user.get_username(), now=timezone.now())
    return redirect("repair-receivers")
