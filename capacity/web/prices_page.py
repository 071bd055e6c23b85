"""The page "Prices": the price of a GPU-hour of pools and products, and the days from which it holds."""

from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from capacity.models import GpuPrice
from capacity.usage.list_prices import list_prices_of
from capacity.usage.pool_prices import products_of
from capacity.usage.price_book import CAPACITY_TYPES
from capacity.usage.price_changes import BadPrice, may_price, may_price_anything, put_price, remove_price
from edges.fields import Day, DecimalAmount
from edges.requests import PersonRequest
from fleet.models import Pool
from fleet.pools.changes import PoolGone
from people.models import User
from people.rights import Permission, why_not

SHOWN = 500


class PriceForm(forms.Form):
    pool = forms.ModelChoiceField(Pool.objects.none(), required=False, empty_label="every pool of the product")
    product = forms.ChoiceField(required=False)
    capacity_type = forms.ChoiceField(required=False, choices=[("", "any"), *CAPACITY_TYPES.items()])
    amount = DecimalAmount(max_digits=10, decimal_places=4)
    currency = forms.CharField(required=False, max_length=3)
    valid_from = Day()
    source = forms.CharField(required=False, max_length=200)

    def __init__(self, *args: Any, user: User | None = None, **given: Any) -> None:
        super().__init__(*args, **given)
        if user is not None:
            self.fields["pool"].queryset = Pool.objects.visible_to(user).select_related("cluster")  # type: ignore[attr-defined]
            products = [("", "none: a pool's own price"), *((each, each) for each in sorted(products_of(user)))]
            self.fields["product"].choices = products  # type: ignore[attr-defined]


@require_http_methods(["GET", "HEAD", "POST"])
def prices(request: PersonRequest) -> HttpResponse:
    now, user = timezone.now(), request.user
    form = PriceForm(request.POST or None, user=user, initial={"valid_from": f"{now:%Y-%m-%d}"})
    status = 200
    if request.method == "POST":
        status = 400
        if refusal := may_price_anything(user):
            raise PermissionDenied(refusal)
        if form.is_valid():
            if refusal := may_price(user, form.cleaned_data["pool"]):
                raise PermissionDenied(refusal)
            try:
                put_price(actor=user.get_username(), now=now, **form.cleaned_data)
            except BadPrice as problem:
                form.add_error(problem.field, str(problem))
            except PoolGone as gone:
                form.add_error("pool", str(gone))
            else:
                return redirect("prices")
    rows = GpuPrice.objects.visible_to(user).select_related("pool__cluster")
    context = {
        "form": form,
        "rows": [(row, may_price(user, row.pool)) for row in rows[:SHOWN]],
        "offers": [(product, list_prices_of([product])) for product in sorted(products_of(user))],
        "why_not": why_not(user, Permission.ADMINISTER),
        "types": CAPACITY_TYPES,
    }
    return render(request, "capacity/prices/page.html", context, status=status)


@require_POST
def remove(request: PersonRequest, price_id: int) -> HttpResponse:
    row = get_object_or_404(GpuPrice.objects.visible_to(request.user).select_related("pool__cluster"), pk=price_id)
    if refusal := may_price(request.user, row.pool):
        raise PermissionDenied(refusal)
    remove_price(row, actor=request.user.get_username(), now=timezone.now())
    return redirect("prices")
