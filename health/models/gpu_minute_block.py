from django.db import models


class GpuMinuteBlock(models.Model):
    """What the GPUs of a node said in a quarter of an hour, at one minute, where exporters are asked one by one.

    Kept for 24 h (docs/design/0011). `health.sources.minutes` writes and reads it.
    """

    pk = models.CompositePrimaryKey("cluster_id", "node_name", "begins_at")
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="gpu_minute_blocks")
    node_name = models.CharField(max_length=253)
    begins_at = models.DateTimeField()
    kept_at = models.DateTimeField()  # when a minute of it was last written
    packed = models.BinaryField()  # its devices, and a column of numbers per metric

    class Meta:
        indexes = [models.Index(fields=["begins_at", "cluster"])]
