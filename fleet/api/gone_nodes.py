from rest_framework import serializers

from fleet.api.serializers import RefSerializer


class GoneNodeSerializer(serializers.Serializer):
    """A node that left its cluster. Its timeline remains at `nodes/{node_id}/events`."""

    id = serializers.IntegerField(source="row.node_id", help_text="As it had in its cluster.")
    cluster = RefSerializer(source="row.cluster")
    name = serializers.CharField(source="row.name")
    uid = serializers.CharField(source="row.uid")
    left_at = serializers.DateTimeField(source="row.gone_at", help_text="When it was seen to be gone.")
    was = serializers.DictField(child=serializers.CharField(allow_null=True), source="row.was", help_text="By title.")
    again = serializers.IntegerField(
        source="again.pk", default=None, allow_null=True, help_text="The node that has its name now. Null: none."
    )
