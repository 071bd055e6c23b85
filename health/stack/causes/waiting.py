"""What an operand waits for without anything being wrong with itself. Pure."""

from gpu.operands import COMPUTE_DOMAIN
from health.stack.causes.base import Cause, CauseRule, Signs, Weight
from health.stack.causes.placement import is_selected


def leaving(signs: Signs) -> Cause | None:
    if signs.pod is None or not signs.pod.is_leaving:
        return None
    return Cause(
        "leaving",
        Weight.WAITING,
        "The pod is being deleted.",
        "One that stays so for minutes hangs on its node: look at the kubelet and the container runtime there.",
    )


def not_selected(signs: Signs) -> Cause | None:
    """It runs where its DaemonSet no longer wants it; the controller removes it (gpu-operator #2255: it may not).

    The label that a ComputeDomain's DaemonSet selects by comes and goes with the workload: what its pod says counts.
    """
    if signs.pod is None or not signs.has_daemon_set or signs.operand == COMPUTE_DOMAIN or is_selected(signs):
        return None
    return Cause(
        "misscheduled",
        Weight.WAITING,
        "Its DaemonSet no longer selects this node: the pod is to go.",
        "If it stays, the upgrade controller counts it as misscheduled and moves no node: delete the pod.",
    )


def node_silent(signs: Signs) -> Cause | None:
    if signs.is_node_ready is not None:
        return None
    return Cause(
        "node_silent",
        Weight.WRONG,
        "The node's kubelet stopped reporting: what is shown of its pods is old.",
        "Look at the node first.",
        signs.node_says,
    )


def waits_for_others(signs: Signs) -> Cause | None:
    """Its init containers wait for operands that are not ready on this node."""
    if signs.pod is None or not signs.not_ready or not signs.pod.is_starting:
        return None
    first, *rest = signs.not_ready
    more = f", then for the {' and the '.join(_lower(title) for title in rest)}" if rest else ""
    return Cause(
        "waits",
        Weight.WAITING,
        f"It waits for the {_lower(first)}, which is not ready on this node{more}.",
    )


def node_not_ready(signs: Signs) -> Cause | None:
    if signs.is_node_ready is not False:
        return None
    return Cause(
        "node_not_ready", Weight.WRONG, "The node itself is not ready.", "Look at the node first.", signs.node_says
    )


def _lower(title: str) -> str:
    first, _, rest = title.partition(" ")
    return title if first.isupper() else f"{first.lower()} {rest}".rstrip()


FIRST: tuple[CauseRule, ...] = (leaving, node_silent, not_selected)
THEN: tuple[CauseRule, ...] = (waits_for_others,)
LAST: tuple[CauseRule, ...] = (node_not_ready,)
