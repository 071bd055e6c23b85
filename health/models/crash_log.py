from django.db import models


class CrashLog(models.Model):
    """The last log lines of a crashed operand container, for crashes that Kubernetes itself does not explain."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="crash_logs")
    pod_uid = models.CharField(max_length=64)
    container = models.CharField(max_length=253)
    restarts = models.PositiveIntegerField()  # which crash it is of
    lines = models.TextField(blank=True)  # likely secrets are redacted
    refused = models.CharField(max_length=500, blank=True)  # why it could not be read; blank: it was
    read_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "pod_uid", "container"], name="one_crash_log_per_container")
        ]
