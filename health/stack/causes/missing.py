"""Why there is no pod of an operand on a node that its DaemonSet selects. Pure."""

from health.stack.causes.base import Cause, CauseRule, Signs, Weight, words
from health.stack.causes.placement import is_selected
from health.stack.causes.tolerations import keeping_away, spell
from wording.numbers import either

# Who refuses a pod, in the words of Kubernetes' own admission plugins; OpenShift's constraints: gpu-operator #48.
SCC = "OpenShift's security context constraints do: look at the SCC of the operand's service account."
POD_SECURITY = "The namespace's Pod Security does: label it pod-security.kubernetes.io/enforce=privileged."
QUOTA = (
    "A quota does. Where a cluster limits the class system-node-critical, as GKE does outside kube-system, its "
    "namespace needs a ResourceQuota for that class."
)
RUNTIME_CLASS = "Its RuntimeClass is not there: kubectl get runtimeclass. It is made with the toolkit or by hand."
REFUSALS = (
    (words("security context constraint"), SCC),
    (words("violates podsecurity", "podsecuritypolicy"), POD_SECURITY),
    (words("exceeded quota", "insufficient quota"), QUOTA),
    (words("runtimeclass"), RUNTIME_CLASS),
    (words("admission webhook"), "An admission webhook does: what it says names it."),
)


def tainted(signs: Signs) -> Cause | None:
    away = keeping_away(signs.taints, signs.tolerations) if is_selected(signs) else []
    if not away:
        return None
    named = ", ".join(spell(taint) for taint in away)
    noun = either(len(away), "a taint", "taints")
    return Cause(
        "tainted",
        Weight.WRONG,
        f"The node has {noun} that it does not tolerate: {named}.",
        signs.advice(
            "Add a toleration to the ClusterPolicy's spec.daemonsets.tolerations (an NVIDIADriver has its own), or "
            "remove the taint.",
            "Add a toleration to its DaemonSet, or remove the taint.",
        ),
    )


def cannot_be_made(signs: Signs) -> Cause | None:
    """The DaemonSet's controller is refused: a quota, an admission policy, a RuntimeClass that is not there."""
    refused = [event.message for event in signs.daemon_set_events if event.reason == "FailedCreate"]
    if not refused or not is_selected(signs):
        return None
    action = next((action for pattern, action in REFUSALS if pattern.search(refused[0])), "What it says names who.")
    return Cause(
        "cannot_be_made",
        Weight.WRONG,
        "Its DaemonSet may not make pods: the API server refuses them.",
        action,
        refused[0],
    )


def unscheduled(signs: Signs) -> Cause | None:
    if not signs.unscheduled or not is_selected(signs):
        return None
    return Cause(
        "unscheduled",
        Weight.WRONG,
        "A pod of its DaemonSet was given no node: most likely the one for this node.",
        signs.advice("While one driver pod is unscheduled, the upgrade controller moves no node of the cluster.", ""),
        signs.unscheduled,
    )


def unseen(signs: Signs) -> Cause | None:
    if signs.sees_pods or not is_selected(signs):
        return None
    return Cause(
        "unseen",
        Weight.UNKNOWN,
        "Pods of this cluster were never seen: whether it runs is not known.",
        "The cluster's page says why pods are not seen.",
    )


def missing(signs: Signs) -> Cause | None:
    if not is_selected(signs):
        return None
    return Cause(
        "missing",
        Weight.WRONG,
        "No pod on this node, although its DaemonSet selects it.",
        "Look at the Events of the DaemonSet, and whether the cluster's controller-manager runs.",
    )


RULES: tuple[CauseRule, ...] = (unseen, tainted, cannot_be_made, unscheduled, missing)
