"""Tell browsers that a plan changed. What changed they fetch themselves, as far as they may see it."""

from fleet.messages import announce


def plan_group(plan_id: int) -> str:
    return f"plan-{plan_id}"


def plans_of(cluster_id: int) -> str:
    """The key of who hears every plan of a cluster."""
    return f"plans-of-{cluster_id}"


PLANS_GROUP = "plans"


def plan_changed(plan_id: int, cluster_id: int, seq: int) -> None:
    """`seq` is the key of the event that was written with the change: a gap makes the page fetch again."""
    topic = plan_group(plan_id)
    message = {"type": "topic.changed", "topic": topic, "keys": [topic, plans_of(cluster_id)], "seq": seq}
    announce.send((topic, PLANS_GROUP), message)


FOLLOWED = "followed"  # the topic of every rollout that others drive: they are listed with the plans


def followed_changed(cluster_id: int, seq: int) -> None:
    """To who hears every plan of the cluster. `seq` is the count of the rollout's rounds."""
    message = {"type": "topic.changed", "topic": FOLLOWED, "keys": [plans_of(cluster_id)], "seq": seq}
    announce.send((PLANS_GROUP,), message)
