from django.db import models

from fleet.models.mirrored import Mirrored, one_per_uid


class ClusterNamespace(Mirrored):
    """A Namespace: its labels, and why its deletion does not end."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="namespaces", db_index=False)
    name = models.CharField(max_length=253)
    labels = models.JSONField(default=dict)
    deleted_at = models.DateTimeField(null=True)  # when its deletion started; null: not deleted
    held_by = models.CharField(max_length=500, blank=True)  # the finalizers or contents that its deletion waits for

    class Meta:
        constraints = [one_per_uid("namespace")]
        indexes = [models.Index(fields=["cluster", "name"])]

    def __str__(self) -> str:
        return self.name
