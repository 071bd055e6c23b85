"""The reasons of pods that wait before any node is compared: gates, silence, volumes and claims. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from capacity.wait_reasons.answers import Actor, Change, DecidingKind, PendingExplanation, ScalingReport
from capacity.wait_reasons.gang_message import incomplete_gang
from capacity.wait_reasons.node_index import NodeIndex
from capacity.wait_reasons.pod_volumes import ClaimState, by_driver
from capacity.wait_reasons.queue_place import QueuePlace
from capacity.wait_reasons.queue_reasons import queued_reason
from capacity.wait_reasons.requirements import USUAL_SCHEDULER, WaitingPod
from capacity.wait_reasons.rolling_update import OlderPods
from capacity.wait_reasons.rule_nodes import is_far_from_unknown_pods
from capacity.wait_reasons.scheduler_message import SchedulerVerdict
from wording.lists import names
from wording.numbers import either
from wording.reports import LONGEST_SUMMARY, clip, fit

SILENT_AFTER = timedelta(minutes=2)  # a scheduler tries a new pod within seconds
KUEUE = "kueue.x-k8s.io/"
NOT_INSTALLED = "not installed"
NOT_ADMITTED = "The scheduler ignores the pod until Kueue admits it."


BEFORE_NODES = "The scheduler does not compare nodes before the claim is bound."
REFUSED_CLAIMS = (
    (
        ClaimState.MISSING, "PersistentVolumeClaim {} does not exist", "The scheduler waits until it is created.",
        Change("Create the claim, or correct its name.", Actor.OWNER),
    ),
    (
        ClaimState.LEAVING, "PersistentVolumeClaim {} is being deleted", "The scheduler refuses its pods.",
        Change("Name another claim, or create it again once it is deleted.", Actor.OWNER),
    ),
    (
        ClaimState.UNBOUND, "Volume claim {} has no volume yet", BEFORE_NODES,
        Change("Check the provisioner of its storage class, or create a volume that matches.", Actor.ADMIN),
    ),
)  # fmt: skip

USE_USUAL_SCHEDULER = f"Set schedulerName to {USUAL_SCHEDULER} in the pod template."
WITHOUT_GATE = "Create the pod without the gate."
LEFT_TO_SCHEDULER = frozenset({USE_USUAL_SCHEDULER, WITHOUT_GATE})  # after which kube-scheduler compares nodes


@dataclass(frozen=True)
class ClaimFacts:
    name: str
    is_allocated: bool
    device_class: str = ""


@dataclass(frozen=True)
class WaitFacts:
    """Facts beside the nodes."""

    claims: Sequence[ClaimFacts] | None = None  # of the pod; None: claims are not observed
    device_classes: Collection[str] | None = None  # None: not observed
    has_events: bool = False  # an Event of a scheduler about the pod
    is_scheduler_seen: bool = False  # an Event of its scheduler about any pod
    queue: QueuePlace | None = None
    queue_unread: str = ""  # data of its queue that is not read, and why; blank: all is read
    scaling: ScalingReport | None = None  # of an autoscaler; None: none is known
    # what blocks the deletion of its namespace; None: the namespace is not being deleted
    namespace_held_by: str | None = None
    scaling_unread: str = ""  # kinds of autoscalers that may not be read
    older: OlderPods | None = None  # of its Deployment


def reason_before_nodes(
    pod: WaitingPod, around: WaitFacts, verdict: SchedulerVerdict | None, *, now: datetime
) -> PendingExplanation | None:
    """Returns the reason of a pod that no comparison with nodes explains."""
    if around.namespace_held_by is not None:
        return _in_deleted_namespace(pod, around.namespace_held_by)
    if around.queue is not None and around.queue.is_waiting:
        return queued_reason(around.queue)
    if pod.gates:
        return _gated(pod, around)
    if pod.condition_reason == "SchedulerError":
        return PendingExplanation(
            "scheduler_error", "The scheduler failed on this pod",
            clip(pod.message or "An error stopped the scheduler early.", LONGEST_SUMMARY),
            changes=[Change("Read the scheduler's message below, and its log.", Actor.ADMIN)]
        )  # fmt: skip
    is_refused = any(each.state in {ClaimState.MISSING, ClaimState.LEAVING} for each in pod.volumes or ())
    if is_refused or (verdict and verdict.is_about_volumes):
        return _volumes(pod)
    if missing := _missing_claims(pod, around):
        return _without_claims(missing, around)
    if not verdict and not around.has_events and (silent := _silent(pod, around, now=now)):
        return silent
    if pod.claims and pod.devices is None:
        return _claims(pod, around)
    if not pod.is_read:
        return PendingExplanation(
            "not_observed", "The requirements of this pod are not observed",
            "Its selector, affinity or tolerations could not be read. The scheduler's message is below."
        )  # fmt: skip
    return None


def _in_deleted_namespace(pod: WaitingPod, held_by: str) -> PendingExplanation:
    summary = "Its pods end, and new ones are refused."
    return PendingExplanation(
        "namespace_deleted", f"Namespace {pod.namespace} is being deleted",
        clip(f"{summary} {held_by}".strip(), LONGEST_SUMMARY), decided_by=pod.namespace,
        decided_kind=DecidingKind.NAMESPACE,
        changes=[
            Change("Start the workload in another namespace, or in this one once it is created again.", Actor.OWNER),
            Change(f"Check what holds the deletion: kubectl get namespace {pod.namespace} -o yaml", Actor.ADMIN),
        ],
    )  # fmt: skip


def _gated(pod: WaitingPod, around: WaitFacts) -> PendingExplanation:
    gates = names(pod.gates)
    if any(gate.startswith(KUEUE) for gate in pod.gates):
        namespace = pod.name.partition("/")[0]
        step = f"Check the quota of its Kueue queue: kubectl get workloads -n {namespace}. Kueue removes the gate."
        if NOT_INSTALLED in around.queue_unread:
            return _gated_without_kueue(gates, around)
        is_late = around.queue is not None  # admitted: Kueue removes the gate within seconds
        summary = "Kueue has admitted it, but its gate is still there." if is_late else NOT_ADMITTED
        return PendingExplanation(
            "gated", f"Kueue holds this pod: {gates}", summary, decided_by=gates,
            decided_kind=DecidingKind.GATE,
            changes=[Change("Check the log of Kueue's controller." if is_late else step, Actor.ADMIN)],
            not_checked=[around.queue_unread or "Kueue queues and quotas"] if not is_late else [], queue=around.queue,
        )  # fmt: skip
    return PendingExplanation(
        "gated", f"A scheduling gate holds this pod: {gates}",
        "The scheduler ignores the pod until its controller removes the gate. That controller is unknown.",
        decided_by=gates, decided_kind=DecidingKind.GATE,
        changes=[Change("Find the controller that sets this gate, and its reason.", Actor.ADMIN)],
    )  # fmt: skip


def _gated_without_kueue(gates: str, around: WaitFacts) -> PendingExplanation:
    return PendingExplanation(
        "gated", fit("{} holds it, and Kueue is not installed here", gates),
        clip(f"Nothing removes the gate {gates}. The scheduler ignores the pod.", LONGEST_SUMMARY), decided_by=gates,
        decided_kind=DecidingKind.GATE,
        changes=[
            Change(WITHOUT_GATE, Actor.OWNER),
            Change("Install Kueue. It removes the gate of a workload that it admits.", Actor.ADMIN),
        ],
        not_checked=[around.queue_unread],
    )  # fmt: skip


def _unproven_scheduler(pod: WaitingPod) -> PendingExplanation:
    """Explains a new pod of a scheduler that may not exist: its rules, and so what would help, are unknown."""
    return PendingExplanation(
        "no_scheduler", fit("Waits for scheduler {}, which has not reported yet", pod.scheduler),
        "No Event of this scheduler is known. Only a scheduler with this name places the pod.",
        decided_by=pod.scheduler, decided_kind=DecidingKind.SCHEDULER,
        changes=[Change(f"Check that the scheduler {pod.scheduler} runs, and read its log.", Actor.ADMIN)],
    )  # fmt: skip


def _silent(pod: WaitingPod, around: WaitFacts, *, now: datetime) -> PendingExplanation | None:
    """Explains a pod of which no scheduler reports. None: it is new, and its scheduler is there."""
    if now - pod.created_at < SILENT_AFTER:
        is_proven = pod.scheduler == USUAL_SCHEDULER or around.is_scheduler_seen or around.queue is not None
        return None if is_proven else _unproven_scheduler(pod)
    if pod.scheduler != USUAL_SCHEDULER:
        return PendingExplanation(
            "no_scheduler", f"No scheduler named {pod.scheduler} reports on this pod",
            "The pod has no condition and no Event. Only a scheduler with this name places it.",
            decided_by=pod.scheduler, decided_kind=DecidingKind.SCHEDULER,
            changes=[
                Change(f"Start the scheduler {pod.scheduler}, or check its log.", Actor.ADMIN),
                Change(USE_USUAL_SCHEDULER, Actor.OWNER),
            ],
        )  # fmt: skip
    if pod.pod_group:
        return incomplete_gang(pod, is_reported=False)
    step = "Check that kube-scheduler runs, and that the ResourceClaims of the pod exist."
    return PendingExplanation(
        "silent", "The scheduler has not reported on this pod",
        "The pod has no condition and no Event. The scheduler is down, late, or holds the pod in its queue.",
        changes=[Change(step, Actor.ADMIN)],
    )  # fmt: skip


def _volumes(pod: WaitingPod) -> PendingExplanation:
    """Explains a pod whose volume claims the scheduler refuses before it compares nodes."""
    for state, title, summary, change in REFUSED_CLAIMS:
        if its := [each for each in pod.volumes or () if each.state is state]:
            claims = names([each.claim for each in its])
            storage = names(sorted({each.storage_class for each in its if each.storage_class}))
            told = f"{summary} Storage class: {storage}." if storage else summary
            return PendingExplanation(
                "volume", title.format(claims), told, decided_by=claims, decided_kind=DecidingKind.VOLUME_CLAIM,
                changes=[change],
            )  # fmt: skip
    claims = names(pod.volume_claims) or "a volume claim"
    return PendingExplanation(
        "volume", f"Waits for {either(len(pod.volume_claims), 'its volume claim', 'its volume claims')}: {claims}",
        "The scheduler does not compare nodes before the claim is bound.", decided_by=claims,
        decided_kind=DecidingKind.VOLUME_CLAIM,
        changes=[Change("Describe the claim: kubectl describe pvc. Check its storage class.", Actor.OWNER)],
        not_checked=["storage classes"] if pod.volumes is None else [],
    )  # fmt: skip


def _missing_claims(pod: WaitingPod, around: WaitFacts) -> list[str]:
    """Returns the claims of the pod that do not exist. The scheduler reports nothing of such a pod."""
    if around.claims is None:
        return []
    there = {claim.name for claim in around.claims}
    return [name for name in pod.claims if name not in there]


def _without_claims(missing: Sequence[str], around: WaitFacts) -> PendingExplanation:
    changes = [Change(f"Create the ResourceClaim {names(missing)}, or correct its name in the pod.", Actor.OWNER)]
    if around.device_classes is not None and not around.device_classes:
        changes.insert(0, Change("Install a DRA driver first: the cluster has no DeviceClass.", Actor.ADMIN))
    return PendingExplanation(
        "claim", f"ResourceClaim {names(missing)} does not exist", "The scheduler waits until it is created.",
        decided_by=names(missing), decided_kind=DecidingKind.RESOURCE_CLAIM, changes=changes,
    )  # fmt: skip


def _claims(pod: WaitingPod, around: WaitFacts) -> PendingExplanation:
    there = {claim.name: claim for claim in around.claims or ()}
    open_claims = [claim for claim in there.values() if not claim.is_allocated]
    unknown = [c.device_class for c in open_claims if around.device_classes is not None and c.device_class]
    unknown = [name for name in unknown if name not in (around.device_classes or ())]
    if unknown:
        return PendingExplanation(
            "claim", f"DeviceClass {names(unknown)} does not exist", "No device can satisfy the claim.",
            decided_by=names(unknown), decided_kind=DecidingKind.DEVICE_CLASS,
            changes=[
                Change("Install the DRA driver that has this class.", Actor.ADMIN),
                Change("Name an existing DeviceClass in the claim.", Actor.OWNER),
            ],
        )  # fmt: skip
    waits = names([claim.name for claim in open_claims] or list(pod.claims))
    return PendingExplanation(
        "claim", f"No node satisfies ResourceClaim {waits}", "The scheduler found no free devices that match it.",
        decided_by=waits, decided_kind=DecidingKind.RESOURCE_CLAIM,
        changes=[Change("Compare the claim with the ResourceSlices of the nodes.", Actor.OWNER)],
        not_checked=["device selectors of claims" if around.claims is not None else "resource claims"],
    )  # fmt: skip


def unchecked_parts(pod: WaitingPod, index: NodeIndex | None) -> list[str]:
    """Returns the requirements that are not compared with nodes. None: no node is compared.

    An index without neighbours: other pods were not read.
    """
    around = index.neighbours if index else None
    rules = pod.rules
    undriven = [each.claim for each in pod.volumes or () if each.driver is None]
    is_unknown = around is not None and is_far_from_unknown_pods(pod, around)
    found = {
        "topology spread constraints": around is None and rules.spread,
        "affinity to other pods": around is None and (rules.affinity or rules.anti_affinity),
        "host ports": around is None and rules.ports,
        "volumes": pod.volume_claims and pod.volumes is None,
        "volumes per node": pod.volumes and (around is None or (around.volumes is None and by_driver(pod.volumes))),
        f"volumes per node of claims with an unknown CSI driver ({names(undriven)})": around is not None and undriven,
        "pods per node, where a node reports no limit": index is not None and index.without_pod_limit,
        "volumes that no claim has yet": any(each.state is ClaimState.WAITS_FOR_NODE for each in pod.volumes or ()),
        f"affinity to pods without GPUs ({rules.affinity[0].text if rules.affinity else ''})": is_unknown,
        f"pods without GPUs that match {names(rules.selected_pods)}": (
            around is not None and rules.selected_pods and not is_unknown
        ),
        **dict.fromkeys(rules.unread, True),
        "constraints between the devices of a claim": pod.has_device_constraints,
        "several requests for the same devices": pod.has_device_overlaps,
        f"devices of incomplete pools ({names(pod.incomplete_pools)})": pod.incomplete_pools,
        f"the rules of the scheduler {pod.scheduler}": pod.scheduler != USUAL_SCHEDULER,
        "parts of the pod that could not be read": pod.unread,
    }
    return [name for name, is_there in found.items() if is_there]
