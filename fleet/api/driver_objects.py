from django.utils import timezone
from rest_framework import serializers

from edges.rest import Listing, RowSerializer
from fleet.api.serializers import RefSerializer
from fleet.models import DriverObject
from fleet.queries import DriverObjectRow, see_driver_objects


class DriverObjectSerializer(RowSerializer):
    row = "driver_object"
    cluster = RefSerializer()
    version = serializers.SerializerMethodField(help_text="Driver version. Null: the operator's default version.")
    nodes = serializers.IntegerField(
        allow_null=True, help_text="GPU nodes whose driver this object controls. Null: nodes were never read."
    )
    seen_at = serializers.DateTimeField(allow_null=True)
    freshness = serializers.CharField(
        help_text="Freshness of this kind in the cluster. See `freshness` of the cluster."
    )

    class Meta:
        model = DriverObject
        fields = (
            "id", "cluster", "kind", "name", "version", "repository", "image", "use_precompiled", "node_selector",
            "is_fallback", "upgrade_policy", "state", "message", "operator_version", "owned_by", "nodes", "changed_at",
            "seen_at", "freshness",
        )  # fmt: skip

    def get_version(self, driver_object: DriverObject) -> str | None:
        return driver_object.version or None


class DriverObjectList(Listing):
    """Lists the driver objects that a plan can target."""

    serializer_class = DriverObjectSerializer
    queryset = DriverObject.objects.none()

    def get_queryset(self):
        visible = DriverObject.objects.visible_to(self.user).select_related("cluster")
        return visible.order_by("cluster__name", "kind", "name")

    def see(self, rows) -> list[DriverObjectRow]:
        return see_driver_objects(rows, now=timezone.now())
