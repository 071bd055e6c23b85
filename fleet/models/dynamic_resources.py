"""Dynamic Resource Allocation: what drivers offer, what pods claim, and the classes between them."""

from django.db import models


class ResourceSlice(models.Model):
    """The devices that a driver offers, most often those of one node."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="resource_slices")
    uid = models.CharField(max_length=64)
    name = models.CharField(max_length=253)
    changed_at = models.DateTimeField()
    driver = models.CharField(max_length=63)  # gpu.nvidia.com
    pool = models.CharField(max_length=253)
    pool_generation = models.PositiveBigIntegerField(default=0)  # only the newest of a pool counts
    node_name = models.CharField(max_length=253, blank=True)  # blank: not of one node
    # Of each: name, type (gpu, mig, vfio; blank: the driver does not say), uuid, parent_uuid, product, profile,
    # driver_version, memory_bytes, taints.
    devices = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_resource_slice_per_uid")]
        indexes = [models.Index(fields=["cluster", "node_name"])]
        ordering = ["cluster", "name"]


class ResourceClaim(models.Model):
    """What a pod asks of drivers, and the very devices it was given."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="resource_claims")
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    requests = models.JSONField(default=list)  # of each: name, device_class, count, all, selectors (CEL)
    allocated = models.JSONField(default=list)  # of each: request, driver, pool, device; [] until it is allocated
    reserved_for = models.JSONField(default=list)  # uids of the pods that may use it

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_resource_claim_per_uid")]
        indexes = [models.Index(fields=["cluster", "namespace", "name"])]
        ordering = ["cluster", "namespace", "name"]


class DeviceClass(models.Model):
    """A kind of device that claims name, as CEL over what slices say."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="device_classes")
    uid = models.CharField(max_length=64)
    name = models.CharField(max_length=253)
    changed_at = models.DateTimeField()
    selectors = models.JSONField(default=list)  # CEL, all of which must hold
    extended_resource_name = models.CharField(max_length=253, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_device_class_per_uid")]
        ordering = ["cluster", "name"]
