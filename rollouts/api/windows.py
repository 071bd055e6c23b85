"""Maintenance windows of clusters and pools. In their scope no node is released outside of them."""

from datetime import timedelta
from typing import Any

import django_filters as filters
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Listing, RowSerializer
from fleet.api.serializers import RefSerializer
from people.rights import require_somewhere
from rollouts.api.freezes import BoundPlanSerializer, FreezeEdge, LiftRequest
from rollouts.api.serializers import KEY_MOST
from rollouts.commands.maintenance_windows import (
    MAY,
    WindowPreview,
    make_window,
    preview_window,
    remove_window,
    window_scope,
)
from rollouts.models import MaintenanceWindow
from rollouts.windows import Interval, first_day, union
from rollouts.windows.rules import LONGEST as LONGEST_RULE
from rollouts.windows.schedule import LONGEST, LONGEST_ZONE, SHORTEST


@extend_schema_field({"type": "string", "pattern": r"^([01]\d|2[0-3]):[0-5]\d$", "example": "02:00"})
class LocalTime(serializers.TimeField):
    """A time to the minute without offset; OpenAPI's format `time` would require one (RFC 3339, full-time)."""

    def __init__(self, **given: Any) -> None:
        super().__init__(format="%H:%M", input_formats=["%H:%M"], **given)


class IntervalSerializer(serializers.Serializer):
    opens_at = serializers.DateTimeField()
    closes_at = serializers.DateTimeField()


class MaintenanceWindowSerializer(RowSerializer):
    cluster = RefSerializer()
    pool = RefSerializer(allow_null=True, help_text="The pool. Null: the whole cluster.")
    opens_at = LocalTime()
    next = serializers.SerializerMethodField(
        help_text="The open interval, or else the next interval. Null: no interval follows."
    )

    class Meta:
        model = MaintenanceWindow
        fields = (
            "id", "cluster", "pool", "rule", "first_day", "opens_at", "zone", "duration_s", "reason", "by", "at",
            "next",
        )  # fmt: skip

    @extend_schema_field(IntervalSerializer(allow_null=True))
    def get_next(self, window: MaintenanceWindow) -> dict[str, Any] | None:
        following = next(union([window.schedule], after=timezone.now()), None)
        return dict(IntervalSerializer(following._asdict()).data) if following else None


class WindowRequest(Asked):
    cluster = serializers.IntegerField(min_value=1, max_value=KEY_MOST, required=False, help_text="Id of the cluster.")
    pool = serializers.IntegerField(
        min_value=1, max_value=KEY_MOST, allow_null=True, required=False, help_text="Pool id. Null: the whole cluster."
    )
    rule = serializers.CharField(
        max_length=LONGEST_RULE,
        help_text="RRULE of RFC 5545, such as FREQ=WEEKLY;BYDAY=SA,SU. FREQ is DAILY, WEEKLY, MONTHLY or YEARLY. "
        "Other parts: INTERVAL, COUNT, UNTIL, BYDAY, BYMONTHDAY, BYMONTH, BYSETPOS, WKST.",
    )
    first_day = serializers.DateField(
        required=False,
        help_text=(
            "DTSTART: INTERVAL and COUNT count from this day. Default: the first day with an interval "
            "that has not ended."
        ),
    )
    opens_at = LocalTime(help_text="Local time of its time zone, such as 02:00.")
    zone = serializers.CharField(max_length=LONGEST_ZONE, help_text="Time zone, such as Europe/Berlin.")
    duration_s = serializers.IntegerField(
        min_value=int(SHORTEST.total_seconds()), max_value=int(LONGEST.total_seconds()), help_text="In elapsed time."
    )
    reason = serializers.CharField(
        max_length=1000, allow_blank=True, required=False, default="", help_text="The purpose."
    )


class WindowPreviewSerializer(serializers.Serializer):
    """The effect of a window now, together with other windows of its scope."""

    opens = IntervalSerializer(
        many=True,
        help_text=(
            "The next intervals, including an open interval. For a pool: only the times when the "
            "cluster's windows are open too."
        ),
    )
    is_open = serializers.BooleanField()
    bound = BoundPlanSerializer(many=True, help_text="Plans that would wait. Empty if the window is open now.")


class WindowFilters(filters.FilterSet):
    cluster = filters.CharFilter(field_name="cluster__name", max_length=63, label="Name of the cluster.")


class WindowEdge(FreezeEdge):
    def window(self, window_id: int) -> MaintenanceWindow:
        return self.load(MaintenanceWindow.objects.visible_to(self.user).select_related("cluster", "pool"), window_id)

    def written(self) -> MaintenanceWindow:
        """Returns the window of the body, in a scope where the caller may create one."""
        require_somewhere(self.user, MAY)
        asked = self.read(WindowRequest)
        where = self.where(asked)
        if where.cluster is None:
            raise serializers.ValidationError(
                {"cluster": "Name a cluster or a pool. The fleet as a whole has no windows."}
            )
        where.require(self.user, MAY)
        now = timezone.now()
        opens_at, lasts = asked["opens_at"].replace(second=0, microsecond=0, tzinfo=None), asked["duration_s"]
        begins_on = first_day(opens_at, asked["zone"], timedelta(seconds=lasts), now=now)
        given = {"first_day": begins_on, **asked, "opens_at": opens_at}
        return MaintenanceWindow(cluster=where.cluster, pool=where.pool, by=self.user.username, at=now, **given)


class WindowList(WindowEdge, Listing):
    serializer_class = MaintenanceWindowSerializer
    filterset_class = WindowFilters
    queryset = MaintenanceWindow.objects.none()

    def get_queryset(self) -> QuerySet[MaintenanceWindow]:
        return MaintenanceWindow.objects.visible_to(self.user).select_related("cluster", "pool")

    @extend_schema(request=WindowRequest, responses={201: MaintenanceWindowSerializer})
    def post(self, request) -> Response:
        """Creates a window. From now on no node in its scope is released outside of windows.

        Rollbacks are not bound.
        """
        window = make_window(self.written(), now=timezone.now())
        return Response(MaintenanceWindowSerializer(window).data, status=201)


class WindowDetail(WindowEdge):
    @extend_schema(responses=MaintenanceWindowSerializer)
    def get(self, request, window_id: int) -> Response:
        return Response(MaintenanceWindowSerializer(self.window(window_id)).data)


class WindowRemovals(WindowEdge):
    @extend_schema(request=LiftRequest, responses={204: None})
    def post(self, request, window_id: int) -> Response:
        """Removes a window. Without any window every hour is open again."""
        window = self.window(window_id)
        window_scope(window).require(self.user, MAY)
        remove_window(window, actor=self.user.username, now=timezone.now(), **self.read(LiftRequest))
        return Response(status=204)


class WindowPreviews(WindowEdge):
    """Previews a window. Changes nothing."""

    @extend_schema(request=WindowRequest, responses=WindowPreviewSerializer)
    def post(self, request) -> Response:
        shown: WindowPreview = preview_window(self.written(), user=self.user, now=timezone.now())
        opens: list[Interval] = shown.opens
        return Response(
            WindowPreviewSerializer(
                {"opens": [each._asdict() for each in opens], "is_open": shown.is_open, "bound": shown.bound}
            ).data
        )
