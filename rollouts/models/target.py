from django.db import models

from people.rights import Deed, reach
from rollouts.lifecycle import TARGET_MOVES, TargetState
from rollouts.models.moving import Moving
from rollouts.models.stage import Stage, StageKind
from rollouts.models.wave import Wave


class TargetQuerySet(models.QuerySet["Target"]):
    def visible_to(self, user) -> "TargetQuerySet":
        seen = reach(user, Deed.SEE)
        return self if seen.everywhere else self.filter(stage__plan__cluster__in=seen.cluster_ids)

    def forward(self) -> "TargetQuerySet":
        return self.exclude(stage__kind=StageKind.BACK)


class Target(Moving):
    """One node in a stage."""

    states = TargetState
    moves = TARGET_MOVES

    stage = models.ForeignKey(Stage, models.CASCADE, related_name="targets")
    wave = models.ForeignKey(Wave, models.SET_NULL, null=True, related_name="targets")
    position = models.PositiveIntegerField()  # the order in which targets are released
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    facts = models.JSONField(default=dict)  # kernel, os_image, gpu_product, zone, … when the plan was sealed
    before = models.JSONField(null=True)  # the node when its release was decided; null: not released yet
    released_at = models.DateTimeField(null=True)  # when the label was seen to be gone
    has_escaped = models.BooleanField(default=False)  # it changed although it was held

    objects = TargetQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stage", "node_uid"], name="one_target_per_node")]
        ordering = ["stage", "position"]

    def event_subject(self) -> dict[str, models.Model]:
        return {"plan": self.stage.plan, "stage": self.stage, "target": self}
