"""On which nodes of a cluster each metric is exported."""

from rest_framework import serializers


class NodesCountedSerializer(serializers.Serializer):
    """All nodes with GPUs: each is in one of these numbers."""

    exported = serializers.IntegerField(min_value=0, help_text="On which it is.")
    not_exported = serializers.IntegerField(
        min_value=0, help_text="On which it is not, or whose vendor's exporters never do."
    )
    never_heard = serializers.IntegerField(
        min_value=0, help_text="Of which nothing was heard within a day: it may be exported there."
    )
