from collections.abc import Collection, Iterable
from typing import Any

from django.db import models
from django.db.models import Q, Value

from fleet.models.mirrored import Mirrored, one_per_uid
from fleet.models.state_column import GPUS_FREE, REPORTED_DRIVER, STATE_CODE
from fleet.models.visible import Visible
from fleet.states.node import RECONFIGURING, NodeState, node_state
from gpu.conditions import whole_condition
from gpu.resources import Layout, Uses, Way, in_words, missing_in_words, unhealthy_in_words, units_missing, uses_in
from gpu.resources.physical import COLUMNS as USE_COLUMNS
from gpu.resources.terms import PAIRS


def members_of(pool_ids: Iterable[int] | models.QuerySet) -> models.QuerySet:
    """Returns the keys of the pools' nodes for a subquery: a join would repeat a node of two pools."""
    return Node.pools.through.objects.filter(pool_id__in=pool_ids).values("node_id")


class NodeQuerySet(Visible["Node"]):
    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(pk__in=members_of(pool_ids))

    def with_gpus(self) -> "NodeQuerySet":
        """Filters with an explicit comparison, since SQLite uses no index for a bare boolean column."""
        return self.filter(is_gpu_node=Value(True))  # noqa: FBT003 - Django's own signature


class Node(Mirrored):
    """A node as last observed. The bookmark of its cluster has the time."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="nodes")
    pools = models.ManyToManyField("fleet.Pool", related_name="nodes")  # by selector; a node may be in none or several
    name = models.CharField(max_length=253)
    resource_version = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    is_ready = models.BooleanField(null=True)  # null: unknown, since the kubelet stopped reporting
    ready_since = models.DateTimeField(null=True)  # last transition of the condition Ready
    not_ready_reason = models.CharField(max_length=500, blank=True)
    # Reports of detectors and the kubelet (`gpu.conditions`), faults first; `told_conditions` adds all fields.
    conditions = models.JSONField(default=list)
    # What somebody does to it, by Kubernetes' life cycle conditions that are True: [{"type", "reason", "message",
    # "since"}]. Null: none is, or a version that did not store them wrote the row.
    lifecycle = models.JSONField(null=True)
    is_unschedulable = models.BooleanField(default=False)
    cordoned_by = models.CharField(max_length=128, blank=True)  # the field manager; blank: none, or not reported

    kernel = models.CharField(max_length=128, blank=True)
    os_image = models.CharField(max_length=128, blank=True)
    container_runtime = models.CharField(max_length=128, blank=True)
    kubelet_version = models.CharField(max_length=64, blank=True)
    boot_id = models.CharField(max_length=64, blank=True)  # changes with each boot; blank: not reported
    booted_at = models.DateTimeField(null=True)  # when a new boot was observed; null: never
    region = models.CharField(max_length=64, blank=True)
    zone = models.CharField(max_length=64, blank=True)
    instance_type = models.CharField(max_length=64, blank=True)
    capacity_type = models.CharField(max_length=16, blank=True)  # spot, on-demand; blank: its cloud does not say
    nvlink_domain = models.CharField(max_length=128, blank=True)  # cluster UUID and clique, as GFD labels it

    is_gpu_node = models.BooleanField(default=False)
    gpu_product = models.CharField(max_length=128, blank=True)  # without -SHARED and -MIG-…
    gpu_memory_mib = models.PositiveIntegerField(null=True)
    gpu_vendor = models.CharField(max_length=16, blank=True)  # nvidia, amd, habana, intel
    sharing = models.CharField(max_length=16, blank=True)  # time-slicing, mps, shared (method unknown); blank: one user
    sharing_replicas = models.PositiveIntegerField(null=True)  # users that a GPU may have; null: not shared, or unknown
    mig_strategy = models.CharField(max_length=16, blank=True)  # single, mixed; blank: no MIG
    plugin_config = models.CharField(max_length=128, blank=True)  # that the device plugin is asked for
    mig_config = models.CharField(max_length=128, blank=True)  # that the MIG manager is asked for
    mig_config_state = models.CharField(max_length=16, blank=True)  # pending, rebooting, success, failed
    mig_changing_since = models.DateTimeField(null=True)  # when its reconfiguration began; null: none in progress
    mig_is_overdue = models.BooleanField(default=False)  # it has been reconfiguring for too long
    layout = models.CharField(max_length=200, blank=True)  # how the GPUs are cut and shared: `expected` is of this one
    capacity = models.JSONField(default=dict)  # {"nvidia.com/gpu": 8, "nvidia.com/mig-1g.10gb": 14}
    allocatable = models.JSONField(default=dict)
    expected = models.JSONField(default=dict)  # the highest amount under this layout
    requested = models.JSONField(default=dict)  # by the pods bound to it
    unhealthy_gpus = models.JSONField(default=list)  # reported by labels and slices: [{"gpu", "index", "reason"}]
    devices_unhealthy = models.JSONField(default=dict)  # reported by its kubelet: pod by UUID
    # The highest number of physical GPUs seen, by use (`gpu.resources.physical`).
    physical_gpus = models.PositiveIntegerField(null=True)  # the sum of the others; null: unknown
    physical_whole = models.PositiveIntegerField(default=0)
    physical_mig = models.PositiveIntegerField(default=0)
    physical_partitioned = models.PositiveIntegerField(default=0)
    physical_time_slicing = models.PositiveIntegerField(default=0)
    physical_mps = models.PositiveIntegerField(default=0)
    physical_shared = models.PositiveIntegerField(default=0)
    physical_virtual = models.PositiveIntegerField(default=0)
    physical_not_offered = models.PositiveIntegerField(default=0)
    # The next four count whole GPUs: neither shares nor slices.
    gpu_capacity = models.PositiveIntegerField(null=True)  # null: the node does not name the resource
    gpu_allocatable = models.PositiveIntegerField(null=True)
    gpu_expected = models.PositiveIntegerField(null=True)  # the highest number seen; kept over restarts
    gpu_allocated = models.PositiveIntegerField(default=0)  # whole GPUs requested by the pods bound to it
    # Slices (MIG, partitions) and shares: counted separately, never added to GPUs.
    slices_expected = models.PositiveIntegerField(default=0)
    slices_allocatable = models.PositiveIntegerField(default=0)
    slices_allocated = models.PositiveIntegerField(default=0)
    shares_expected = models.PositiveIntegerField(default=0)
    shares_allocatable = models.PositiveIntegerField(default=0)
    shares_allocated = models.PositiveIntegerField(default=0)
    # CPU in millicores and memory in bytes: allocatable, and requested by bound pods.
    cpu_allocatable_m = models.PositiveBigIntegerField(null=True)  # null: the node does not say
    memory_allocatable_bytes = models.PositiveBigIntegerField(null=True)
    cpu_tenants_m = models.PositiveBigIntegerField(default=0)  # by pods that hold or want GPUs
    cpu_operands_m = models.PositiveBigIntegerField(default=0)
    cpu_others_m = models.PositiveBigIntegerField(default=0)  # by every other pod
    memory_tenants_bytes = models.PositiveBigIntegerField(default=0)
    memory_operands_bytes = models.PositiveBigIntegerField(default=0)
    memory_others_bytes = models.PositiveBigIntegerField(default=0)
    pods_allocatable = models.PositiveIntegerField(null=True)  # null: the node does not say
    pods_bound = models.PositiveIntegerField(default=0, db_default=0)  # of all kinds, unfinished

    # Running, as reported; kept while the node reports none
    driver_version = models.CharField(max_length=64, blank=True)
    driver_unknown_since = models.DateTimeField(null=True)  # the label is missing, as during an upgrade
    is_paused = models.BooleanField(default=False)  # the driver manager stopped operands here
    upgrade_state = models.CharField(max_length=64, blank=True)  # of the operator's upgrade controller
    is_held = models.BooleanField(default=False)  # carries the label that keeps the upgrade controller off
    held_by = models.CharField(max_length=64, blank=True)  # our annotation's plan; blank with is_held: not ours
    driver_owner = models.CharField(max_length=253, blank=True)  # the NVIDIADriver, where the operator names it
    driver_daemon_set = models.CharField(max_length=64, blank=True)  # UID of the DaemonSet of its driver pod

    unresolved = models.PositiveIntegerField(default=0)  # findings about it, confirmed or not, without notes
    critical = models.PositiveIntegerField(default=0)  # of these
    # Computed by the database: never written, and not read again after `save()`.
    state_code = models.GeneratedField(expression=STATE_CODE, output_field=models.IntegerField(), db_persist=True)
    gpus_free = models.GeneratedField(expression=GPUS_FREE, output_field=models.IntegerField(), db_persist=True)
    reported_driver = models.GeneratedField(  # blank: no source reports it now
        expression=REPORTED_DRIVER, output_field=models.CharField(max_length=64), db_persist=True
    )
    # Large columns last: columns after them would cost SQLite a walk through all their pages.
    labels = models.JSONField(default=dict)
    annotations = models.JSONField(default=dict)  # only annotations of the GPU stack and ours
    taints = models.JSONField(default=list)  # [{"key", "value", "effect"}]
    label_conflicts = models.JSONField(default=list, db_default=[])  # rows of `gpu.label_conflicts.LabelConflict`

    objects = NodeQuerySet.as_manager()

    class Meta:
        constraints = [one_per_uid("node")]
        indexes = [
            models.Index(fields=["cluster", "name"]),
            # Indexes for counts and filters without reading rows.
            models.Index(fields=["is_gpu_node", "gpu_product"]),
            models.Index(fields=["is_gpu_node", "reported_driver", "cluster", "name"]),
            models.Index(fields=["is_gpu_node", "capacity_type", "cluster"], name="nodes_by_capacity_type"),
            # Indexes for pages of a sorted list.
            models.Index(fields=["is_gpu_node", "state_code", "-critical", "cluster", "name"]),
            models.Index(fields=["is_gpu_node", "cluster", "name"]),
            models.Index(fields=["is_gpu_node", "-gpus_free", "cluster", "name"]),
            models.Index(fields=["is_gpu_node", "-changed_at", "name"]),
            # Silent kubelets, whose pods are shown as unknown.
            models.Index(fields=["cluster"], condition=Q(is_ready=None), name="silent_nodes"),
        ]
        ordering = ["cluster_id", "name"]

    def __str__(self) -> str:
        return self.name

    @property
    def state(self) -> NodeState:
        return node_state(
            is_ready=self.is_ready,
            is_unschedulable=self.is_unschedulable,
            upgrade_state=self.upgrade_state,
            is_held=self.is_held,
            gpus_missing=self.gpus_missing,
            reconfiguring=self.reconfiguring,
            unresolved=self.unresolved,
        )

    @property
    def reported_conditions(self) -> list[dict[str, Any]]:
        """Returns the reports of detectors and the kubelet, faults first, with all fields."""
        return [whole_condition(each) for each in self.conditions]

    @property
    def reconfiguring(self) -> str:
        """Returns the MIG manager's state while it reconfigures in time. Blank: it does not."""
        at_work = self.mig_config_state in RECONFIGURING and not self.mig_is_overdue
        return self.mig_config_state if at_work else ""

    @property
    def uses(self) -> Uses:
        """Returns its physical GPUs by use. Empty: the number is unknown."""
        return uses_in({column: getattr(self, column) for column in USE_COLUMNS.values()})

    @property
    def unhealthy(self) -> list[str]:
        return unhealthy_in_words(self.unhealthy_gpus, self.devices_unhealthy)

    def unhealthy_of(self, index: int, uuid: str) -> list[str]:
        """Returns the sentences about one GPU. A report with a UUID is matched by UUID, not by number."""
        named = [
            one
            for one in self.unhealthy_gpus
            if (one["uuid"] == uuid if uuid and one.get("uuid") else one.get("index") == index)
        ]
        by_kubelet = {device: pod for device, pod in self.devices_unhealthy.items() if uuid and uuid in device}
        return unhealthy_in_words(named, by_kubelet)

    @property
    def gpus_missing(self) -> int:
        """Returns how many units that existed are not allocatable: GPUs, slices or shares.

        While the MIG manager reconfigures, nothing counts as missing.
        """
        return (
            0 if self.reconfiguring else units_missing({name: getattr(self, name) for pair in PAIRS for name in pair})
        )

    @property
    def missing_in_words(self) -> str:
        """Returns `1 GPU (4 of its time-slices)`. Blank: nothing is missing."""
        if self.reconfiguring:
            return ""
        named = missing_in_words(self.expected, self.allocatable, Layout.read(self.layout))
        return named or (in_words(self.gpus_missing, Way()) if self.gpus_missing else "")
