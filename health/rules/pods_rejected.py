"""New GPU pods are rejected at creation by a quota, a LimitRange or a webhook, so none is Pending.

Such a pod never exists (Z31): only Events of its owner's controller report it. Jobs, ReplicaSets and StatefulSets
report how many pods are missing. An owner that creates pods itself, such as a PyTorchJob or a RayCluster, has only its
operator's Events, without a number.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, NamedTuple

from health.rules.base import EVENTS, JOBS, OWNER, PODS, REPLICA_SETS, STATEFUL_SETS, RejectedOwner, Severity, Wrong
from wording.numbers import are, count

# kubernetes/apiserver, pkg/admission/plugin/resourcequota/controller.go.
QUOTA = re.compile(
    r"exceeded quota: (?P<name>[^,]+), requested: (?P<requested>.*?), used: .*?, limited: (?P<limited>.*)$", re.DOTALL
)
WEBHOOK = re.compile(r"admission webhook (?P<name>\"[^\"]+\")")
MORE_ROOM = "end one of those, or have that quota raised."
# Its name is another each time. KubeRay's own words: ray-operator/controllers/ray/raycluster_controller.go.
CALLED = re.compile(
    r"^Error creating: |^Failed to create (?:head|worker) Pod (?:for the cluster )?[^\s,]+, |"
    r"pods? \"[^\"]*\" is (?:forbidden|invalid): "
)
UNSAID = "Whether they ask for GPUs, nothing that is read says."


class Rejection(NamedTuple):
    says: re.Pattern[str]
    reason: str  # the probable cause
    helps: str


# In the words of Kubernetes' own admission plugins and of its validation (pkg/apis/core/validation).
REJECTIONS = (
    Rejection(
        re.compile(r"failed quota: [^:]+: must specify"),
        "A ResourceQuota of its namespace counts what its template does not say.",
        "Write what is named into the requests and limits of its template, or give the namespace a LimitRange with "
        "defaults.",
    ),
    Rejection(
        re.compile(r"(?:minimum|maximum) \S+ usage per |max limit to request ratio per "),
        "A LimitRange of its namespace forbids such a pod.",
        "Change the requests of its template, or the LimitRange.",
    ),
    Rejection(
        re.compile(r"Limit must be set for non overcommitable|must be an integer|must be equal to \S+ limit"),
        "GPUs must be requested in whole numbers and as a limit.",
        "Write the GPUs into the limits of its template: a whole number. Part of a GPU is a MIG slice or a shared GPU, "
        "which are resources of their own, or are set up on the node.",
    ),
    Rejection(
        re.compile(r"violates PodSecurity|security context constraint", re.IGNORECASE),
        "The pod security of its namespace forbids such a pod.",
        "Change its securityContext as the words say, or the label pod-security.kubernetes.io/enforce of the namespace "
        "(on OpenShift: the SCC of its service account).",
    ),
    Rejection(
        re.compile(r"RuntimeClass|no PriorityClass with name|serviceaccount \"[^\"]*\" not found", re.IGNORECASE),
        "An object that its template names is missing.",
        "Create the object that the message names, or remove it from the template.",
    ),
)


@dataclass(frozen=True)
class PodsRejected:
    key: ClassVar[str] = "pods-rejected"
    title: ClassVar[str] = "Pods rejected at creation"
    subject: ClassVar[str] = OWNER
    reads: ClassVar[tuple[str, ...]] = (EVENTS, PODS, JOBS, REPLICA_SETS, STATEFUL_SETS)
    after: ClassVar[timedelta] = timedelta(minutes=5)  # a rollout that replaces pods may wait for the room of old ones

    def evaluate(self, owner: RejectedOwner) -> Wrong | None:
        if owner.lacking is not None and owner.lacking < 1:
            return None
        told, evidence = (
            CALLED.sub("", owner.message).strip().rstrip("."),
            {"said": owner.message, "resources": owner.asks},
        )
        lacks = f"Pods of {owner.name} are rejected at creation"
        if owner.lacking is not None:
            lacks = f"{count(owner.lacking, 'pod')} of {owner.name} {are(owner.lacking)} rejected at creation"
        severity, reason, helps = _read(owner, told)
        return Wrong(
            severity if owner.is_of_gpus else Severity.NOTE,
            f"{lacks}: {told[:300]}.{'' if owner.is_of_gpus else f' {UNSAID}'}",
            helps,
            {**evidence, "lacking": owner.lacking},
            why=f"{reason} {helps}",  # the words count what is used, and the pods that lack
            probable_cause=reason,
        )


def _read(owner: RejectedOwner, told: str) -> tuple[Severity, str, str]:
    if quota := QUOTA.search(told):
        name = f"ResourceQuota {owner.namespace}/{quota['name']}"
        if _never_fits(_amounts(quota["requested"]), _amounts(quota["limited"])):
            return (
                Severity.WARNING,
                f"One pod of it asks for more than {name} allows in all.",
                "Ask for less in its template, or have that quota raised: it never comes by itself.",
            )
        return (
            Severity.NOTE,  # as where work waits for its turn by a quota
            f"{name} is used up.",
            f"It comes once others of its namespace end. Where it must not wait: {MORE_ROOM}",
        )
    if webhook := WEBHOOK.search(told):
        helps = "Change its template as it says, or ask who runs it (kubectl get validatingwebhookconfigurations)."
        return Severity.WARNING, f"The admission webhook {webhook['name']} says no.", helps
    for one in REJECTIONS:
        if one.says.search(told):
            return Severity.WARNING, one.reason, one.helps
    return Severity.WARNING, "", "What the API server says names who rejects it: change its template, or that."


def _amounts(said: str) -> Mapping[str, int]:
    """Returns by resource the amounts that are whole numbers."""
    pairs = (each.strip().partition("=") for each in said.split(","))
    return {name: int(amount) for name, _, amount in pairs if amount.isascii() and amount.isdigit()}


def _never_fits(requested: Mapping[str, int], limited: Mapping[str, int]) -> bool:
    return any(amount > limited[name] for name, amount in requested.items() if name in limited)
