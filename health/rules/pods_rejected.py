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

from health.rules.base import EVENTS, JOBS, OWNER, PODS, REPLICA_SETS, STATEFUL_SETS, Problem, RejectedOwner, Severity
from wording.reports import LONGEST_SUMMARY, EvidenceItem, fit

# kubernetes/apiserver, pkg/admission/plugin/resourcequota/controller.go.
QUOTA = re.compile(
    r"exceeded quota: (?P<name>[^,]+), requested: (?P<requested>.*?), used: .*?, limited: (?P<limited>.*)$", re.DOTALL
)
WEBHOOK = re.compile(r"admission webhook (?P<name>\"[^\"]+\")")
# Its name is another each time. KubeRay's own words: ray-operator/controllers/ray/raycluster_controller.go.
CALLED = re.compile(
    r"^Error creating: |^Failed to create (?:head|worker) Pod (?:for the cluster )?[^\s,]+, |"
    r"pods? \"[^\"]*\" is (?:forbidden|invalid): "
)


class Rejection(NamedTuple):
    says: re.Pattern[str]
    cause: str
    steps: tuple[str, ...]


# In the words of Kubernetes' own admission plugins and of its validation (pkg/apis/core/validation).
REJECTIONS = (
    Rejection(
        re.compile(r"because it is being terminated"),
        "The namespace is being deleted.",
        (
            "Start the workload in another namespace, or in this one once it is created again.",
            "If the deletion does not end, find what holds it: kubectl get namespace NAMESPACE -o yaml",
        ),
    ),
    Rejection(
        re.compile(r"failed quota: [^:]+: must specify"),
        "A ResourceQuota of the namespace counts a resource that the template does not set.",
        ("Set it in the template's requests and limits, or add a LimitRange with defaults to the namespace.",),
    ),
    Rejection(
        re.compile(r"insufficient quota to match these scopes"),
        "The priority class may be used only in namespaces with a ResourceQuota for it, as on GKE.",
        ("Create a ResourceQuota with that scopeSelector in the namespace, or use another priority class.",),
    ),
    Rejection(
        re.compile(r"(?:minimum|maximum) \S+ usage per |max limit to request ratio per "),
        "A LimitRange of the namespace forbids such a pod.",
        ("Change the template's requests, or the LimitRange.",),
    ),
    Rejection(
        re.compile(r"Limit must be set for non overcommitable|must be an integer|must be equal to \S+ limit"),
        "GPUs must be requested in whole numbers and as a limit.",
        (
            "Set a whole number of GPUs in the template's limits.",
            "For part of a GPU, request a MIG slice, or set up a shared GPU on the node.",
        ),
    ),
    Rejection(
        re.compile(r"violates PodSecurity|security context constraint", re.IGNORECASE),
        "The pod security of the namespace forbids such a pod.",
        (
            "Change the template's securityContext as the message says.",
            "Or change the namespace's label pod-security.kubernetes.io/enforce (OpenShift: the SCC).",
        ),
    ),
    Rejection(
        re.compile(r"RuntimeClass|no PriorityClass with name|serviceaccount \"[^\"]*\" not found", re.IGNORECASE),
        "An object that the template names is missing.",
        ("Create the object that the message names, or remove it from the template.",),
    ),
)


@dataclass(frozen=True)
class PodsRejected:
    key: ClassVar[str] = "pods-rejected"
    title: ClassVar[str] = "Pods rejected at creation"
    subject: ClassVar[str] = OWNER
    reads: ClassVar[tuple[str, ...]] = (EVENTS, PODS, JOBS, REPLICA_SETS, STATEFUL_SETS)
    after: ClassVar[timedelta] = timedelta(minutes=5)  # a rollout that replaces pods may wait for the room of old ones
    steps: ClassVar[tuple[str, ...]] = (
        "Read the API server's message (Evidence). It names who rejects the pods.",
        "By a quota: check kubectl describe resourcequota -n NAMESPACE. Wait, end pods, or raise the quota.",
        "By a LimitRange, validation or pod security: change the template. By a webhook: ask who runs it.",
        "The controller tries again after 17 minutes at most. A restarted Deployment tries at once.",
    )

    def evaluate(self, owner: RejectedOwner) -> Problem | None:
        if owner.lacking is not None and owner.lacking < 1:
            return None
        message = CALLED.sub("", owner.message).strip().rstrip(".")
        severity, causes, steps = _explain_rejection(owner, message)
        gpus = (EvidenceItem(f"{name} of a pod", number) for name, number in owner.asks.items())
        return Problem(
            severity=severity if owner.is_of_gpus else Severity.NOTE,
            title=fit("Pods of {} are rejected", owner.name),
            summary=fit("The API server says: {}", message, longest=LONGEST_SUMMARY),
            evidence=(
                EvidenceItem("Owner", owner.name),
                EvidenceItem("Message", owner.message),
                *((EvidenceItem("Missing pods", owner.lacking),) if owner.lacking is not None else ()),
                *(gpus if owner.is_of_gpus else (EvidenceItem("GPUs of a pod", "unknown"),)),
            ),
            causes=causes,
            steps=(*steps, *self.steps[3:]) if steps else (),
            identity=" ".join((*causes, *steps)) or "rejected",  # the message contains the used amounts, which change
        )


def _explain_rejection(owner: RejectedOwner, message: str) -> tuple[Severity, tuple[str, ...], tuple[str, ...]]:
    """Returns the severity, the causes and the first steps."""
    if quota := QUOTA.search(message):
        name = f"ResourceQuota {owner.namespace}/{quota['name']}"
        if _never_fits(_amounts(quota["requested"]), _amounts(quota["limited"])):
            causes = (f"One pod requests more than {name} allows in total.",)
            return Severity.WARNING, causes, ("Request less in the template, or have the quota raised.",)
        steps = (
            "Have the quota raised, or want fewer pods.",
            "Pods start by themselves once others of the namespace end.",
        )
        return Severity.NOTE, (f"{name} is used up.",), steps  # as where work waits for its turn by a quota
    if webhook := WEBHOOK.search(message):
        steps = (
            "Change the template as the message says.",
            "Ask who runs the webhook: kubectl get validatingwebhookconfigurations",
        )
        return Severity.WARNING, (f"The admission webhook {webhook['name']} rejects the pods.",), steps
    for rejection in REJECTIONS:
        if rejection.says.search(message):
            return Severity.WARNING, (rejection.cause,), rejection.steps
    return Severity.WARNING, (), ()


def _amounts(said: str) -> Mapping[str, int]:
    """Returns by resource the amounts that are whole numbers."""
    pairs = (each.strip().partition("=") for each in said.split(","))
    return {name: int(amount) for name, _, amount in pairs if amount.isascii() and amount.isdigit()}


def _never_fits(requested: Mapping[str, int], limited: Mapping[str, int]) -> bool:
    return any(amount > limited[name] for name, amount in requested.items() if name in limited)
