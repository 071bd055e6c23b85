from django.db import models


class Operand(models.Model):
    """A DaemonSet of the GPU stack: the driver, the toolkit, the device plugin, … as its cluster last showed it."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="operands")
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
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
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_operand_per_uid")]
        ordering = ["cluster", "operand", "name"]


class OperandRevision(models.Model):
    """A ControllerRevision: one template a DaemonSet has had. The one with the highest number is the newest."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="operand_revisions")
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    owner_uid = models.CharField(max_length=64)  # of the DaemonSet
    revision = models.PositiveIntegerField()
    revision_hash = models.CharField(max_length=63)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_revision_per_uid")]
        indexes = [models.Index(fields=["cluster", "owner_uid"])]
