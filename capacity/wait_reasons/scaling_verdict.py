"""The answer to whether an autoscaler adds a node for a pod, from its Events and its own objects. Pure.

Events show its decision about the pod; NodePools, NodeClaims and the status of the cluster autoscaler show the
result. Reasons of NodeClaims: kubernetes-sigs/karpenter@v1.14.1, pkg/controllers/nodeclaim/lifecycle. The status is
written every ten seconds, and its row is rounded to five minutes.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
CLAIMS, STATUS = "claims", "status"
NO_GPUS_YET, BACKOFF = "ResourceNotRegistered", "Backoff"
CLOUD = Change("Check capacity, quota and the NodeClass in the cloud account.", Actor.ADMIN)
SCALED_UP = re.compile(r"\{(\S+) \d+->\d+")  # a node group in the Event TriggeredScaleUp
SETTLES = timedelta(seconds=30)  # a status is ten seconds old at most; later it knows of the scale-up


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
    unread: str = ""  # kinds that may not be read, or were not understood
    claims_seen_at: datetime | None = None  # as of when the claims are known
    status_seen_at: datetime | None = None
    stale: Collection[str] = ()  # CLAIMS, STATUS: known only as of then

    @property
    def is_status_old(self) -> bool:
        """Tells whether the status was old already when it was last seen."""
        at, seen_at = self.status_at, self.status_seen_at
        return at is not None and seen_at is not None and seen_at - at > DOWN_AFTER

    @property
    def status_details(self) -> Sequence[str]:
        """Returns what the status says of its groups; of an old or stale one only its time."""
        if self.groups is None:
            return ()
        if self.is_status_old and self.status_at:
            return (f"The last status of the cluster autoscaler was written at {to_the_minute(self.status_at)}",)
        if STATUS in self.stale:
            return (f"The status of the cluster autoscaler is {_known_as_of(self.status_seen_at)}",)
        return tuple(_groups(self.groups))


def scaling_verdict(report: ScalingReport | None, facts: ScalingFacts) -> ScalingReport | None:
    """Returns the report with its verdict. None: no autoscaler is known here."""
    if report is None:
        return _without_event(facts)
    details = list(_pools(facts.pools) if report.autoscaler == KARPENTER else facts.status_details)[:DETAILS_AT_MOST]
    report = replace(report, details=details)
    if not report.is_adding:
        return report
    return _with_claim_state(report, facts) if report.autoscaler == KARPENTER else _with_group_state(report, facts)


def _without_event(facts: ScalingFacts) -> ScalingReport | None:
    """Returns what the objects alone say. An autoscaler writes no Event while it adds nodes for other pods."""
    status = list(facts.status_details)[:DETAILS_AT_MOST]
    if facts.pools and (facts.groups is None or facts.is_status_old):  # the status of an autoscaler before Karpenter
        told = f"It has {count(len(facts.pools), 'NodePool')} and has written no Event about this pod."
        return _report(KARPENTER, told, ScalingVerdict.SILENT, [*_pools(facts.pools), *status][:DETAILS_AT_MOST])
    if facts.groups is None:
        return None
    at = facts.status_at
    if STATUS in facts.stale:
        told = f"Its status is {_known_as_of(facts.status_seen_at)}."
        return _report(CLUSTER_AUTOSCALER, told, ScalingVerdict.UNKNOWN, (), at=facts.status_seen_at)
    if facts.is_status_old and at:
        step = Change("Check the Deployment cluster-autoscaler, and its log.", Actor.ADMIN)
        told = f"Its last status was written at {to_the_minute(at)}. It writes one every 10 seconds."
        return _report(CLUSTER_AUTOSCALER, told, ScalingVerdict.DOWN, _groups(facts.groups), at=at, changes=(step,))
    told = f"It knows {count(len(facts.groups), 'node group')} and has written no Event about this pod."
    return _report(CLUSTER_AUTOSCALER, told, ScalingVerdict.SILENT, status, at=at)


def _known_as_of(at: datetime | None) -> str:
    return f"not known since {to_the_minute(at)}" if at else "not known"


def _is_seen_after(seen_at: datetime | None, at: datetime | None) -> bool:
    return seen_at is not None and (at is None or seen_at > at)


def _report(
    autoscaler: str,
    told: str,
    verdict: ScalingVerdict,
    details: Iterable[str],
    *,
    at: datetime | None = None,
    changes: Sequence[Change] = (),
) -> ScalingReport:
    shown = list(details)[:DETAILS_AT_MOST]
    return ScalingReport(
        autoscaler, is_adding=False, summary=told, message="", changes=changes, at=at, verdict=verdict, details=shown
    )  # fmt: skip


def _with_group_state(report: ScalingReport, facts: ScalingFacts) -> ScalingReport:
    """Returns the state of the node groups that the cluster autoscaler scaled up for the pod."""
    named = {name.rpartition("/")[2] for name in SCALED_UP.findall(report.message)}
    known = {group.name: group for group in facts.groups or ()}
    since = report.at + SETTLES if report.at else None
    if STATUS in facts.stale or facts.is_status_old or not _is_seen_after(facts.status_seen_at, since):
        return report
    failed = [known[name] for name in sorted(named) if name in known and known[name].scale_up == BACKOFF]
    if not failed or len(failed) < len(named):
        return report
    told = clip(f"{_backs_off(failed[0])}.", LONGEST_SUMMARY)
    return replace(report, is_adding=False, summary=told, verdict=ScalingVerdict.FAILED, changes=(CLOUD,))


def _with_claim_state(report: ScalingReport, facts: ScalingFacts) -> ScalingReport:
    """Returns the state of the NodeClaim that Karpenter planned for the pod."""
    named = CLAIM.search(report.message)
    if named is None or facts.claims is None or not _is_seen_after(facts.claims_seen_at, report.at):
        return report
    if CLAIMS in facts.stale:
        told = f"NodeClaim {named[1]} is {_known_as_of(facts.claims_seen_at)}."
        return replace(report, summary=clip(told, LONGEST_SUMMARY))
    claim = facts.claims.get(named[1])
    if claim is None:
        told = f"NodeClaim {named[1]} no longer exists: it created no node, or the node was removed."
        step = Change("Read the Events of NodeClaims: kubectl get events -A | grep -i nodeclaim", Actor.ADMIN)
        return replace(report, is_adding=False, summary=clip(told, LONGEST_SUMMARY), verdict=ScalingVerdict.FAILED,
                       changes=(step,))  # fmt: skip
    if claim.is_ready:
        told = f"Node {claim.node_name} of NodeClaim {claim.name} is ready."
        return replace(report, summary=clip(told, LONGEST_SUMMARY), verdict=ScalingVerdict.READY)
    if claim.reason == NO_GPUS_YET:
        told = f"Node {claim.node_name or claim.name} has joined, but its GPUs are not registered."
        step = Change(f"Check the GPU stack of node {claim.node_name}: driver, then device plugin.", Actor.ADMIN)
        return replace(report, summary=clip(told, LONGEST_SUMMARY), changes=(step,))
    state = f"{claim.reason}. {claim.message}".strip(" .")
    told = f"NodeClaim {claim.name} is not ready: {state}." if state else f"NodeClaim {claim.name} has no status yet."
    report = replace(report, summary=clip(told, LONGEST_SUMMARY))
    if not claim.reason.endswith(("Failed", "Error")):
        return report
    return replace(report, is_adding=False, verdict=ScalingVerdict.FAILED, changes=(CLOUD,))


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
        if group.scale_up == BACKOFF:
            yield clip(_backs_off(group), LONGEST_SUMMARY)
        elif group.scale_up == "InProgress":
            yield (
                f"{group.name} is adding nodes, to {group.target}" if group.target else f"{group.name} is adding nodes"
            )
        elif group.largest is not None and group.target is not None and group.target >= group.largest:
            yield f"{group.name} is at its maximum of {count(group.largest, 'node')}"
        if group.unready:
            yield f"{group.name}: {count(group.unready, 'node')} without registered GPUs"


def _backs_off(group: ScalingGroup) -> str:
    return f"{group.name} backs off: {group.error or 'the last scale-up failed'}"
