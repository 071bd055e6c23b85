from collections.abc import Collection

from django.db import models

from fleet.models.visible import Visible


class GoneNodeQuerySet(Visible["GoneNode"]):
    """As nodes are seen: by the cluster, and by the pools it was in when it left, as long as those are there."""

    def in_pools(self, pool_ids: Collection[int]) -> models.Q:
        return models.Q(pk__in=GoneNode.pools.through.objects.filter(pool_id__in=pool_ids).values("gonenode_id"))


class GoneNode(models.Model):
    """A node that left its cluster: what its page goes on to say, for as long as its timeline is kept."""

    node_id = models.PositiveBigIntegerField(unique=True)  # the key that its row had, and its page's address still has
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="gone_nodes")
    uid = models.CharField(max_length=64)
    name = models.CharField(max_length=253)
    gone_at = models.DateTimeField()  # when it was seen to be gone
    was = models.JSONField(default=dict)  # what it was, by title
    pools = models.ManyToManyField("fleet.Pool", related_name="gone_nodes")  # those it was in when it left

    objects = GoneNodeQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["cluster", "name"])]
        ordering = ["-gone_at", "-pk"]

    def __str__(self) -> str:
        return self.name
