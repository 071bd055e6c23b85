"""The last report of an autoscaler about a pod that waits: why it adds no node, or which one it adds. Pure.

kubernetes/autoscaler, cluster-autoscaler 1.35, processors/status/eventing_scale_up_processor.go: Events
NotTriggerScaleUp and TriggeredScaleUp; its counts are of node groups. kubernetes-sigs/karpenter 1.14,
pkg/controllers/provisioning/scheduling: Events FailedScheduling and Nominated with the source karpenter.
remediator.aks.microsoft.com/unschedulable is AKS' taint of a node that it repairs (StatCan/aaw #1297).
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from capacity.wait_reasons.answers import Actor, Change, ScalingReport, ScalingVerdict
from gpu.resources.names import is_gpu_resource
from wording.numbers import count
from wording.reports import LONGEST_SUMMARY, clip

KARPENTER, CLUSTER_AUTOSCALER = "Karpenter", "Cluster autoscaler"
REFUSED, ADDED, KARPENTER_ADDS = "NotTriggerScaleUp", "TriggeredScaleUp", "Nominated"
BY_THE_SCHEDULER = "FailedScheduling"  # a reason that Karpenter shares with schedulers
SCALING = (REFUSED, ADDED, KARPENTER_ADDS)

GROUP = re.compile(r"(\d{1,6}) (.+?)(?=, \d{1,6} |$)", re.DOTALL)
INSUFFICIENT = re.compile(r"Insufficient (\S+)")
STATUS = "kubectl -n kube-system get configmap cluster-autoscaler-status"
# Reasons of node groups, the most specific first: pattern, verdict, sentence about the groups, remedy.
OF_GROUPS: Sequence[tuple[re.Pattern[str], ScalingVerdict, str, Change]] = (
    (
        re.compile("in backoff after failed scale-up"), ScalingVerdict.FAILED,
        "back-off after a failed scale-up: {groups}",
        Change(f"Find why the cloud refused it, its capacity or a quota of the account: {STATUS}", Actor.ADMIN),
    ),
    (
        re.compile("max total nodes in cluster reached"), ScalingVerdict.AT_MAXIMUM,
        "the cluster has its maximum number of nodes",
        Change("Raise --max-nodes-total of the cluster autoscaler.", Actor.ADMIN),
    ),
    (
        re.compile("exceeded quota"), ScalingVerdict.AT_MAXIMUM, "a quota of the autoscaler is used up",
        Change("Raise the quota that its message names.", Actor.ADMIN),
    ),
    (
        re.compile("not ready for scale-up"), ScalingVerdict.REFUSED, "not ready for a scale-up: {groups}",
        Change(f"Find nodes of the group that never became ready: {STATUS}", Actor.ADMIN),
    ),
    (
        re.compile(r"remediator\.aks\.microsoft\.com/unschedulable"), ScalingVerdict.REFUSED,
        "under repair by AKS: {groups}",
        Change("Wait until AKS has repaired the node, or check the node pool in Azure.", Actor.ADMIN),
    ),
    (
        re.compile("max node group size reached"), ScalingVerdict.AT_MAXIMUM, "maximum size reached: {groups}",
        Change("Raise the maximum of the node group that fits this pod.", Actor.ADMIN),
    ),
)  # fmt: skip
# A group without nodes is judged by a template, which lacks what its tags do not name. kubernetes/autoscaler,
# cloudprovider/aws/README.md, "Auto-Discovery Setup"; docs.aws.amazon.com/eks, eksctl, "Scaling up from 0".
BY_TEMPLATE = re.compile(r"didn't match Pod's node affinity/selector|Insufficient [\w.-]+/|untolerated taint")
TAGS = Change(
    "On AWS, tags describe a group of 0 nodes: k8s.io/cluster-autoscaler/node-template/label/…, /resources/…, /taint/…",
    Actor.ADMIN,
)
POOL = re.compile(
    r"(?:node limits have been exhausted for|limits for|incompatible with) nodepool[ (]+(?:NodePool=)?\"?([\w.-]+)"
)
RESOURCES = re.compile(r"(?<!overhead)(?:resources[ =]+)(\{[^}]{1,400}\})")
AMOUNT = re.compile(r"\"([^\"]+)\":\"([^\"]+)\"")
NO_CLAIMS = "Dynamic Resource Allocation requirements that are not yet supported"
TAINT = re.compile(r"did not tolerate (?:taint )?\(?(?:taint=)?([^\s;,)]+)")
KEY = re.compile(r"(?:incompatible requirements|did not match), (?:label|key) \"?([\w./-]+)")


# By the rank of a sentence about NodePools; for the others no NodePool fits.
OF_RANKS = {0: ScalingVerdict.REFUSED, 1: ScalingVerdict.AT_MAXIMUM}


def is_of_karpenter(source: str) -> bool:
    return source.startswith("karpenter")


def read_report(reason: str, source: str, message: str) -> ScalingReport | None:
    """Reads an Event about a pod. None: no autoscaler wrote it."""
    if is_of_karpenter(source):
        if reason == KARPENTER_ADDS:
            name = message.rpartition(": ")[2]
            return _report(KARPENTER, [f"it planned the pod on {name}"], message, verdict=ScalingVerdict.ADDING)
        return _karpenter_report(message) if reason == BY_THE_SCHEDULER else None
    if reason == ADDED:
        groups = message.partition("[")[2].rpartition("]")[0]
        told = [f"it has asked for nodes: {groups or message}"]
        return _report(CLUSTER_AUTOSCALER, told, message, verdict=ScalingVerdict.ADDING)
    return _node_group_report(message) if reason == REFUSED else None


def _node_group_report(message: str) -> ScalingReport:
    body = message.partition("scale-up")[2].partition(": ")[2].strip(" .")
    groups = [(int(found[1]), found[2]) for found in GROUP.finditer(body)]
    told, changes, verdicts = [], [], list[ScalingVerdict]()
    for pattern, verdict, text, change in OF_GROUPS:
        if number := sum(each for each, reason in groups if pattern.search(reason)):
            told.append(text.format(groups=_groups(number)))
            changes.append(change)
            verdicts.append(verdict)
    for resource, number in _lacking(groups).items():
        told.append(f"new nodes of {_groups(number)} would lack {resource}")
        changes.append(_change_for(resource))
    verdict = next(iter(verdicts), ScalingVerdict.NO_GROUP)
    if verdict is ScalingVerdict.NO_GROUP and any(BY_TEMPLATE.search(reason) for _, reason in groups):
        changes.append(TAGS)
    return _report(CLUSTER_AUTOSCALER, told or [f"no node group fits: {body}"], message, changes, verdict=verdict)


def _groups(number: int) -> str:
    return count(number, "node group")


def _lacking(groups: Sequence[tuple[int, str]]) -> Mapping[str, int]:
    """Returns the number of groups by the resource that their nodes would lack. Groups without GPUs tell nothing of a
    pod that needs one, where others lack something else."""
    found: dict[str, int] = {}
    for number, reason in groups:
        if lacks := INSUFFICIENT.search(reason):
            found[lacks[1]] = found.get(lacks[1], 0) + number
    others = {resource: number for resource, number in found.items() if resource != "nvidia.com/gpu"}
    return others or found


def _change_for(resource: str) -> Change:
    if is_gpu_resource(resource) and resource != "nvidia.com/gpu":
        text = f"Tell the autoscaler which node group offers {resource}, or request whole GPUs."
        return Change(text, Actor.ADMIN)
    if resource == "nvidia.com/gpu":
        return Change("Request at most the GPUs of one node, or add a node group with more.", Actor.OWNER)
    return Change(f"Request less {resource}, or add a node group with larger nodes.", Actor.OWNER)


def _karpenter_report(message: str) -> ScalingReport:
    """Returns the report on the NodePool that is nearest: one at its limits would fit, one that lacks room might."""
    found = sorted(_node_pool_reasons(message), key=lambda each: each[0])
    if not found:
        return _report(KARPENTER, [clip(message.strip(), LONGEST_SUMMARY - 1) or "it names no reason"], message)
    (rank, told, change), more = found[0], len(found) - 1
    verdict = OF_RANKS.get(rank, ScalingVerdict.NO_GROUP)
    rest = [f"{count(more, 'other NodePool')} {'does' if more == 1 else 'do'} not fit"] if more else []
    return _report(KARPENTER, [told, *rest], message, [change] if change else [], verdict=verdict)


def _node_pool_reasons(message: str) -> Iterator[tuple[int, str, Change | None]]:
    if NO_CLAIMS in message:
        text = "Request the GPU as nvidia.com/gpu, or add the node in another way."
        yield 0, "it adds no nodes for ResourceClaims", Change(text, Actor.OWNER)
    for part in message.split("; "):
        pool = POOL.search(part)
        if not pool:
            continue
        name = f"NodePool {pool[1]}"
        if "exceed limits" in part or "limits have been exhausted" in part:
            yield 1, f"{name} has used up its limits", Change(f"Raise spec.limits of {name}.", Actor.ADMIN)
        elif "has the required offering" in part:
            text = f"Allow more zones, instance types or capacity types in {name}, or wait for capacity."
            yield 2, f"{name} has no offering for it now", Change(text, Actor.ADMIN)
        elif taint := TAINT.search(part):
            yield 5, f"{name} has the taint {taint[1]}", None
        elif key := KEY.search(part):
            text = f"Align the pod's requirement {key[1]} with {name}."
            yield 4, f"{name} does not match its requirement {key[1]}", Change(text, Actor.OWNER)
        elif "no instance type" in part:
            asked = RESOURCES.search(part)
            amounts = (
                ", ".join(f"{key} {value}" for key, value in AMOUNT.findall(asked[1]) if key != "pods") if asked else ""
            )
            text = f"Request less, or allow larger instance types in {name}."
            yield 3, f"{name} allows no instance type for {amounts or 'it'}", Change(text, Actor.OWNER)
        else:
            yield 6, f"{name} does not fit", None


def _report(
    autoscaler: str,
    told: Sequence[str],
    message: str,
    changes: Sequence[Change] = (),
    *,
    verdict: ScalingVerdict = ScalingVerdict.REFUSED,
) -> ScalingReport:
    """Joins as many sentences as fit a summary."""
    summary = ""
    for each in told:
        sentence = f"{each[0].upper()}{each[1:]}."
        if summary and len(summary) + 1 + len(sentence) > LONGEST_SUMMARY:
            break
        summary = clip(f"{summary} {sentence}".strip(), LONGEST_SUMMARY)
    is_adding = verdict is ScalingVerdict.ADDING
    return ScalingReport(autoscaler, is_adding, summary, message, tuple(changes), verdict=verdict)
