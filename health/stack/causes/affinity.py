"""The nodes that a DaemonSet's required node affinity takes, as Kubernetes matches it. Pure.

kubernetes.io/docs/reference/kubernetes-api/definitions/node-selector-v1-core: one term of several is enough, of a term
every expression must hold, and a term without any takes no node. The device plugin's own chart and Google's device
plugins choose their nodes by it and have no node selector (k8s-device-plugin, values.yaml; kubernetes,
cluster/addons/device-plugins/nvidia-gpu).
"""

from collections.abc import Mapping, Sequence
from typing import Any

StoredRequirement = Mapping[str, Any]  # key, operator, values; field: it is about the node's name and not about a label
StoredTerm = Sequence[StoredRequirement]


def affinity_takes_node(terms: Sequence[StoredTerm], labels: Mapping[str, str], node: str) -> bool:
    """Returns whether the affinity takes a node. Without a term every node is taken."""
    return not terms or any(_term_matches(term, labels, node) for term in terms)


def _term_matches(term: StoredTerm, labels: Mapping[str, str], node: str) -> bool:
    return bool(term) and all(_is_true(each, {"metadata.name": node} if each.get("field") else labels) for each in term)


def _is_true(expression: StoredRequirement, labels: Mapping[str, str]) -> bool:
    """An operator that is not known takes no node, so that nothing is missed there."""
    key, values = expression.get("key", ""), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt" | "Lt" as operator:
            return _compares(operator, labels.get(key), values)
        case _:
            return False


def _compares(operator: str, said: str | None, values: Sequence[str]) -> bool:
    try:
        value, bound = int(said or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return value > bound if operator == "Gt" else value < bound
