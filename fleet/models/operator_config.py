from django.db import models


class OperatorConfig(models.Model):
    """A ConfigMap of the GPU operator that says how GPUs are shared or cut: what a node's label picks one entry of."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="operator_configs")
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    changed_at = models.DateTimeField()
    purpose = models.CharField(max_length=16)  # sharing: the device plugin's; mig: the MIG manager's
    entries = models.JSONField(default=dict)  # by the name that nodes pick: the YAML text as written

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_operator_config_per_uid")]
        ordering = ["cluster", "namespace", "name"]
