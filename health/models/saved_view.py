from django.db import models


class SavedView(models.Model):
    """A saved filter, order and columns of one table."""

    user = models.ForeignKey("people.User", models.CASCADE, related_name="saved_views")
    table = models.CharField(max_length=16)  # gpus, pods, events
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=2000, blank=True)  # as in the address; blank: the default view
    saved_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "table", "name"], name="one_view_per_table_and_name")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
