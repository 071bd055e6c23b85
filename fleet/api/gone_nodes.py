from rest_framework import serializers

from fleet.api.serializers import RefSerializer


class GoneNodeSerializer(serializers.Serializer):
    """A node that left its cluster. Its timeline remains at `nodes/{node_id}/events`."""

    id = serializers.IntegerField(source="row.node_id", help_text="ID that the node had in its cluster.")
    cluster = RefSerializer(source="row.cluster")
    name = serializers.CharField(source="row.name")
    uid = serializers.CharField(source="row.uid")
    left_at = serializers.DateTimeField(
        source="row.gone_at", help_text="Time at which the node was observed to be gone."
    )
    was = serializers.DictField(
        child=serializers.CharField(allow_null=True), source="row.was", help_text="Earlier values of the node by title."
    )
    again = serializers.IntegerField(
        source="again.pk",
        default=None,
        allow_null=True,
        help_text="ID of the visible node with this name now. Null: no such node.",
    )
