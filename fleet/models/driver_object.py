from django.db import models

from fleet.models.mirrored import Mirrored, one_per_uid
from fleet.models.visible import Visible


class DriverObjectQuerySet(Visible["DriverObject"]):
    """Driver objects affect nodes of any pool, so only viewers of the cluster see them."""


class DriverObject(Mirrored):
    """A controller of driver versions: an NVIDIADriver, ClusterPolicy or GPUCluster, as last observed."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="driver_objects")
    kind = models.CharField(max_length=63)  # NVIDIADriver, ClusterPolicy, GPUCluster
    name = models.CharField(max_length=253)
    generation = models.PositiveIntegerField(default=0)
    version = models.CharField(max_length=64, blank=True)  # desired; blank: the operator's own default
    repository = models.CharField(max_length=253, blank=True)
    image = models.CharField(max_length=253, blank=True)
    use_precompiled = models.BooleanField(default=False)
    is_driver_off = models.BooleanField(default=False)  # ClusterPolicy only: the nodes bring their own driver
    uses_driver_crd = models.BooleanField(default=False)  # ClusterPolicy only
    sandbox_workloads = models.BooleanField(default=False)  # ClusterPolicy only: switches the upgrade controller off
    node_selector = models.JSONField(default=dict)
    is_fallback = models.BooleanField(default=False)  # NVIDIADriver only: takes the nodes that no other selects
    upgrade_policy = models.JSONField(default=dict)  # {} on an NVIDIADriver: the ClusterPolicy's counts
    manager_label = models.CharField(max_length=317, blank=True)  # by which the driver manager stops one more DaemonSet
    state = models.CharField(max_length=32, blank=True)  # ready, notReady, ignored, disabled
    message = models.CharField(max_length=1000, blank=True)  # of the condition with the reason
    operand_versions = models.JSONField(default=dict)  # desired, by operand (`gpu.operands`); only specified ones
    mig_strategy = models.CharField(max_length=16, blank=True)  # ClusterPolicy only: none, single, mixed
    sharing_config = models.CharField(max_length=253, blank=True)  # the ConfigMap that device plugins read
    mig_config = models.CharField(max_length=253, blank=True)  # the ConfigMap that MIG managers read
    uses_cdi = models.BooleanField(null=True)  # null: it does not say
    uses_nri = models.BooleanField(null=True)  # the toolkit's NRI plugin; null: it does not say
    uses_rdma = models.BooleanField(null=True)  # GPUDirect RDMA; null: it does not say
    uses_gds = models.BooleanField(null=True)  # GPUDirect Storage; null: it does not say
    uses_gdrcopy = models.BooleanField(null=True)  # null: it does not say
    kernel_modules = models.CharField(max_length=16, blank=True)  # auto, open, proprietary; blank: it does not say
    operator_version = models.CharField(max_length=64, blank=True)  # from app.kubernetes.io/version or helm.sh/chart
    owned_by = models.JSONField(default=list)  # GitOps and Helm marks: ["Helm release gpu-operator/gpu-operator"]

    objects = DriverObjectQuerySet.as_manager()

    class Meta:
        constraints = [one_per_uid("driver_object")]
        ordering = ["cluster_id", "kind", "name"]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
