"""Before the version is written: every node of the driver object is held, and seen to be (hazard Z1). Pure."""

from datetime import datetime, timedelta

from rollouts.engine.decide.acts import Decision, MovePlan, PlaceHolds, WriteVersion
from rollouts.engine.decide.releasing import SOON
from rollouts.engine.decide.templates import changed_template
from rollouts.engine.picture import Picture
from rollouts.lifecycle import PlanState
from wording.numbers import count


def hold_all(picture: Picture, *, now: datetime) -> Decision:  # noqa: ARG001
    if picture.object_trouble:
        return Decision(picture.object_trouble, moves=(MovePlan(PlanState.HALTED, picture.object_trouble),))
    if picture.has_new_version and picture.write_intended:
        because = f"{picture.to_version} is written; every node of the object was held before."
        return Decision(because, moves=(MovePlan(PlanState.PROMOTING, because),), look_again_in=timedelta(0))
    if not picture.has_old_version:
        because = f"The version is {picture.object_version or 'not set'}; this plan starts from {picture.from_version}."
        return Decision(because, moves=(MovePlan(PlanState.HALTED, because),))
    if picture.template_change:
        because = changed_template(picture)
        return Decision(because, moves=(MovePlan(PlanState.HALTED, because),), void_because=because)
    if blocked := picture.stopped_because or picture.paused_because or picture.stale_because:
        return Decision(blocked)
    if not picture.policy.auto_upgrade:
        return Decision("autoUpgrade is off: the operator would not change any node. Switch it on, or abort.")
    if unheld := {node.uid: node.name for node in picture.nodes if not node.is_held and not node.has_begun}:
        total = len(picture.nodes)
        sentence = f"Holding every node of the driver object: {total - len(unheld)} of {count(total, 'node')} held."
        return Decision(sentence, acts=(PlaceHolds(unheld),), look_again_in=timedelta(0))
    if moving := [node for node in picture.nodes if node.has_begun]:
        return Decision(
            f"{count(len(moving), 'node')} still on the way from an earlier change, such as {moving[0].name}."
        )
    if picture.unsettled:
        return Decision(f"The controller has not seen the latest {picture.unsettled[0]} yet.", look_again_in=SOON)
    act = WriteVersion(picture.from_version, picture.to_version)
    return Decision(
        f"All {count(len(picture.nodes), 'node')} held; writing {picture.to_version}.", acts=(act,), look_again_in=SOON
    )
