from datetime import datetime
from typing import Any

from django import forms
from django.http import QueryDict

from edges.digits import whole_number
from fleet.models import Cluster, Pool
from people.models import User
from people.rights import Permission, scope_of
from rollouts.commands.fleet_freezes import Where

PlaceChoices = list[tuple[str, str]]  # as the form names it, as a person reads it


def named_scope(user: User, on: str) -> Where | None:
    """Returns the named scope, if this person may see it; None otherwise."""
    if on == "fleet":
        return Where()
    kind, _, written = on.partition("-")
    key = whole_number(written)
    if key is None:
        return None
    if kind == "pool":
        pool = Pool.objects.visible_to(user).filter(pk=key).select_related("cluster").first()
        return Where(pool.cluster, pool) if pool else None
    cluster = Cluster.objects.visible_to(user).filter(pk=key).first() if kind == "cluster" else None
    return Where(cluster) if cluster else None


def places_for(user: User, permission: Permission) -> PlaceChoices:
    """Returns the scopes with this permission, by form value and name. Three queries."""
    there = scope_of(user, permission)
    pools = list(Pool.objects.visible_to(user).select_related("cluster").order_by("cluster__name", "name"))
    found = [("fleet", "the whole fleet")] if there.everywhere else []
    for cluster in Cluster.objects.visible_to(user).order_by("name"):
        if there.covers_cluster(cluster.pk):
            found.append((f"cluster-{cluster.pk}", f"cluster {cluster.name}"))
        found += [
            (f"pool-{pool.pk}", f"pool {cluster.name}/{pool.name}")
            for pool in pools
            if pool.cluster_id == cluster.pk and (there.covers_cluster(cluster.pk) or pool.pk in there.pool_ids)
        ]
    return found


class PlacedForm(forms.Form):
    """A form whose field `on` is one of the permitted scopes."""

    blank: PlaceChoices = []  # options above the places, for a form without a choice

    def __init__(
        self, data: QueryDict | None = None, *, user: User, places: PlaceChoices, now: datetime, **given: Any
    ) -> None:
        super().__init__(data, auto_id="%s", **given)
        self.user, self.places, self.now = user, places, now
        self.fields["on"].widget.choices = [*self.blank, *places]

    def clean_on(self) -> Where:
        where = named_scope(self.user, self.cleaned_data["on"])
        if where is None:
            raise forms.ValidationError(self.fields["on"].error_messages["required"])
        return where
