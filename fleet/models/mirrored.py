"""Base classes of rows that mirror an object of a cluster."""

from django.db import models


class Mirrored(models.Model):
    """An object as last observed. Each model has a foreign key to its cluster."""

    uid = models.CharField(max_length=64)  # unique in the cluster, also over time
    changed_at = models.DateTimeField()  # last observed change of stored fields

    class Meta:
        abstract = True


class Namespaced(Mirrored):
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)

    class Meta:
        abstract = True
        ordering = ["cluster_id", "namespace", "name"]


def one_per_uid(what: str) -> models.UniqueConstraint:
    return models.UniqueConstraint(fields=["cluster", "uid"], name=f"one_{what}_per_uid")
