"""The answer to why a pod waits for a node, compared with the scheduler's own message. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from capacity.wait_reasons.answers import Actor, Change, DecidingKind, PendingExplanation
from capacity.wait_reasons.changes import helpful_changes
from capacity.wait_reasons.early_reasons import LEFT_TO_SCHEDULER, WaitFacts, reason_before_nodes, unchecked_parts
from capacity.wait_reasons.gang_message import reason_of_gang
from capacity.wait_reasons.near_misses import funnel_of, near_misses_of, near_summary, shares_summary
from capacity.wait_reasons.node_index import NodeIndex
from capacity.wait_reasons.node_reasons import reason_over_nodes
from capacity.wait_reasons.obstacles import find_obstacles
from capacity.wait_reasons.preemption import preemption_of
from capacity.wait_reasons.queue_reasons import changes_of
from capacity.wait_reasons.requirements import USUAL_SCHEDULER, WaitingPod
from capacity.wait_reasons.rolling_update import explain_update
from capacity.wait_reasons.rule_nodes import is_far_from_unknown_pods
from capacity.wait_reasons.scheduler_message import (
    DRIVER_OF_VOLUMES,
    POD_AFFINITY,
    VOLUME,
    VOLUMES_PER_NODE,
    SchedulerVerdict,
    agreement,
    read_message,
    title_of_kind,
)
from health.stack.causes import cause_in_words
from wording.lists import names
from wording.numbers import count
from wording.reports import LONGEST_SUMMARY, clip, fit

AGREES_FROM = 0.95
BEFORE_NODES = frozenset({"claim", "gang", "queued", "queue_refuses", "queue_quota"})
NOT_COMPARED = "labels, taints and free amounts of nodes"
COMPARE = (Change("Compare the pod template with the nodes that the scheduler rejects.", Actor.OWNER),)
# By reason of the scheduler that is not compared with nodes. kubernetes.io/docs/concepts/storage/storage-limits.
STEPS: Mapping[str, Sequence[Change]] = {
    VOLUMES_PER_NODE: (
        Change("Use fewer volumes per pod, or start the pod on nodes with fewer volumes.", Actor.OWNER),
        Change("Compare the limit with the volumes: kubectl get csinode,volumeattachment -o yaml.", Actor.ADMIN),
    ),
    VOLUME: (
        Change("Compare where the volume may be attached with the nodes: kubectl describe pv.", Actor.OWNER),
        Change("Set volumeBindingMode of its storage class to WaitForFirstConsumer for new volumes.", Actor.ADMIN),
    ),
    DRIVER_OF_VOLUMES: (
        Change("Start the CSI driver of the volume on these nodes: kubectl get csinode -o yaml.", Actor.ADMIN),
    ),
}
# By the beginning of a reason that only another scheduler gives. Project-HAMi/HAMi: pkg/scheduler/scheduler.go,
# pkg/device/common/common.go@1b2c279b; the texts are those of its issue 1527.
FOREIGN_STEPS: Mapping[str, Sequence[Change]] = {
    "node unregistered": (Change("Check HAMi's device plugin on these nodes: it registers their GPUs.", Actor.ADMIN),),
    "NodeUnfitPod": (
        Change("Read the Event FilteringFailed: HAMi names the memory, cores or cards that lack.", Actor.OWNER),
    ),
}
LAG_RATIO = 0.01  # more nodes apart than this: our rows or our rights are incomplete


def explain(pod: WaitingPod, index: NodeIndex, around: WaitFacts, *, now: datetime) -> PendingExplanation:
    verdict = read_message(pod.message)
    early = reason_before_nodes(pod, around, verdict, now=now) or reason_of_gang(pod, verdict)
    if early is not None:
        later = [NOT_COMPARED] if early.key in BEFORE_NODES else []
        early = _with_nodes(early, pod, index)
        return replace(early, verdict=verdict, not_checked=[*early.not_checked, *later, *unchecked_parts(pod, None)])
    obstacles = find_obstacles(pod, index)
    ours = obstacles.counted_as_scheduler()
    ratio = agreement(ours, verdict) if verdict else None
    found = reason_over_nodes(obstacles)
    if found.key == "fits" and verdict:
        found = _as_scheduler_says(found, pod, ours, verdict)
        if verdict.counts.get(POD_AFFINITY) and index.neighbours and is_far_from_unknown_pods(pod, index.neighbours):
            found = _near_unknown_pods(found, pod, verdict.counts[POD_AFFINITY])
    differences = [*_differences(ours, verdict, ratio, index)]
    if verdict and verdict.unknown:
        differences.append(f"The scheduler also names reasons unknown here: {_counted(verdict.unknown)}.")
    outlook = preemption_of(obstacles)
    if outlook and outlook.nodes and verdict and verdict.finds_no_victims:
        differences.append(f"The scheduler found no pods to preempt, this check on {count(outlook.nodes, 'node')}.")
    changes = found.changes or ([] if obstacles.fitting else helpful_changes(obstacles))
    if around.scaling and found.key != "fits":
        changes = [*changes, *around.scaling.changes]
    return replace(
        explain_update(replace(found, changes=changes), around.older, obstacles),
        funnel=funnel_of(obstacles),
        near_misses=near_misses_of(obstacles),
        near_summary=" ".join(filter(None, (near_summary(obstacles), shares_summary(obstacles)))),
        preemption=outlook,
        verdict=verdict,
        agreement_ratio=ratio,
        differences=differences,
        not_checked=[
            *unchecked_parts(pod, index),
            *filter(None, [around.queue_unread, around.scaling_unread]),
        ],
        queue=around.queue,
        scaling=around.scaling,
    )


def _with_nodes(found: PendingExplanation, pod: WaitingPod, index: NodeIndex) -> PendingExplanation:
    """Puts the change first after which kube-scheduler would place the pod now, with its nodes."""
    if not any(each.text in LEFT_TO_SCHEDULER for each in found.changes):
        return found
    there = find_obstacles(pod, index)
    now, later = there.fitting.bit_count(), there.candidates.bit_count()
    changes = [
        replace(each, fits_now=now, fits_later=later) if each.text in LEFT_TO_SCHEDULER else each
        for each in found.changes
    ]
    return replace(found, changes=sorted(changes, key=lambda change: not change.fits_now))


def _as_scheduler_says(
    found: PendingExplanation, pod: WaitingPod, ours: Mapping[str, int], verdict: SchedulerVerdict
) -> PendingExplanation:
    """Returns the scheduler's main reason where nodes fit by the checked requirements: the scheduler decides."""
    beyond = {kind: number - ours.get(kind, 0) for kind, number in verdict.counts.items()}
    reasons = {reason: number for reason, number in (beyond | dict(verdict.unknown)).items() if number > 0}
    if not reasons and verdict.nodes is None and pod.scheduler != USUAL_SCHEDULER:
        title = fit("{} names a reason of its own", f"Scheduler {pod.scheduler}")
        return replace(
            found, key="scheduler", title=title, summary=clip(verdict.text, LONGEST_SUMMARY),
            decided_by=pod.scheduler, decided_kind=DecidingKind.SCHEDULER, changes=COMPARE,
        )  # fmt: skip
    if not reasons:
        return found
    reason, number = max(reasons.items(), key=lambda each: each[1])
    if not _has_steps(reason, pod) and (cause := cause_in_words(pod.message)):
        return replace(
            found, key="scheduler", title=fit("{}", cause.title), summary=clip(cause.summary, LONGEST_SUMMARY),
            decided_by=pod.scheduler, decided_kind=DecidingKind.SCHEDULER, changes=changes_of(cause),
        )  # fmt: skip
    named = title_of_kind(reason) if reason in verdict.counts else reason
    title = f"The scheduler rejects {count(number, 'node')}: {named}"
    summary = f"{found.title}. The scheduler decides."
    return replace(found, key="scheduler", title=title, summary=summary, changes=_steps_of(reason, pod))


def _has_steps(reason: str, pod: WaitingPod) -> bool:
    return pod.scheduler == USUAL_SCHEDULER or reason in STEPS or reason in FOREIGN_STEPS


def _steps_of(reason: str, pod: WaitingPod) -> Sequence[Change]:
    """Returns the steps for a reason that is not compared with nodes."""
    if steps := STEPS.get(reason) or FOREIGN_STEPS.get(reason):
        return steps
    if pod.scheduler == USUAL_SCHEDULER:
        return COMPARE
    return [Change(f"Read the Events of the pod, and the log of the scheduler {pod.scheduler}.", Actor.ADMIN)]


def _near_unknown_pods(found: PendingExplanation, pod: WaitingPod, number: int) -> PendingExplanation:
    """Returns the reason of a pod that must run beside pods without GPUs, which are not read."""
    terms = pod.rules.affinity
    text = terms[0].text if len(terms) == 1 else f"{len(terms)} terms"
    wanted = terms[0].pods.text if len(terms) == 1 else f"all {text} ({'; '.join(term.text for term in terms)})"
    return replace(
        found,
        title=fit("It must run beside pods without GPUs: {}", text),
        summary=f"The scheduler rejects {count(number, 'node with free GPUs', 'nodes with free GPUs')} for it.",
        decided_by=text,
        decided_kind=DecidingKind.POD_RULE,
        changes=[
            Change(f"Find the pods with {wanted}, and start one on a node with free GPUs.", Actor.OWNER),
            Change(f"Make the pod affinity ({text}) preferred, not required.", Actor.OWNER),
        ],
    )


def _differences(
    ours: Mapping[str, int], verdict: SchedulerVerdict | None, ratio: float | None, index: NodeIndex
) -> Iterator[str]:
    if verdict is None:
        return
    if verdict.nodes is not None and abs(verdict.nodes - len(index)) > max(1, LAG_RATIO * len(index)):
        yield f"The scheduler knows {count(verdict.nodes, 'node')}, and {len(index)} are observed here."
    if ratio is not None and ratio < AGREES_FROM:
        for kind in sorted({*ours, *verdict.counts}):
            mine, theirs = ours.get(kind, 0), verdict.counts.get(kind, 0)
            if mine != theirs:
                counts = f"the scheduler counts {count(theirs, 'node')}, this check {mine}"
                yield f"{title_of_kind(kind).capitalize()}: {counts}."


def _counted(reasons: Mapping[str, int]) -> str:
    return names([f"{number} {reason}" for reason, number in reasons.items()])
