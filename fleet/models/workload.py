from django.db import models

from fleet.models.mirrored import Namespaced, one_per_uid
from fleet.models.visible import Visible


class WorkloadQuerySet(Visible["Workload"]):
    """As a pod that has no node: seen with its cluster."""

    def operators(self) -> "WorkloadQuerySet":
        """The GPU operators' own Deployments, where they say their version."""
        return self.exclude(operator_version="")


class Workload(Namespaced):
    """What owns pods that want GPUs: a Job, ReplicaSet, Deployment or StatefulSet, as its cluster last showed it."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="workloads")
    kind = models.CharField(max_length=63)
    created_at = models.DateTimeField()
    owner_kind = models.CharField(max_length=63, blank=True)  # a ReplicaSet's Deployment, a Job's CronJob
    owner_name = models.CharField(max_length=253, blank=True)
    owner_uid = models.CharField(max_length=64, blank=True)
    desired = models.PositiveIntegerField(null=True)  # pods; null: it does not say
    ready = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)  # a Job's pods
    resources = models.JSONField(default=dict)  # extended resources that one pod of it requests
    claims = models.JSONField(default=list)  # names of the ResourceClaims and templates that one pod of it refers to
    image = models.CharField(max_length=500, blank=True)  # of its first container
    operator_version = models.CharField(max_length=64, blank=True)  # of the GPU operator; blank: not its Deployment
    pod_labels = models.JSONField(default=dict)  # of its template: what budgets and services select by

    objects = WorkloadQuerySet.as_manager()

    class Meta(Namespaced.Meta):
        constraints = [one_per_uid("workload")]
        indexes = [models.Index(fields=["cluster", "namespace", "name"])]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
