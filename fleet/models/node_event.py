from collections.abc import Collection

from django.db import models
from django.db.models import Q

from fleet.models.visible import Visible


class NodeEventQuerySet(models.QuerySet["NodeEvent"]):
    def driver_changes(self) -> "NodeEventQuerySet":
        """Filters to changes of the running driver version, not to kernels or missing labels."""
        return self.filter(kind="version", detail__column="driver_version")


class NodeEvent(models.Model):
    """One line of a node's timeline: an observed change or our action. Unlike decisions, it may be pruned."""

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


class NodeNote(models.Model):
    """A person's note on a node's timeline. Never edited; stored as long as the timeline."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="node_notes")
    node_uid = models.CharField(max_length=64)  # not a key to the row: as the timeline, it outlives the node
    node_name = models.CharField(max_length=253)
    at = models.DateTimeField()
    by = models.CharField(max_length=150)
    text = models.CharField(max_length=1000)
    key = models.CharField(max_length=100, blank=True)  # the caller's: the same key again is the same note

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "node_uid", "by", "key"], condition=~Q(key=""), name="one_note_per_key"
            )
        ]
        indexes = [models.Index(fields=["cluster", "node_uid", "-at"])]
        ordering = ["-at", "-pk"]


class GoneNodeQuerySet(Visible["GoneNode"]):
    """Gone nodes are visible like nodes: by cluster, and by their last pools while those exist."""

    def in_pools(self, pool_ids: Collection[int]) -> models.Q:
        return models.Q(pk__in=GoneNode.pools.through.objects.filter(pool_id__in=pool_ids).values("gonenode_id"))


class GoneNode(models.Model):
    """A node that left its cluster: the content of its page, stored as long as its timeline."""

    node_id = models.PositiveBigIntegerField(unique=True)  # the key that its row had, and its page's address still has
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="gone_nodes")
    uid = models.CharField(max_length=64)
    name = models.CharField(max_length=253)
    gone_at = models.DateTimeField()  # when it was seen to be gone
    was = models.JSONField(default=dict)  # earlier values by title
    pools = models.ManyToManyField("fleet.Pool", related_name="gone_nodes")  # pools of the node when it left

    objects = GoneNodeQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["cluster", "name"])]
        ordering = ["-gone_at", "-pk"]

    def __str__(self) -> str:
        return self.name
