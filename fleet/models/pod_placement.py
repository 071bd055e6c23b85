from django.db import models


class PodPlacement(models.Model):
    """Which pod had GPUs of a node, from when to when. As the timeline it outlives both, and may be pruned."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="pod_placements", db_index=False)
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    pod_uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    owner_kind = models.CharField(max_length=63, blank=True)
    owner_name = models.CharField(max_length=253, blank=True)
    resources = models.JSONField(default=dict)  # as `Pod.resources`
    since = models.DateTimeField()  # when its node took it, else when it was first seen there
    until = models.DateTimeField(null=True)  # when it was seen to end, or to be gone; null: it is there
    seen_until = models.DateTimeField(null=True)  # when it was last known there, where nobody looked until it was over
    ended = models.CharField(max_length=128, blank=True)  # Completed, Error, Evicted; blank: it is there, or gone
    boards = models.JSONField(default=list)  # the indices of its GPUs, as told when it ended; empty: nothing told
    # Of its MIG slices the index of the GPU and the number there, of those that were told, as told when it ended.
    slices = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "pod_uid", "node_uid"], name="one_placement_per_pod_and_node")
        ]
        indexes = [models.Index(fields=["cluster", "node_uid", "-since"]), models.Index(fields=["until"])]
        ordering = ["-since", "-pk"]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
