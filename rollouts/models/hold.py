from collections.abc import Collection

from django.db import models
from django.db.models import F, Q

from fleet.models import GoneNode


class HoldQuerySet(models.QuerySet["Hold"]):
    def blocking_changes(self) -> "HoldQuerySet":
        """Returns the holds that keep a node from changing, or will."""
        return self.filter(Q(is_wanted=True) | Q(placed_at__isnull=False))

    def in_force(self) -> "HoldQuerySet":
        """Returns the holds of unfinished plans, which other plans must not touch."""
        return self.filter(ended_at__isnull=True, is_foreign=False)

    def of_nodes_there(self, cluster_id: int) -> "HoldQuerySet":
        """Returns the holds of existing nodes; a deleted node takes its label along."""
        return self.exclude(node_uid__in=GoneNode.objects.filter(cluster=cluster_id).values("uid"))

    def unfinished(self) -> "HoldQuerySet":
        """Returns the holds whose label is not seen to be as wanted."""
        wanted_not_there = Q(is_wanted=True, placed_at__isnull=True)
        there_not_wanted = Q(is_wanted=False, placed_at__isnull=False)
        return self.filter(wanted_not_there | there_not_wanted)

    def older(self) -> "HoldQuerySet":
        """Returns the holds whose label was read back before it was wanted again."""
        return self.filter(is_wanted=True, is_foreign=False, placed_at__lt=F("wanted_since"))


class Hold(models.Model):
    """The state that a plan wants for one node of its driver object: held, or released.

    The row is the intent. It is written before the label, and the label is written until it is read back, so that a
    crash loses nothing and repeats nothing.
    """

    plan = models.ForeignKey("rollouts.Plan", models.CASCADE, related_name="holds")
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    is_wanted = models.BooleanField(default=True)
    wanted_since = models.DateTimeField()
    placed_at = models.DateTimeField(null=True)  # when the label was read back; null: it is not there
    freed_at = models.DateTimeField(null=True)  # when its removal was observed after the release; null: not yet
    is_foreign = models.BooleanField(default=False)  # the label was there before us: never ours to remove
    ended_at = models.DateTimeField(null=True)  # when its plan ended: another plan may then change the node
    trouble = models.CharField(max_length=500, blank=True)  # why the last try did not work

    objects = HoldQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["plan", "node_uid"], name="one_hold_per_node"),
            # Whatever they change, and though they started in the same second: a node's UID is unique over clusters.
            models.UniqueConstraint(
                fields=["node_uid"],
                condition=Q(ended_at__isnull=True, is_foreign=False),
                name="one_change_at_a_time_per_node",
            ),
        ]
        ordering = ["plan_id", "node_name"]

    @property
    def is_blocking_changes(self) -> bool:
        """Returns the same as the query `blocking_changes`."""
        return self.is_wanted or self.placed_at is not None

    @property
    def is_older(self) -> bool:
        """Returns the same as the query `older`."""
        is_ours = self.is_wanted and not self.is_foreign
        return is_ours and self.placed_at is not None and self.placed_at < self.wanted_since


def plans_that_hold(node_uids: Collection[str]) -> dict[str, str]:
    """Returns which unfinished plan changes the driver of each node, as a sentence by node UID."""
    rows = Hold.objects.filter(node_uid__in=list(node_uids), ended_at=None).order_by("pk").select_related("plan")
    ours = "changes this node's driver. Exclude the node there, or wait until the plan ends."
    others = "changes the driver object of this node: once free, the node would change at once. Wait until it ends."
    return {
        row.node_uid: f"Plan #{row.plan_id} “{row.plan.title}” {others if row.is_foreign else ours}" for row in rows
    }
