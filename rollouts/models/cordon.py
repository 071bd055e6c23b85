from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import models
from django.db.models import Q

from gpu.external_controllers import EXTERNAL_CONTROLLERS, LONGEST, ExternalController


class CordonQuerySet(models.QuerySet["Cordon"]):
    def in_force(self) -> CordonQuerySet:
        return self.filter(ended_at__isnull=True)

    def shown(self, plan) -> CordonQuerySet:
        """Returns the plan's cordons in force, and those that this halt left to somebody else."""
        left = Q(is_of_halt=True, wanted_since__gte=plan.state_since, placed_at=None) & ~Q(left_reason="")
        return self.filter(Q(ended_at__isnull=True) | left, plan=plan)

    def end(self, *, now: datetime, left_reason: str = "") -> int:
        return self.in_force().update(ended_at=now, left_reason=left_reason[:500], trouble="")


def intend_cordons(plan, nodes: Mapping[str, str], *, now: datetime, is_of_halt: bool = False) -> None:
    """Records the cordons to write for nodes (uid → name). Call it in the transaction of the decision."""
    there = Cordon.objects.in_force().filter(plan=plan, node_uid__in=nodes)
    known = set(there.values_list("node_uid", flat=True))
    there.update(wanted_since=now, trouble="")
    Cordon.objects.bulk_create(
        Cordon(plan=plan, node_uid=uid, node_name=name, wanted_since=now, is_of_halt=is_of_halt)
        for uid, name in sorted(nodes.items())
        if uid not in known
    )


class Cordon(models.Model):
    """A cordon that a plan owns: of a released node until its test Job completes (Z8), or after a halt.

    The row is the intent. For a test Job it is written with the intent to release, and the cordon is in the patch that
    removes the hold. The cordon is written again if somebody removes it, and is removed until that is read back.
    """

    plan = models.ForeignKey("rollouts.Plan", models.CASCADE, related_name="cordons")
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    # A person, or the plan's option, asked for it after a halt: no test Job ends it.
    is_of_halt = models.BooleanField(default=False, db_default=False)
    wanted_since = models.DateTimeField()
    placed_at = models.DateTimeField(null=True)  # when it was first read back; null: not yet
    removed_at = models.DateTimeField(null=True)  # when somebody else was last found to have taken it away
    ended_at = models.DateTimeField(null=True)  # when it was read as removed, or as no longer ours
    left_reason = models.CharField(max_length=500, blank=True)  # why the node is cordoned after it; blank: it is not
    trouble = models.CharField(max_length=500, blank=True)  # why the last try did not work

    objects = CordonQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["plan", "node_uid"], condition=Q(ended_at__isnull=True), name="one_cordon_in_force_per_node"
            ),
        ]
        ordering = ["plan_id", "node_name", "pk"]

    @property
    def says(self) -> str:
        if self.ended_at:
            return self.left_reason
        how = "" if self.placed_at else " The cluster does not show it yet."
        until = "until the plan resumes, rolls back or ends" if self.is_of_halt else "until its test Job completes"
        return f"Cordoned by this plan {until}.{how} {self.trouble}".strip()


class ExclusionQuerySet(models.QuerySet["Exclusion"]):
    def in_force(self) -> ExclusionQuerySet:
        return self.filter(ended_at__isnull=True)

    def shown(self) -> ExclusionQuerySet:
        """Returns the exclusions in force, and those restored to another value than before."""
        return self.filter(Q(ended_at__isnull=True) | (Q(placed_at__isnull=False) & ~Q(left_reason="")))


class Exclusion(models.Model):
    """The exclusion of a released node from one external controller, with the previous value.

    The row is the intent and is written with the intent to release. Its label or annotation is in the patch that
    removes the hold, and is restored until that is read back.
    """

    plan = models.ForeignKey("rollouts.Plan", models.CASCADE, related_name="exclusions")
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    controller = models.CharField(
        max_length=16, choices=[(one.key, one.title) for one in EXTERNAL_CONTROLLERS.values()]
    )
    was = models.CharField(max_length=LONGEST, null=True)  # noqa: DJ001 (absent and blank are two things in Kubernetes)
    is_wanted = models.BooleanField(default=True)
    wanted_since = models.DateTimeField()
    placed_at = models.DateTimeField(null=True)  # when it was read back; null: not yet
    ended_at = models.DateTimeField(null=True)  # when no mark of ours was read any more
    left_reason = models.CharField(max_length=500, blank=True)  # why it is not as it was; blank: it is
    trouble = models.CharField(max_length=500, blank=True)  # why the last try did not work

    objects = ExclusionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["plan", "node_uid", "controller"],
                condition=Q(ended_at__isnull=True),
                name="one_exclusion_in_force_per_controller",
            ),
        ]
        indexes = [models.Index(fields=["plan"], condition=Q(ended_at=None), name="exclusions_in_force")]
        ordering = ["plan_id", "node_name", "controller", "pk"]

    @property
    def says(self) -> str:
        one = self.external_controller
        if self.ended_at:
            return self.left_reason
        was = "was not there" if self.was is None else f"was “{self.was}”"
        how = "" if self.placed_at else ", not shown by the cluster yet"
        return f"{one.mark}, which {was} before{how}. {self.trouble}".strip()

    @property
    def external_controller(self) -> ExternalController:
        return EXTERNAL_CONTROLLERS[self.controller]
