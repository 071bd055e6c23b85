"""The nodes that a DaemonSet selects. Pure."""

from collections.abc import Mapping

from health.stack.causes.affinity import affinity_takes_node
from health.stack.causes.base import Signs


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Returns whether a node selector takes a node. An empty selector takes every node."""
    return not differing(selector, labels)


def differing(selector: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, str]:
    """The node's values of the selector's labels that differ, by label. Blank: the node has no such label."""
    return {key: labels.get(key, "") for key, value in selector.items() if labels.get(key) != value}


def is_selected(signs: Signs) -> bool:
    """Returns whether the DaemonSet wants a pod on the node, taints aside."""
    chosen = signs.has_daemon_set and selects(signs.selector, signs.labels)
    return chosen and affinity_takes_node(signs.affinity, signs.labels, signs.node)
