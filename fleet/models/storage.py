"""Volumes of pods, as far as they keep pods from nodes."""

from django.db import models

from fleet.models.mirrored import Mirrored, Namespaced, one_per_uid


class PersistentVolumeClaim(Namespaced):
    """A PersistentVolumeClaim."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="volume_claims", db_index=False)
    volume = models.CharField(max_length=253, blank=True)  # of a claim that is bound; blank: it is not
    storage_class = models.CharField(max_length=253, blank=True)  # blank: none
    is_leaving = models.BooleanField(default=False)  # its deletion has begun

    class Meta(Namespaced.Meta):
        constraints = [one_per_uid("volume_claim")]
        indexes = [models.Index(fields=["cluster", "namespace", "name"])]


class PersistentVolume(Mirrored):
    """A PersistentVolume that only some nodes reach, or whose driver no StorageClass names. Others have no row."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="persistent_volumes", db_index=False)
    name = models.CharField(max_length=253)
    node_affinity = models.JSONField(default=list)  # terms, one is enough, as `Operand.node_affinity`
    zones = models.JSONField(default=dict)  # its zone labels, each with the permitted values
    driver = models.CharField(max_length=253, blank=True, default="", db_default="")  # of CSI; blank: none

    class Meta:
        constraints = [one_per_uid("persistent_volume")]
        indexes = [models.Index(fields=["cluster", "name"])]

    def __str__(self) -> str:
        return self.name


class StorageClass(Mirrored):
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="storage_classes")
    name = models.CharField(max_length=253)
    provisioner = models.CharField(max_length=253, blank=True, default="", db_default="")
    waits_for_pod = models.BooleanField(default=False)  # WaitForFirstConsumer
    topologies = models.JSONField(default=list)  # terms of labels where it makes volumes; empty: anywhere

    class Meta:
        constraints = [one_per_uid("storage_class")]

    def __str__(self) -> str:
        return self.name


class CsiNode(Mirrored):
    """A CSINode whose drivers limit the volumes of the node. Others have no row."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="csi_nodes", db_index=False)
    name = models.CharField(max_length=253)  # of the node
    limits = models.JSONField(default=dict)  # volumes by driver

    class Meta:
        constraints = [one_per_uid("csi_node")]
        indexes = [models.Index(fields=["cluster", "name"])]

    def __str__(self) -> str:
        return self.name
