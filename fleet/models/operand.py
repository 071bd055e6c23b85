from django.db import models

from fleet.models.mirrored import Namespaced, one_per_uid


class Operand(Namespaced):
    """A DaemonSet of the GPU stack: the driver, the toolkit, the device plugin, … as its cluster last showed it."""

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
    """A ControllerRevision: one template a DaemonSet has had. The one with the highest number is the newest."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="operand_revisions")
    owner_uid = models.CharField(max_length=64)  # of the DaemonSet
    revision = models.PositiveIntegerField()
    revision_hash = models.CharField(max_length=63)

    class Meta:
        constraints = [one_per_uid("revision")]
        indexes = [models.Index(fields=["cluster", "owner_uid"])]
