from django.db import models

from people.rights import Permission, scope_of


class WorkloadQuerySet(models.QuerySet["Workload"]):
    def visible_to(self, user) -> "WorkloadQuerySet":
        """As a pod that has no node: with its cluster."""
        seen = scope_of(user, Permission.SEE)
        return self if seen.everywhere else self.filter(cluster__in=seen.cluster_ids)

    def operators(self) -> "WorkloadQuerySet":
        """The GPU operators' own Deployments, where they say their version."""
        return self.exclude(operator_version="")


class Workload(models.Model):
    """What owns pods that want GPUs: a Job, ReplicaSet, Deployment or StatefulSet, as its cluster last showed it."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="workloads")
    uid = models.CharField(max_length=64)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
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

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_workload_per_uid")]
        indexes = [models.Index(fields=["cluster", "namespace", "name"])]
        ordering = ["cluster", "namespace", "name"]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
