"""The service level of a pool, by which its placement is judged."""

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.response import Response

from capacity.models import PoolServiceLevel
from capacity.placements.service_level_changes import (
    FIELDS,
    define,
    mark_of,
    may_choose,
    preview_service_level,
    put_service_level,
    remove_service_level,
)
from edges.rest import Asked, Edge, RowSerializer
from fleet.models import Pool
from health.telemetry.service_levels.expression import LONGEST
from health.telemetry.service_levels.indicators import INDICATORS


class PoolServiceLevelSerializer(RowSerializer):
    mark = serializers.SerializerMethodField(help_text="Also the ETag. It changes with each change.")

    class Meta:
        model = PoolServiceLevel
        fields = (*FIELDS, "by", "at", "mark")

    def get_mark(self, row: PoolServiceLevel) -> str:
        return mark_of(row)


class ServiceLevelAsked(Asked):
    """A ready-made indicator, or an expression of one's own."""

    indicator = serializers.ChoiceField(["", *INDICATORS], default="", help_text="Blank: an expression of your own.")
    expression = serializers.CharField(
        required=False, max_length=LONGEST, default="", allow_blank=True,
        help_text="PromQL of one number, with {{pods}} or {{nodes}} in each selector and [{{window}}] as each range.",
    )  # fmt: skip
    samples = serializers.CharField(
        required=False, max_length=LONGEST, default="", allow_blank=True,
        help_text="PromQL that counts what the value rests on, such as requests. Blank: the scrapes count.",
    )  # fmt: skip
    unit = serializers.CharField(required=False, max_length=16, default="", allow_blank=True)
    is_higher_better = serializers.BooleanField(required=False, default=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        try:
            define(**attrs)
        except ValueError as problem:
            raise serializers.ValidationError(str(problem)) from problem
        return attrs


class ServiceLevelPreviewSerializer(serializers.Serializer):
    value = serializers.FloatField(source="measured.value", default=None, allow_null=True)
    samples = serializers.FloatField(source="measured.samples", default=None, allow_null=True)
    trouble = serializers.CharField(help_text="Why there is no value. Blank: there is one.")


class _OfPool(Edge):
    def load_pool(self, pool_id: int, *, to_change: bool = False) -> Pool:
        pool = self.load(Pool.objects.visible_to(self.user).select_related("cluster"), pool_id)
        if to_change and (refusal := may_choose(self.user, pool)):
            raise PermissionDenied(refusal)
        return pool


class PoolServiceLevelDetail(_OfPool):
    mark_field = "mark"

    @extend_schema(responses=PoolServiceLevelSerializer)
    def get(self, request, pool_id: int) -> Response:
        """Returns the service level. 404: the pool has none."""
        return Response(PoolServiceLevelSerializer(self.load_level(self.load_pool(pool_id))).data)

    @extend_schema(request=ServiceLevelAsked, responses=PoolServiceLevelSerializer)
    def put(self, request, pool_id: int) -> Response:
        """Chooses the service level. It is measured from the next hour on; hours of another one are deleted."""
        pool = self.load_pool(pool_id, to_change=True)
        asked = dict(self.read(ServiceLevelAsked))
        row = put_service_level(pool, actor=self.user.get_username(), now=timezone.now(), was=self.was(), **asked)
        return Response(PoolServiceLevelSerializer(row).data)

    @extend_schema(responses={204: None})
    def delete(self, request, pool_id: int) -> Response:
        pool = self.load_pool(pool_id, to_change=True)
        self.load_level(pool)
        remove_service_level(pool, actor=self.user.get_username(), now=timezone.now(), was=self.was())
        return Response(status=204)

    def load_level(self, pool: Pool) -> PoolServiceLevel:
        return get_object_or_404(PoolServiceLevel, pool=pool)


class PoolServiceLevelPreview(_OfPool):
    @extend_schema(request=ServiceLevelAsked, responses=ServiceLevelPreviewSerializer)
    def post(self, request, pool_id: int) -> Response:
        """Asks the Prometheus of the cluster for the last hour of all nodes of the pool. Changes nothing."""
        pool = self.load_pool(pool_id, to_change=True)
        definition = define(**dict(self.read(ServiceLevelAsked)))
        return Response(ServiceLevelPreviewSerializer(preview_service_level(pool, definition, now=timezone.now())).data)
