from django.db import models
from django.db.models import Q


class NodeNote(models.Model):
    """What a person wrote on a node's timeline. Never edited; kept as long as the timeline."""

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
