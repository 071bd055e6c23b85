"""Queues in front of the scheduler, and what waits in them."""

from django.db import models

from fleet.models.mirrored import Mirrored, Namespaced, one_per_uid


class QueueSystem(models.TextChoices):
    KUEUE = "kueue", "Kueue"
    VOLCANO = "volcano", "Volcano"
    KAI = "kai", "KAI"


class QueuedWorkload(Namespaced):
    """A Workload of Kueue or a PodGroup, until it is finished."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="queued_workloads", db_index=False)
    system = models.CharField(max_length=16, choices=QueueSystem.choices)
    created_at = models.DateTimeField(null=True)
    owner_kind = models.CharField(max_length=63, blank=True)
    owner_name = models.CharField(max_length=253, blank=True)
    owner_uid = models.CharField(max_length=64, blank=True)  # of the first owner, which may be a pod
    queue = models.CharField(max_length=253, blank=True)  # Kueue: the LocalQueue
    admitted_to = models.CharField(max_length=253, blank=True)  # the ClusterQueue whose quota it has; blank: none
    priority = models.IntegerField(default=0)
    is_active = models.BooleanField(default=True)  # False: somebody deactivated it
    is_waiting = models.BooleanField(default=True)  # False: admitted, or its pods are scheduled
    members = models.PositiveIntegerField(default=0)  # pods that start together
    requests = models.JSONField(default=dict)  # of all its pods, as written: {"nvidia.com/gpu": "8"}
    reason = models.CharField(max_length=256, blank=True)  # of the condition that explains the wait
    message = models.CharField(max_length=2000, blank=True)
    reason_at = models.DateTimeField(null=True)

    class Meta(Namespaced.Meta):
        constraints = [one_per_uid("queued_workload")]
        indexes = [
            models.Index(fields=["cluster", "owner_uid"]),
            models.Index(fields=["cluster", "namespace", "name"]),
        ]


class WorkloadQueue(Mirrored):
    """A ClusterQueue or LocalQueue of Kueue."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="workload_queues", db_index=False)
    kind = models.CharField(max_length=32)  # ClusterQueue, LocalQueue
    namespace = models.CharField(max_length=63, blank=True)  # blank: of a ClusterQueue
    name = models.CharField(max_length=253)
    cluster_queue = models.CharField(max_length=253, blank=True)  # of a LocalQueue
    cohort = models.CharField(max_length=253, blank=True)
    strategy = models.CharField(max_length=32, blank=True)  # StrictFIFO, BestEffortFIFO
    trouble = models.CharField(max_length=1000, blank=True)  # why it admits nothing; blank: it does
    pending = models.PositiveIntegerField(default=0)
    # Of each: flavor, resource, nominal, borrowing (None: no limit), reserved, borrowed; quantities as written.
    quotas = models.JSONField(default=list)

    class Meta:
        constraints = [one_per_uid("workload_queue")]
        indexes = [models.Index(fields=["cluster", "kind", "namespace", "name"])]
        ordering = ["cluster_id", "kind", "namespace", "name"]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
