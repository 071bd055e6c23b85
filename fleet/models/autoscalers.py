from django.db import models

from fleet.models.mirrored import Mirrored, one_per_uid


class ScalingObject(Mirrored):
    """An object of an autoscaler: a NodePool or NodeClaim of Karpenter, or the status of the cluster autoscaler."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="scaling_objects", db_index=False)
    kind = models.CharField(max_length=32)  # NodePool, NodeClaim, ClusterAutoscaler
    name = models.CharField(max_length=253)
    created_at = models.DateTimeField(null=True)
    pool = models.CharField(max_length=253, blank=True)  # the NodePool of a NodeClaim
    node_name = models.CharField(max_length=253, blank=True)  # of a NodeClaim, once its node has registered
    is_ready = models.BooleanField(default=False)
    reason = models.CharField(max_length=256, blank=True)  # of the first condition that makes it not ready
    message = models.CharField(max_length=1000, blank=True)
    reason_at = models.DateTimeField(null=True)
    # NodePool: {"limits", "used"}, quantities as written. ClusterAutoscaler: {"groups": [{"name", "target", "largest",
    # "unready", "scale_up", "error_code", "error_message"}]}, or {"unread": why it was not understood}.
    facts = models.JSONField(default=dict)

    class Meta:
        constraints = [one_per_uid("scaling_object")]
        indexes = [models.Index(fields=["cluster", "kind", "name"])]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
