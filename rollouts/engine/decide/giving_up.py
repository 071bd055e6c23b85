"""Giving a plan up: the old version is put back, what never changed is let go, what changed stays, held. Pure."""

from datetime import datetime

from rollouts.engine.decide.acts import Decision, LiftHolds, MovePlan
from rollouts.engine.decide.going_back import in_the_operators_hands, is_at_work, is_ours, ours, restore
from rollouts.engine.decide.releasing import SOON
from rollouts.engine.picture import Picture
from rollouts.gates.base import count, names
from rollouts.lifecycle import PlanState


def abort(picture: Picture, *, now: datetime) -> Decision:  # noqa: ARG001
    """Give the plan up: what never changed is as before, what changed stays as it is, and held."""
    if picture.write_intended and not (picture.has_old_version or picture.has_new_version):
        because = f"Given up. The version is {picture.object_version} by somebody else's hand; every node stays held."
        return Decision(because, moves=(MovePlan(PlanState.ABORTED, because),))
    if picture.write_intended and (restoring := restore(picture)):
        return restoring
    if not picture.write_intended and (held := ours(picture)):
        return Decision(f"Letting {count(len(held), 'node')} go.", acts=(LiftHolds(held),), look_again_in=SOON)
    if waiting := in_the_operators_hands(picture) or _still_changing(picture):
        return waiting
    left = tuple(node.name for node in picture.nodes if picture.write_intended and not picture.is_as_before(node))
    because = _what_is_left(picture, left) if left else "Given up. No node had changed."
    return Decision(because, moves=(MovePlan(PlanState.ABORTED, because),))


def _still_changing(picture: Picture) -> Decision | None:
    """Nodes that the operator takes to the new driver, or back again: which of the two shows when it is through."""
    busy = tuple(node.name for node in picture.nodes if picture.write_intended and is_at_work(node) and is_ours(node))
    if not busy:
        return None
    return Decision(f"Waiting until the operator is through with {names(busy)}.", look_again_in=SOON)


def _what_is_left(picture: Picture, left: tuple[str, ...]) -> str:
    helps = f"Take their label off, and the operator puts {picture.from_version} back on them (docs/takeover.md)."
    return f"Given up. {names(left)} changed or failed, and stay held. {helps}"
