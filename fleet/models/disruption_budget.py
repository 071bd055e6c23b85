from django.db import models

from fleet.models.mirrored import Namespaced, one_per_uid


class DisruptionBudget(Namespaced):
    """A PodDisruptionBudget: how many of its pods may be evicted now, as its cluster last counted."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="disruption_budgets")
    selector = models.JSONField(default=dict)  # as sent: matchLabels, matchExpressions; {} selects all, null nothing
    min_available = models.CharField(max_length=16, blank=True)  # a number or a percentage, as written
    max_unavailable = models.CharField(max_length=16, blank=True)
    unhealthy_pod_eviction_policy = models.CharField(max_length=32, blank=True)
    disruptions_allowed = models.PositiveIntegerField(null=True)  # null: the controller has not counted yet
    current_healthy = models.PositiveIntegerField(default=0)
    desired_healthy = models.PositiveIntegerField(default=0)
    expected_pods = models.PositiveIntegerField(default=0)

    class Meta(Namespaced.Meta):
        constraints = [one_per_uid("disruption_budget")]
