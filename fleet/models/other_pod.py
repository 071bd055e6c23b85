from django.db import models

from fleet.models.mirrored import Mirrored, one_per_uid


class OtherPod(Mirrored):
    """A pod that has nothing to do with GPUs: kept is only what it takes of its node's CPU and memory.

    There is none for a pod that takes nothing: it asks for neither, has no node yet, or is done.
    """

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="other_pods", db_index=False)
    node_name = models.CharField(max_length=253)
    cpu_m = models.PositiveBigIntegerField(default=0)  # requested, in millicores
    memory_bytes = models.PositiveBigIntegerField(default=0)  # requested

    class Meta:
        constraints = [one_per_uid("other_pod")]
        indexes = [models.Index(fields=["cluster", "node_name"])]

    def __str__(self) -> str:
        return self.uid
