"""The taints of a node that keep a DaemonSet's pods away, as Kubernetes matches them. Pure.

kubernetes.io/docs/reference/kubernetes-api/definitions/toleration-v1: an empty effect matches all effects, an empty
key with Exists all taints, and the operator is Equal where none is given. The operators that compare numbers are
behind a feature gate (TaintTolerationComparisonOperators), which is not ours to see: a taint that one of them might
tolerate is not blamed.
"""

from collections.abc import Mapping, Sequence

StoredTaint = Mapping[str, str]
StoredToleration = Mapping[str, str]

KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})

# Tolerations that the DaemonSet controller adds to its pods, so that neither a cordon nor disk pressure excludes them
# (kubernetes.io/docs/concepts/workloads/controllers/daemonset, "Taints and tolerations").
ALWAYS: frozenset[tuple[str, str]] = frozenset(
    {
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    }
)


def untolerated_taints(taints: Sequence[StoredTaint], tolerations: Sequence[StoredToleration]) -> list[StoredTaint]:
    """The taints that a DaemonSet with these tolerations does not tolerate."""
    return [
        taint
        for taint in taints
        if taint.get("effect") in KEEPS_AWAY
        and (taint.get("key", ""), taint.get("effect", "")) not in ALWAYS
        and not any(tolerates(toleration, taint) for toleration in tolerations)
    ]


def tolerates(toleration: StoredToleration, taint: StoredTaint) -> bool:
    effect, key = toleration.get("effect") or "", toleration.get("key") or ""
    operator = toleration.get("operator") or "Equal"
    if effect and effect != taint.get("effect"):
        return False
    if not key:
        return operator == "Exists"
    if key != taint.get("key"):
        return False
    if operator == "Equal":
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return True


def spell(taint: StoredTaint) -> str:
    """Returns the taint as kubectl writes it: nvidia.com/gpu=present:NoSchedule."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"
