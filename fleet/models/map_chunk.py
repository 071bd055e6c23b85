from django.db import models


class MapChunk(models.Model):
    """The map's cells of up to `fleet.map_cells.chunks.NODES` GPU nodes of one cluster, ordered by key.

    `fleet.map_cells.cell` defines the bytes. Written in the transaction that writes the nodes.
    """

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="map_chunks")
    number = models.PositiveBigIntegerField()  # the key of its nodes, divided
    keys = models.BinaryField()  # of its nodes: eight bytes each
    marks = models.BinaryField()  # per node: a digest of the map's facts other than its cells
    states = models.BinaryField()
    sizes = models.BinaryField()
    gpus = models.BinaryField()
    parts = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "number"], name="one_map_chunk_per_number")]
        ordering = ["cluster_id", "number"]
