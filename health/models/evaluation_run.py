from django.db import models


class EvaluationRun(models.Model):
    """A time in which a cluster's findings were evaluated again and again. Between two runs, nobody did that."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="evaluation_runs")
    began_at = models.DateTimeField()
    until = models.DateTimeField()  # of the last round, at most a minute behind

    class Meta:
        indexes = [models.Index(fields=["cluster", "until"], name="run_by_cluster_and_end")]

    def __str__(self) -> str:
        return f"{self.cluster_id}: {self.began_at:%F %T} to {self.until:%F %T}"
