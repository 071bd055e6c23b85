"""The answer to whether an autoscaler adds a node for a pod, from its Events and its own objects. Pure.

Events say what it decided about the pod; NodePools, NodeClaims and the status of the cluster autoscaler say what came
of it. Reasons of NodeClaims: kubernetes-sigs/karpenter@v1.14.1, pkg/controllers/nodeclaim/lifecycle. The status is
written every ten seconds, and its row is rounded to five minutes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from capacity.wait_reasons.answers import Actor, Change, ScalingReport, ScalingVerdict
from capacity.wait_reasons.autoscaler_message import CLUSTER_AUTOSCALER, KARPENTER
from gpu.resources.names import is_gpu_resource
from kube.quantity import whole_quantity
from wording.instants import to_the_minute
from wording.numbers import count
from wording.reports import LONGEST_SUMMARY, clip

DOWN_AFTER = timedelta(minutes=15)
DETAILS_AT_MOST = 8
CLAIM = re.compile(r"nodeclaim/([\w.-]+)")
NO_GPUS_YET = "ResourceNotRegistered"
AT_MAXIMUM = re.compile("maximum size|maximum number of nodes|used up", re.IGNORECASE)


@dataclass(frozen=True)
class ScalingClaim:
    name: str
    node_name: str  # blank: no node yet
    is_ready: bool
    reason: str
    message: str


@dataclass(frozen=True)
class ScalingPool:
    name: str
    is_ready: bool
    message: str
    limits: Mapping[str, str]
    used: Mapping[str, str]


@dataclass(frozen=True)
class ScalingGroup:
    """A node group of the cluster autoscaler."""

    name: str
    target: int | None
    largest: int | None
    unready: int  # nodes whose GPUs are not registered
    scale_up: str  # NoActivity, InProgress, Backoff
    error: str


@dataclass(frozen=True)
class ScalingFacts:
    """Objects of the autoscalers of a cluster. None: it has none, or they may not be read."""

    pools: Sequence[ScalingPool] = ()
    claims: Mapping[str, ScalingClaim] | None = None
    groups: Sequence[ScalingGroup] | None = None
    status_at: datetime | None = None  # of the cluster autoscaler
    unread: str = ""  # kinds that may not be read


def scaling_verdict(report: ScalingReport | None, facts: ScalingFacts, *, now: datetime) -> ScalingReport | None:
    """Returns the report with its verdict. None: no autoscaler is known here."""
    if report is None:
        return _without_event(facts, now=now)
    if report.autoscaler == KARPENTER:
        details = list(_pools(facts.pools))
        if report.is_adding:
            return _of_claim(report, facts, details)
    else:
        details = list(_groups(facts.groups or ()))
        if report.is_adding:
            return replace(report, verdict=ScalingVerdict.ADDING, details=details[:DETAILS_AT_MOST])
    verdict = ScalingVerdict.AT_MAXIMUM if AT_MAXIMUM.search(report.summary) else ScalingVerdict.NO_GROUP
    if "ack-off" in report.summary:
        verdict = ScalingVerdict.FAILED
    return replace(report, verdict=verdict, details=details[:DETAILS_AT_MOST])


def _without_event(facts: ScalingFacts, *, now: datetime) -> ScalingReport | None:
    """Returns what the objects alone say. An autoscaler writes no Event while it adds nodes for other pods."""
    if facts.groups is not None:
        details, at = [*_groups(facts.groups)][:DETAILS_AT_MOST], facts.status_at
        if at is not None and now - at > DOWN_AFTER:
            step = Change("Check the Deployment cluster-autoscaler, and its log.", Actor.ADMIN)
            told = f"Its last status is of {to_the_minute(at)}. It writes one every 10 seconds."
            return _report(CLUSTER_AUTOSCALER, told, ScalingVerdict.DOWN, details, at=at, changes=(step,))
        told = f"It knows {count(len(facts.groups), 'node group')} and has written no Event about this pod."
        return _report(CLUSTER_AUTOSCALER, told, ScalingVerdict.SILENT, details, at=at)
    if facts.pools:
        told = f"It has {count(len(facts.pools), 'NodePool')} and has written no Event about this pod."
        details = [*_pools(facts.pools)][:DETAILS_AT_MOST]
        return _report(KARPENTER, told, ScalingVerdict.SILENT, details)
    return None


def _report(
    autoscaler: str,
    told: str,
    verdict: ScalingVerdict,
    details: Sequence[str],
    *,
    at: datetime | None = None,
    changes: Sequence[Change] = (),
) -> ScalingReport:
    return ScalingReport(
        autoscaler, is_adding=False, summary=told, message="", changes=changes, at=at, verdict=verdict, details=details
    )  # fmt: skip


def _of_claim(report: ScalingReport, facts: ScalingFacts, details: Sequence[str]) -> ScalingReport:
    """Returns what came of the NodeClaim on which Karpenter planned the pod."""
    named = CLAIM.search(report.message)
    adding = replace(report, verdict=ScalingVerdict.ADDING, details=tuple(details[:DETAILS_AT_MOST]))
    if named is None or facts.claims is None:
        return adding
    claim = facts.claims.get(named[1])
    if claim is None:
        told = f"NodeClaim {named[1]} no longer exists: no node came of it, or the node has gone."
        step = Change("Read the Events of NodeClaims: kubectl get events -A | grep -i nodeclaim", Actor.ADMIN)
        return replace(adding, is_adding=False, summary=clip(told, LONGEST_SUMMARY), verdict=ScalingVerdict.FAILED,
                       changes=(step,))  # fmt: skip
    if claim.is_ready:
        return replace(
            adding, summary=clip(f"Node {claim.node_name} of NodeClaim {claim.name} is ready.", LONGEST_SUMMARY)
        )
    state = f"{claim.reason}. {claim.message}".strip(" .")
    told = clip(f"NodeClaim {claim.name} is not ready: {state}.", LONGEST_SUMMARY)
    if claim.reason == NO_GPUS_YET:
        told = clip(
            f"Node {claim.node_name or claim.name} has joined, but its GPUs are not registered.", LONGEST_SUMMARY
        )
        step = Change(f"Check the GPU stack of node {claim.node_name}: driver, then device plugin.", Actor.ADMIN)
        return replace(adding, summary=told, changes=(step,))
    is_failed = claim.reason.endswith(("Failed", "Error"))
    step = Change("Check capacity, quota and the NodeClass in the cloud account.", Actor.ADMIN)
    return replace(
        adding, is_adding=not is_failed, summary=told, changes=(step,) if is_failed else (),
        verdict=ScalingVerdict.FAILED if is_failed else ScalingVerdict.ADDING,
    )  # fmt: skip


def _pools(pools: Sequence[ScalingPool]) -> Iterator[str]:
    """Yields the NodePools that can add no node, and how much of their GPU limit the others use."""
    for pool in sorted(pools, key=lambda each: (each.is_ready, each.name)):
        if not pool.is_ready:
            yield clip(f"NodePool {pool.name} is not ready: {pool.message}", LONGEST_SUMMARY)
        for resource, limit in pool.limits.items():
            most, used = whole_quantity(limit), whole_quantity(pool.used.get(resource, "0")) or 0
            if most is not None and (used >= most or is_gpu_resource(resource)):
                yield f"NodePool {pool.name}: {pool.used.get(resource, '0')} of {limit} {resource} in use"


def _groups(groups: Sequence[ScalingGroup]) -> Iterator[str]:
    """Yields the node groups that are at work, at their maximum, or without their GPUs."""
    for group in groups:
        if group.scale_up == "Backoff":
            yield clip(f"{group.name} backs off: {group.error or 'the last scale-up failed'}", LONGEST_SUMMARY)
        elif group.scale_up == "InProgress":
            yield (
                f"{group.name} is adding nodes, to {group.target}" if group.target else f"{group.name} is adding nodes"
            )
        elif group.largest is not None and group.target is not None and group.target >= group.largest:
            yield f"{group.name} is at its maximum of {count(group.largest, 'node')}"
        if group.unready:
            yield f"{group.name}: {count(group.unready, 'node')} without registered GPUs"
