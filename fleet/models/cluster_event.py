from django.db import models

from fleet.models.mirrored import Mirrored, one_per_uid


class ClusterEvent(Mirrored):
    """An Event on a GPU node, a kept pod or an owner. Clusters forget theirs after about an hour; so do we."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="cluster_events")
    namespace = models.CharField(max_length=63, blank=True)
    about_kind = models.CharField(max_length=63)
    about_namespace = models.CharField(max_length=63, blank=True)
    about_name = models.CharField(max_length=253)
    about_uid = models.CharField(max_length=64, blank=True)
    is_warning = models.BooleanField(default=False)
    reason = models.CharField(max_length=128, blank=True)
    message = models.CharField(max_length=1000, blank=True)
    source = models.CharField(max_length=253, blank=True)
    count = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [one_per_uid("cluster_event")]
        indexes = [
            models.Index(fields=["cluster", "about_uid"]),
            models.Index(fields=["cluster", "about_kind", "about_name"]),
        ]
        ordering = ["-last_at", "-pk"]
