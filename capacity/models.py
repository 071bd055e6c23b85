from django.db import models


class FreeGpuSample(models.Model):
    """The free GPUs of a pool at the end of an hour (`capacity.free_gpus`). At most one row an hour and pool."""

    pool = models.ForeignKey("fleet.Pool", models.CASCADE, related_name="free_gpu_samples", db_index=False)
    hour = models.DateTimeField()  # end of the hour; the row was written within 15 minutes after it
    free = models.FloatField()
    usable = models.FloatField()  # by the usual pod; the rest is stranded
    stranded = models.JSONField(default=dict)  # by cause

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pool", "hour"], name="one_free_gpu_sample_per_pool_and_hour")]
        indexes = [models.Index(fields=["hour"])]
        ordering = ["hour"]

    def __str__(self) -> str:
        return f"{self.free:g} free GPUs at {self.hour}"
