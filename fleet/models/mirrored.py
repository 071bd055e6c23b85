"""What every row has that mirrors an object of a cluster."""

from django.db import models


class Mirrored(models.Model):
    """An object as its cluster last showed it. Each names its cluster, and the way back from there."""

    uid = models.CharField(max_length=64)  # what no other object of the cluster has, or ever had
    changed_at = models.DateTimeField()  # when we last saw something change that we keep

    class Meta:
        abstract = True


class Namespaced(Mirrored):
    """One that has its name in a namespace."""

    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)

    class Meta:
        abstract = True
        ordering = ["cluster_id", "namespace", "name"]


def one_per_uid(what: str) -> models.UniqueConstraint:
    return models.UniqueConstraint(fields=["cluster", "uid"], name=f"one_{what}_per_uid")
