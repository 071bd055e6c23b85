from django.db import models


class GpuView(models.Model):
    """A saved filter, order and columns of the GPU table."""

    user = models.ForeignKey("people.User", models.CASCADE, related_name="gpu_views")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=2000, blank=True)  # as the address has it; blank: all, as it usually is
    saved_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="one_gpu_view_per_name")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
