"""Notifies browsers that a plan changed; they fetch what they may see."""

from fleet.messages import announce


def plan_group(plan_id: int) -> str:
    return f"plan-{plan_id}"


def plans_of(cluster_id: int) -> str:
    """Returns the group of those who see every plan of a cluster."""
    return f"plans-of-{cluster_id}"


PLANS_GROUP = "plans"


def plan_changed(plan_id: int, cluster_id: int, seq: int) -> None:
    """Notifies browsers. `seq` is the key of the event written with the change; a gap makes a page fetch again."""
    topic = plan_group(plan_id)
    message = {"type": "topic.changed", "topic": topic, "keys": [topic, plans_of(cluster_id)], "seq": seq}
    announce.send((topic, PLANS_GROUP), message)


EXTERNAL_ROLLOUTS = "external-rollouts"  # the topic of every external rollout, listed with the plans


def external_rollouts_changed(cluster_id: int, seq: int) -> None:
    """Notifies those who see every plan of the cluster. `seq` counts the rollout's rounds."""
    message = {"type": "topic.changed", "topic": EXTERNAL_ROLLOUTS, "keys": [plans_of(cluster_id)], "seq": seq}
    announce.send((PLANS_GROUP,), message)
