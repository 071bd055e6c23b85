"""Which nodes a pod may run on: selector, required affinity, taints. Shared by scheduler and DaemonSet controller."""

from collections.abc import Iterable
from typing import Any

from simulator.actors.objects import Obj, is_unschedulable, labels, name, spec
from simulator.selectors import from_label_selector

HARD = ("NoSchedule", "NoExecute")
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def selects(pod_spec: Obj, node: Obj) -> bool:
    """nodeSelector and requiredDuringScheduling node affinity."""
    has = labels(node)
    if any(has.get(key) != value for key, value in (pod_spec.get("nodeSelector") or {}).items()):
        return False
    terms = _required_terms(pod_spec)
    return not terms or any(_term_matches(term, node) for term in terms)


def _required_terms(pod_spec: Obj) -> list[Obj]:
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return required.get("nodeSelectorTerms") or []


def _term_matches(term: Obj, node: Obj) -> bool:
    """An empty term takes no node: node-selector-term in kubernetes.io/docs/reference/kubernetes-api."""
    if not (term.get("matchExpressions") or term.get("matchFields")):
        return False
    by_label = from_label_selector({"matchExpressions": term.get("matchExpressions") or []})
    by_field = from_label_selector({"matchExpressions": term.get("matchFields") or []})
    if by_label is None or by_field is None:
        return False
    return by_label.matches(labels(node)) and by_field.matches({"metadata.name": name(node)})


def pinned_node(pod: Obj) -> str:
    """The one node a DaemonSet's pod is made for; empty for other pods."""
    for term in _required_terms(spec(pod)):
        for field in term.get("matchFields") or ():
            if field["key"] == "metadata.name" and field["operator"] == "In" and len(field["values"]) == 1:
                return str(field["values"][0])
    return ""


def taints(node: Obj) -> list[Obj]:
    """A cordoned node counts as tainted even before the node controller has written the taint."""
    written = spec(node).get("taints") or []
    if is_unschedulable(node) and all(taint["key"] != UNSCHEDULABLE["key"] for taint in written):
        return [*written, UNSCHEDULABLE]
    return written


def untolerated(node: Obj, tolerations: Iterable[Obj], effects: tuple[str, ...] = HARD) -> Obj | None:
    """The first taint that keeps a pod away."""
    tolerations = list(tolerations)
    for taint in taints(node):
        if taint["effect"] in effects and not any(tolerates(each, taint) for each in tolerations):
            return taint
    return None


def tolerates(toleration: dict[str, Any], taint: Obj) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
