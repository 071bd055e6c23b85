from django.db import models

from fleet.models.mirrored import Mirrored, one_per_uid


class NodeTopology(Mirrored):
    """A NodeResourceTopology: the NUMA nodes of a node with GPUs, and the topology policy of its kubelet."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="node_topologies", db_index=False)
    name = models.CharField(max_length=253)  # of the node
    policy = models.CharField(max_length=32, blank=True)  # none, best-effort, restricted, single-numa-node
    # Of each NUMA node: name, allocatable and available GPUs by resource.
    zones = models.JSONField(default=list)

    class Meta:
        constraints = [one_per_uid("node_topology")]
        indexes = [models.Index(fields=["cluster", "name"])]

    def __str__(self) -> str:
        return self.name
