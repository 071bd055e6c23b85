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
    """A PersistentVolume that only some nodes reach. Others have no row."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="persistent_volumes", db_index=False)
    name = models.CharField(max_length=253)
    node_affinity = models.JSONField(default=list)  # terms, one is enough, as `Operand.node_affinity`
    zones = models.JSONField(default=dict)  # its zone labels, each with the permitted values

    class Meta:
        constraints = [one_per_uid("persistent_volume")]
        indexes = [models.Index(fields=["cluster", "name"])]

    def __str__(self) -> str:
        return self.name


class StorageClass(Mirrored):
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="storage_classes")
    name = models.CharField(max_length=253)
    waits_for_pod = models.BooleanField(default=False)  # WaitForFirstConsumer
    topologies = models.JSONField(default=list)  # terms of labels where it makes volumes; empty: anywhere

    class Meta:
        constraints = [one_per_uid("storage_class")]

    def __str__(self) -> str:
        return self.name
