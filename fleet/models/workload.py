from django.db import models

from fleet.models.mirrored import Mirrored, Namespaced, one_per_uid
from fleet.models.visible import Visible


class WorkloadQuerySet(Visible["Workload"]):
    """Workloads are visible with their cluster, like a pod without a node."""

    def operators(self) -> "WorkloadQuerySet":
        return self.exclude(operator_version="")


class Workload(Namespaced):
    """An owner of pods that want GPUs: a Job, ReplicaSet, Deployment or StatefulSet, as last observed."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="workloads")
    kind = models.CharField(max_length=63)
    created_at = models.DateTimeField()
    owner_kind = models.CharField(max_length=63, blank=True)  # a ReplicaSet's Deployment, a Job's CronJob
    owner_name = models.CharField(max_length=253, blank=True)
    owner_uid = models.CharField(max_length=64, blank=True)
    desired = models.PositiveIntegerField(null=True)  # pods; null: it does not say
    # pods of a suspended Job after its resume; null: not suspended
    suspended_pods = models.PositiveIntegerField(null=True)
    ready = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)  # a Job's pods
    resources = models.JSONField(default=dict)  # extended resources requested per pod
    claims = models.JSONField(default=list)  # ResourceClaims and templates used per pod
    image = models.CharField(max_length=500, blank=True)  # of its first container
    operator_version = models.CharField(max_length=64, blank=True)  # of the GPU operator; blank: not its Deployment
    pod_labels = models.JSONField(default=dict)  # of its template: labels for budgets and services

    objects = WorkloadQuerySet.as_manager()

    class Meta(Namespaced.Meta):
        constraints = [one_per_uid("workload")]
        indexes = [
            models.Index(fields=["cluster", "namespace", "name"]),
            models.Index(fields=["owner_uid"], name="workloads_of_owner"),
            models.Index(fields=["cluster"], condition=models.Q(suspended_pods__gt=0), name="suspended_jobs"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Operand(Namespaced):
    """A DaemonSet of the GPU stack (driver, toolkit, device plugin, …) as last observed."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="operands")
    operand = models.CharField(max_length=63)  # driver, device-plugin, … (`gpu.operands`)
    owner_kind = models.CharField(max_length=63, blank=True)  # NVIDIADriver, ClusterPolicy
    owner_name = models.CharField(max_length=253, blank=True)
    owner_uid = models.CharField(max_length=64, blank=True)
    node_selector = models.JSONField(default=dict)
    node_affinity = models.JSONField(default=list)  # terms, one is enough: [[{"key", "operator", "values", "field"}]]
    tolerations = models.JSONField(default=list)  # as sent: [{"key", "operator", "value", "effect"}]
    image = models.CharField(max_length=500, blank=True)
    generation = models.PositiveIntegerField(default=0)
    observed_generation = models.PositiveIntegerField(default=0)  # behind `generation`: the numbers below are old
    desired = models.PositiveIntegerField(default=0)
    ready = models.PositiveIntegerField(default=0)
    updated = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [one_per_uid("operand")]
        ordering = ["cluster_id", "operand", "name"]


class OperandRevision(Namespaced):
    """A ControllerRevision: one template of a DaemonSet. The highest number is the newest."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="operand_revisions")
    owner_uid = models.CharField(max_length=64)  # of the DaemonSet
    revision = models.PositiveIntegerField()
    revision_hash = models.CharField(max_length=63)

    class Meta:
        constraints = [one_per_uid("revision")]
        indexes = [models.Index(fields=["cluster", "owner_uid"])]


class DisruptionBudget(Namespaced):
    """A PodDisruptionBudget with the evictions it allows, as last counted by its cluster."""

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


class OperatorConfig(Namespaced):
    """A ConfigMap of the GPU operator with layouts or sharing settings; a node's label selects an entry."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="operator_configs")
    purpose = models.CharField(max_length=16)  # sharing: the device plugin's; mig: the MIG manager's
    entries = models.JSONField(default=dict)  # by the name that nodes pick: the YAML text as written

    class Meta(Namespaced.Meta):
        constraints = [one_per_uid("operator_config")]


class ClusterEvent(Mirrored):
    """An Event on a GPU node, a stored pod or an owner. Clusters delete Events after about an hour; so do we."""

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
