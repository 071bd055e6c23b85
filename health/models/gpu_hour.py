from django.db import models


class GpuHour(models.Model):
    """The activity of a GPU or a slice in an hour. Written once, after the hour.

    On PostgreSQL the table has one partition a day, which is dropped as a whole when it is too old.
    """

    pk = models.CompositePrimaryKey("cluster_id", "uuid", "gi_id", "hour")
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="gpu_hours")
    uuid = models.CharField(max_length=64)  # of the physical GPU, also for slices
    gi_id = models.CharField(max_length=16, blank=True)  # of the slice; blank: the whole board
    hour = models.DateTimeField()  # start of the hour
    node_name = models.CharField(max_length=253)
    index = models.PositiveIntegerField(null=True)  # of the board
    seen_s = models.FloatField()  # seconds of it with telemetry of the device
    busy_s = models.FloatField(null=True)  # seconds under load; null: unknown utilisation
    utilisation = models.FloatField(null=True)  # mean, 0 to 1
    tensor = models.FloatField(null=True)  # mean, 0 to 1: its tensor cores at work
    bandwidth = models.FloatField(null=True)  # mean, 0 to 1: of its memory's
    temperature = models.FloatField(null=True)  # mean, °C
    temperature_max = models.FloatField(null=True)
    power_watts = models.FloatField(null=True)  # mean
    memory_max_mib = models.FloatField(null=True)
    xids = models.PositiveIntegerField(null=True)  # lower bound; null: no source reported Xids
    ecc_corrected = models.FloatField(null=True)  # more in the hour; null: not exported
    nvlink_errors = models.FloatField(null=True)  # errors, replays and recoveries in the hour; null: not exported
    throttled = models.FloatField(null=True)  # part of the time in which throttling grew, 0 to 1; null: not exported
    # Allocation by placements of pods: of a GPU, its holders as a whole or in part; of a slice, its holders.
    allocated_s = models.FloatField(null=True)  # seconds of it, to any pod; null: nothing tells
    namespace = models.CharField(max_length=253, blank=True)  # of the pods that used it longest; blank: none, or null
    workload = models.CharField(max_length=320, blank=True)  # topmost owner of these pods, such as `JobSet/train`

    class Meta:
        indexes = [models.Index(fields=["cluster", "node_name", "hour"]), models.Index(fields=["hour"])]


class GpuMinuteBlock(models.Model):
    """A quarter of an hour of a node's GPU telemetry at one-minute steps, if exporters are read directly.

    It is kept for 24 h (docs/design/0011). `health.sources.minutes` writes and reads it.
    """

    pk = models.CompositePrimaryKey("cluster_id", "node_name", "begins_at")
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="gpu_minute_blocks")
    node_name = models.CharField(max_length=253)
    begins_at = models.DateTimeField()
    kept_at = models.DateTimeField()  # when a minute of it was last written
    packed = models.BinaryField()  # its devices, and a column of numbers per metric

    class Meta:
        indexes = [models.Index(fields=["begins_at", "cluster"])]
