from django.db import models
from django.db.models import Exists, OuterRef

from people.rights import Deed, reach
from rollouts.lifecycle import TARGET_MOVES, TargetState
from rollouts.models.hold import Hold
from rollouts.models.moving import Moving
from rollouts.models.stage import Stage, StageKind
from rollouts.models.wave import Wave

LET_OFF = "not-begun"  # shown of a target that the plan left as it was: its hold is off, and it was never changed


class TargetQuerySet(models.QuerySet["Target"]):
    def visible_to(self, user) -> "TargetQuerySet":
        seen = reach(user, Deed.SEE)
        return self if seen.everywhere else self.filter(stage__plan__cluster__in=seen.cluster_ids)

    def forward(self) -> "TargetQuerySet":
        return self.exclude(stage__kind=StageKind.BACK)

    def with_holds(self) -> "TargetQuerySet":
        """Each knows whether we keep it from changing, or want to: what `shown_state` rests on."""
        holds = Hold.objects.filter(plan=OuterRef("stage__plan"), node_uid=OuterRef("node_uid")).in_the_way()
        return self.annotate(is_kept=Exists(holds))


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

    is_kept: bool  # set by `with_holds`

    @property
    def shown_state(self) -> str:
        """Its state, but for a target whose hold is off without a release: the plan ends, and never came to it."""
        return LET_OFF if self.state == TargetState.HELD and not self.is_kept else self.state

    def event_subject(self) -> dict[str, models.Model]:
        return {"plan": self.stage.plan, "stage": self.stage, "target": self}
