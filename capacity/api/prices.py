"""The prices of GPU-hours, with the days from which they hold."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.response import Response

from capacity.models import GpuPrice
from capacity.usage.pool_prices import price_of_pool
from capacity.usage.price_book import BEGINNING, CAPACITY_TYPES
from capacity.usage.price_changes import BadPrice, may_price, may_price_anything, put_price, remove_price
from edges.rest import Asked, Edge, RowSerializer
from fleet.models import Pool
from fleet.queries import see_pools

MOST = 1000


class GpuPriceSerializer(RowSerializer):
    pool = serializers.CharField(source="pool_name", help_text="`cluster/name`. Blank: the price of a product.")

    class Meta:
        model = GpuPrice
        fields = ("id", "pool", "product", "capacity_type", "currency", "amount", "valid_from", "source", "by", "at")


class PriceAsked(Asked):
    pool_id = serializers.IntegerField(required=False, allow_null=True, default=None)
    product = serializers.CharField(required=False, max_length=253, default="", help_text="As the node's label.")
    capacity_type = serializers.ChoiceField(["", *CAPACITY_TYPES], default="", help_text="Blank: any.")
    currency = serializers.CharField(
        required=False, max_length=3, default="", help_text="Three letters. Blank: your one currency."
    )
    amount = serializers.DecimalField(max_digits=10, decimal_places=4, help_text="Of a GPU-hour; 0 or more.")
    valid_from = serializers.DateField(help_text="UTC day from which it holds, until the next price.")
    source = serializers.CharField(  # type: ignore[assignment]
        required=False, max_length=200, default="", allow_blank=True
    )


class Prices(Edge):
    @extend_schema(responses=GpuPriceSerializer(many=True))
    def get(self, request) -> Response:
        """Returns the prices of products and of pools that you may see, the newest first; at most 1,000."""
        rows = GpuPrice.objects.visible_to(self.user).select_related("pool__cluster")[:MOST]
        return Response(GpuPriceSerializer(rows, many=True).data)

    @extend_schema(request=PriceAsked, responses={201: GpuPriceSerializer})
    def post(self, request) -> Response:
        """Saves a price, in place of one of the same day."""
        if refusal := may_price_anything(self.user):
            raise PermissionDenied(refusal)
        asked = dict(self.read(PriceAsked))
        key = asked.pop("pool_id")
        pool = None if key is None else self.load(Pool.objects.visible_to(self.user).select_related("cluster"), key)
        if refusal := may_price(self.user, pool):
            raise PermissionDenied(refusal)
        try:
            row = put_price(pool=pool, actor=self.user.get_username(), now=timezone.now(), **asked)
        except BadPrice as problem:
            raise serializers.ValidationError({problem.field: str(problem)}) from problem
        return Response(GpuPriceSerializer(row).data, status=201)


class PriceDetail(Edge):
    @extend_schema(responses={204: None})
    def delete(self, request, price_id: int) -> Response:
        """Removes a price. The one before it holds on."""
        row = self.load(GpuPrice.objects.visible_to(self.user).select_related("pool__cluster"), price_id)
        if refusal := may_price(self.user, row.pool):
            raise PermissionDenied(refusal)
        remove_price(row, actor=self.user.get_username(), now=timezone.now())
        return Response(status=204)


class KindPriceSerializer(serializers.Serializer):
    product = serializers.CharField(help_text="Blank: every product of the pool.")
    capacity_type = serializers.CharField(help_text="Of the nodes. Blank: unknown.")
    amount = serializers.DecimalField(max_digits=10, decimal_places=4, allow_null=True, help_text="Null: no price.")
    currency = serializers.CharField(help_text="Blank: the one currency of this installation.")
    valid_from = serializers.DateField(allow_null=True, help_text="Null: from the beginning, or no price.")


class PoolPriceSerializer(serializers.Serializer):
    amount = serializers.DecimalField(
        max_digits=10, decimal_places=4, allow_null=True, help_text="Of a GPU-hour. Null: no price, or several."
    )
    currency = serializers.CharField()
    is_own = serializers.BooleanField(help_text="The pool's own price. False: the prices of its products.")
    gpus = serializers.IntegerField(allow_null=True, help_text="Physical GPUs of the pool. Null: unknown.")
    in_force = KindPriceSerializer(many=True)


class PoolPriceDetail(Edge):
    @extend_schema(responses=PoolPriceSerializer)
    def get(self, request, pool_id: int) -> Response:
        """Returns the price of a GPU-hour of the pool that holds today."""
        pool = self.load(Pool.objects.visible_to(self.user), pool_id)
        now = timezone.now()
        (row,) = see_pools([pool], user=self.user, now=now)
        found = price_of_pool(pool, self.user, row.tally.physical_gpus, day=now.date())
        in_force = [
            {
                "product": kind.product if kind else "",
                "capacity_type": kind.capacity_type if kind else "",
                "amount": booked.price.amount if booked and booked.price else None,
                "currency": booked.price.currency if booked and booked.price else "",
                "valid_from": booked.valid_from if booked and booked.valid_from != BEGINNING else None,
            }
            for kind, booked in found.in_force.items()
        ]
        price = {"amount": found.price and found.price.amount, "currency": found.price.currency if found.price else ""}
        return Response(
            PoolPriceSerializer({**price, "is_own": found.is_own, "gpus": found.gpus, "in_force": in_force}).data
        )
