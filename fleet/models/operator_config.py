from django.db import models

from fleet.models.mirrored import Namespaced, one_per_uid


class OperatorConfig(Namespaced):
    """A ConfigMap of the GPU operator that says how GPUs are shared or cut: what a node's label picks one entry of."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="operator_configs")
    purpose = models.CharField(max_length=16)  # sharing: the device plugin's; mig: the MIG manager's
    entries = models.JSONField(default=dict)  # by the name that nodes pick: the YAML text as written

    class Meta(Namespaced.Meta):
        constraints = [one_per_uid("operator_config")]
