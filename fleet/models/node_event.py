from django.db import models


class NodeEventQuerySet(models.QuerySet["NodeEvent"]):
    def driver_changes(self) -> "NodeEventQuerySet":
        """Where another version runs than before: neither a kernel's, nor a driver that is only not named."""
        return self.filter(kind="version", detail__column="driver_version")


class NodeEvent(models.Model):
    """One line of a node's timeline: what was seen to change, or what we did. May be pruned, unlike decisions."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="node_events", db_index=False)
    node_uid = models.CharField(max_length=64)  # not a key to the row: the timeline outlives the node
    node_name = models.CharField(max_length=253)
    at = models.DateTimeField()
    # version, boot, ready, condition, cordon, upgrade, capacity, label, finding, reset, reload, board
    kind = models.CharField(max_length=32)
    sentence = models.CharField(max_length=500)
    detail = models.JSONField(default=dict)

    objects = NodeEventQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["cluster", "node_uid", "-at"])]
        ordering = ["-at", "-pk"]
