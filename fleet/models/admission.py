"""What decides whether a pod may be made at all, and which one goes first: quotas, limits, priorities."""

from django.db import models


class ResourceQuota(models.Model):
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="resource_quotas")
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    changed_at = models.DateTimeField()
    hard = models.JSONField(default=dict)  # {"requests.nvidia.com/gpu": "8"}: quantities as written
    used = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_resource_quota_per_uid")]
        ordering = ["cluster", "namespace", "name"]


class LimitRange(models.Model):
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="limit_ranges")
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    changed_at = models.DateTimeField()
    limits = models.JSONField(default=list)  # as sent: [{"type", "max", "min", "default", "defaultRequest"}]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_limit_range_per_uid")]
        ordering = ["cluster", "namespace", "name"]


class PriorityClass(models.Model):
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="priority_classes")
    uid = models.CharField(max_length=64)
    name = models.CharField(max_length=253)
    changed_at = models.DateTimeField()
    value = models.IntegerField(default=0)
    is_default = models.BooleanField(default=False)
    preemption_policy = models.CharField(max_length=32, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_priority_class_per_uid")]
        ordering = ["cluster", "-value"]
