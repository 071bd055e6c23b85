"""Tell browsers that a plan changed. What changed they fetch themselves, as far as they may see it."""

from fleet.messages import announce


def plan_group(plan_id: int) -> str:
    return f"plan-{plan_id}"


PLANS_GROUP = "plans"


def plan_changed(plan_id: int, cluster_id: int, seq: int) -> None:
    """`seq` is the key of the event that was written with the change: a gap makes the page fetch again."""
    message = {"type": "plan.changed", "plan": plan_id, "cluster": cluster_id, "seq": seq}
    announce.send((plan_group(plan_id), PLANS_GROUP), message)
