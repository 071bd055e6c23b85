"""Dynamic Resource Allocation: drivers' slices, pods' claims, and device classes."""

from django.db import models

from fleet.models.mirrored import Mirrored, Namespaced, one_per_uid


class ResourceSlice(Mirrored):
    """The devices that a driver offers, usually of one node."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="resource_slices")
    name = models.CharField(max_length=253)
    driver = models.CharField(max_length=63)  # gpu.nvidia.com
    pool = models.CharField(max_length=253)
    pool_generation = models.PositiveBigIntegerField(default=0)  # only the newest of a pool counts
    pool_slices = models.PositiveIntegerField(null=True)  # how many slices the pool has, by its driver; null: unknown
    node_name = models.CharField(max_length=253, blank=True)  # blank: not of one node
    # Of each: name, type (gpu, mig, vfio; blank: unknown), uuid, parent_uuid, product, profile, driver_version,
    # memory_bytes, taints; numa, where the driver reports the NUMA node.
    devices = models.JSONField(default=list)

    class Meta:
        constraints = [one_per_uid("resource_slice")]
        indexes = [models.Index(fields=["cluster", "node_name"])]
        ordering = ["cluster_id", "name"]


class ResourceClaim(Namespaced):
    """A pod's request to drivers, and the allocated devices."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="resource_claims")
    created_at = models.DateTimeField()
    requests = models.JSONField(default=list)  # of each: name, device_class, count, all, selectors (CEL)
    # and constrained, where devices must share an attribute; tolerant, of taints of devices
    allocated = models.JSONField(default=list)  # of each: request, driver, pool, device; [] until it is allocated
    reserved_for = models.JSONField(default=list)  # uids of the pods that may use it

    class Meta(Namespaced.Meta):
        constraints = [one_per_uid("resource_claim")]
        indexes = [models.Index(fields=["cluster", "namespace", "name"])]


class DeviceClass(Mirrored):
    """A class of devices for claims, as CEL over the attributes in slices."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="device_classes")
    name = models.CharField(max_length=253)
    selectors = models.JSONField(default=list)  # CEL expressions; all must match
    extended_resource_name = models.CharField(max_length=253, blank=True)

    class Meta:
        constraints = [one_per_uid("device_class")]
        ordering = ["cluster_id", "name"]
