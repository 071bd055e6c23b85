from collections.abc import Collection, Iterable
from typing import Any

from django.db import models
from django.db.models import Q, Value

from fleet.models.mirrored import Mirrored, one_per_uid
from fleet.models.state_column import GPUS_FREE, SAID_DRIVER, STATE_CODE
from fleet.models.visible import Visible
from fleet.states.node import RECONFIGURING, NodeState, node_state
from gpu.conditions import whole_condition
from gpu.resources import Layout, Uses, Way, in_words, missing_in_words, unhealthy_in_words, units_missing, uses_in
from gpu.resources.physical import COLUMNS as USE_COLUMNS
from gpu.resources.terms import PAIRS


def members_of(pool_ids: Iterable[int] | models.QuerySet) -> models.QuerySet:
    """The keys of the nodes of these pools, for a subquery: a join would show a node of two pools twice."""
    return Node.pools.through.objects.filter(pool_id__in=pool_ids).values("node_id")


class NodeQuerySet(Visible["Node"]):
    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(pk__in=members_of(pool_ids))

    def with_gpus(self) -> "NodeQuerySet":
        """As a comparison: Django writes a plain True as the bare column, for which SQLite takes no index."""
        return self.filter(is_gpu_node=Value(True))  # noqa: FBT003 - Django's own signature


class Node(Mirrored):
    """A node as its cluster last showed it. How old that is, is its cluster's bookmark's to say."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="nodes")
    pools = models.ManyToManyField("fleet.Pool", related_name="nodes")  # by selector: none and several both happen
    name = models.CharField(max_length=253)
    resource_version = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    is_ready = models.BooleanField(null=True)  # null: the kubelet stopped reporting, nobody knows
    ready_since = models.DateTimeField(null=True)  # when the Ready condition last turned, either way
    not_ready_reason = models.CharField(max_length=500, blank=True)
    # What detectors and the kubelet report (`gpu.conditions`), faults first; `told_conditions` has all fields of each.
    conditions = models.JSONField(default=list)
    is_unschedulable = models.BooleanField(default=False)
    cordoned_by = models.CharField(max_length=128, blank=True)  # the field manager that did; blank: none, or not said

    kernel = models.CharField(max_length=128, blank=True)
    os_image = models.CharField(max_length=128, blank=True)
    container_runtime = models.CharField(max_length=128, blank=True)
    kubelet_version = models.CharField(max_length=64, blank=True)
    boot_id = models.CharField(max_length=64, blank=True)  # another one with each boot; blank: its kubelet says none
    booted_at = models.DateTimeField(null=True)  # when that was seen to be another one; null: it never was
    region = models.CharField(max_length=64, blank=True)
    zone = models.CharField(max_length=64, blank=True)
    instance_type = models.CharField(max_length=64, blank=True)
    capacity_type = models.CharField(max_length=16, blank=True)  # spot, on-demand; blank: its cloud does not say
    nvlink_domain = models.CharField(max_length=128, blank=True)  # cluster UUID and clique, as GFD labels it

    is_gpu_node = models.BooleanField(default=False)
    gpu_product = models.CharField(max_length=128, blank=True)  # without -SHARED and -MIG-…
    gpu_memory_mib = models.PositiveIntegerField(null=True)
    gpu_vendor = models.CharField(max_length=16, blank=True)  # nvidia, amd, habana, intel
    sharing = models.CharField(max_length=16, blank=True)  # time-slicing, mps, shared (how: not said); blank: one user
    sharing_replicas = models.PositiveIntegerField(null=True)  # users a GPU may have; null: not shared, or not said
    mig_strategy = models.CharField(max_length=16, blank=True)  # single, mixed; blank: no MIG
    plugin_config = models.CharField(max_length=128, blank=True)  # that the device plugin is asked for
    mig_config = models.CharField(max_length=128, blank=True)  # that the MIG manager is asked for
    mig_config_state = models.CharField(max_length=16, blank=True)  # pending, rebooting, success, failed
    mig_changing_since = models.DateTimeField(
        null=True
    )  # when it was first seen at work on this order; null: it is not
    mig_is_overdue = models.BooleanField(default=False)  # it is at work for longer than it ever should be
    layout = models.CharField(max_length=200, blank=True)  # how the GPUs are cut and shared: `expected` is of this one
    capacity = models.JSONField(default=dict)  # {"nvidia.com/gpu": 8, "nvidia.com/mig-1g.10gb": 14}
    allocatable = models.JSONField(default=dict)
    expected = models.JSONField(default=dict)  # the most of each that was ever seen under this layout
    requested = models.JSONField(default=dict)  # by the pods bound to it
    unhealthy_gpus = models.JSONField(default=list)  # that labels and slices call so: [{"gpu", "index", "reason"}]
    devices_unhealthy = models.JSONField(default=dict)  # that its kubelet calls so, by UUID: the pod that has it
    # Physical GPUs, as many as were ever seen, and what is made of each: `gpu.resources.physical` names the uses.
    physical_gpus = models.PositiveIntegerField(null=True)  # the sum of the others; null: nobody says how many
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
    gpu_expected = models.PositiveIntegerField(null=True)  # the most that was ever seen; remembered over restarts
    gpu_allocated = models.PositiveIntegerField(default=0)  # whole GPUs requested by the pods bound to it
    # What a GPU is cut into (MIG slices, partitions) and what several users share: counted apart, never added to GPUs.
    slices_expected = models.PositiveIntegerField(default=0)
    slices_allocatable = models.PositiveIntegerField(default=0)
    slices_allocated = models.PositiveIntegerField(default=0)
    shares_expected = models.PositiveIntegerField(default=0)
    shares_allocatable = models.PositiveIntegerField(default=0)
    shares_allocated = models.PositiveIntegerField(default=0)
    # CPU in millicores and memory in bytes: what pods may have, and what those bound to it request of that.
    cpu_allocatable_m = models.PositiveBigIntegerField(null=True)  # null: the node does not say
    memory_allocatable_bytes = models.PositiveBigIntegerField(null=True)
    cpu_tenants_m = models.PositiveBigIntegerField(default=0)  # by pods that hold or want GPUs
    cpu_operands_m = models.PositiveBigIntegerField(default=0)
    cpu_others_m = models.PositiveBigIntegerField(default=0)  # by every other pod
    memory_tenants_bytes = models.PositiveBigIntegerField(default=0)
    memory_operands_bytes = models.PositiveBigIntegerField(default=0)
    memory_others_bytes = models.PositiveBigIntegerField(default=0)

    driver_version = models.CharField(max_length=64, blank=True)  # running, as the node says; kept while it is silent
    driver_unknown_since = models.DateTimeField(null=True)  # the label is gone, as it is during an upgrade
    is_paused = models.BooleanField(default=False)  # the driver manager has stopped operands here
    upgrade_state = models.CharField(max_length=64, blank=True)  # of the operator's upgrade controller
    is_held = models.BooleanField(default=False)  # carries the label that keeps the upgrade controller off
    held_by = models.CharField(max_length=64, blank=True)  # our annotation's plan; blank with is_held: not ours
    driver_owner = models.CharField(max_length=253, blank=True)  # the NVIDIADriver, where the operator names it
    driver_daemon_set = models.CharField(max_length=64, blank=True)  # the UID of the one whose driver pod it has

    unresolved = models.PositiveIntegerField(default=0)  # findings about it, confirmed or not, but no mere notes
    critical = models.PositiveIntegerField(default=0)  # of these
    # The database's own: never written, and not read again after `save()`.
    state_code = models.GeneratedField(expression=STATE_CODE, output_field=models.IntegerField(), db_persist=True)
    gpus_free = models.GeneratedField(expression=GPUS_FREE, output_field=models.IntegerField(), db_persist=True)
    said_driver = models.GeneratedField(  # blank: nothing says it now
        expression=SAID_DRIVER, output_field=models.CharField(max_length=64), db_persist=True
    )
    # The large ones last: what comes after them in a row costs SQLite a walk through all their pages.
    labels = models.JSONField(default=dict)
    annotations = models.JSONField(default=dict)  # only those of the GPU stack and ours
    taints = models.JSONField(default=list)  # [{"key", "value", "effect"}]

    objects = NodeQuerySet.as_manager()

    class Meta:
        constraints = [one_per_uid("node")]
        indexes = [
            models.Index(fields=["cluster", "name"]),
            # Counts and choices that read no row.
            models.Index(fields=["is_gpu_node", "gpu_product"]),
            models.Index(fields=["is_gpu_node", "said_driver", "cluster", "name"]),
            # Pages of a list, in its order, without a look at the others.
            models.Index(fields=["is_gpu_node", "state_code", "-critical", "cluster", "name"]),
            models.Index(fields=["is_gpu_node", "cluster", "name"]),
            models.Index(fields=["is_gpu_node", "-gpus_free", "cluster", "name"]),
            models.Index(fields=["is_gpu_node", "-changed_at", "name"]),
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
    def told_conditions(self) -> list[dict[str, Any]]:
        """What detectors and the kubelet report of it, faults first, each with all its fields."""
        return [whole_condition(each) for each in self.conditions]

    @property
    def reconfiguring(self) -> str:
        """The MIG manager's word while it is at work in its time. Blank: it is not."""
        at_work = self.mig_config_state in RECONFIGURING and not self.mig_is_overdue
        return self.mig_config_state if at_work else ""

    @property
    def uses(self) -> Uses:
        """Its physical GPUs by what is made of them. Empty: nobody says how many there are."""
        return uses_in({column: getattr(self, column) for column in USE_COLUMNS.values()})

    @property
    def unhealthy(self) -> list[str]:
        """Who calls which GPU unhealthy: a sentence each."""
        return unhealthy_in_words(self.unhealthy_gpus, self.devices_unhealthy)

    def unhealthy_of(self, index: int, uuid: str) -> list[str]:
        """The same of one GPU. Who names a UUID means that one, whatever its number."""
        named = [
            one
            for one in self.unhealthy_gpus
            if (one["uuid"] == uuid if uuid and one.get("uuid") else one.get("index") == index)
        ]
        by_kubelet = {device: pod for device, pod in self.devices_unhealthy.items() if uuid and uuid in device}
        return unhealthy_in_words(named, by_kubelet)

    @property
    def gpus_missing(self) -> int:
        """What was there once and cannot be allocated now: GPUs, or the slices or shares that the node offers.

        While the MIG manager is at work nothing is missing.
        """
        return (
            0 if self.reconfiguring else units_missing({name: getattr(self, name) for pair in PAIRS for name in pair})
        )

    @property
    def missing_in_words(self) -> str:
        """`1 GPU (4 of its time-slices)`. Blank: nothing is missing."""
        if self.reconfiguring:
            return ""
        named = missing_in_words(self.expected, self.allocatable, Layout.read(self.layout))
        return named or (in_words(self.gpus_missing, Way()) if self.gpus_missing else "")
