"""What decides whether a pod may be made at all, and which one goes first: quotas, limits, priorities."""

from django.db import models

from fleet.models.mirrored import Mirrored, Namespaced, one_per_uid


class ResourceQuota(Namespaced):
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="resource_quotas")
    hard = models.JSONField(default=dict)  # {"requests.nvidia.com/gpu": "8"}: quantities as written
    used = models.JSONField(default=dict)

    class Meta(Namespaced.Meta):
        constraints = [one_per_uid("resource_quota")]


class LimitRange(Namespaced):
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="limit_ranges")
    limits = models.JSONField(default=list)  # as sent: [{"type", "max", "min", "default", "defaultRequest"}]

    class Meta(Namespaced.Meta):
        constraints = [one_per_uid("limit_range")]


class PriorityClass(Mirrored):
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="priority_classes")
    name = models.CharField(max_length=253)
    value = models.IntegerField(default=0)
    is_default = models.BooleanField(default=False)
    preemption_policy = models.CharField(max_length=32, blank=True)

    class Meta:
        constraints = [one_per_uid("priority_class")]
        ordering = ["cluster_id", "-value"]
