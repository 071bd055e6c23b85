"""The tenants' GPU pods run again on the changed nodes (Z26).

Drivers, operands and validators can all be green while workloads crash. An idle node proves nothing about its driver:
each kind of node among the changed ones needs a tenant's pod that became Ready there, or a passed test Job (Z27, Z41).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from rollouts.gates.base import (
    NO_TARGET,
    TO_COME,
    UNTESTED,
    Evidence,
    Gate,
    GateResult,
    PodEvidence,
    TargetEvidence,
    When,
    fail,
    kept_empty,
    passed,
    share,
    wait,
)
from rollouts.test_jobs.test_progress import TestJobOutcome
from wording.lists import names
from wording.numbers import are, count

Kinds = frozenset[tuple[str, str]]  # what nodes are made of: (fact, value), as (kernel, 5.15.0-151)


@dataclass(frozen=True)
class WorkloadsReady(Gate):
    timeout: timedelta = timedelta(minutes=10)  # from a pod's start on the node to Ready: models take long to load
    max_restarts: int = 2  # more since it started on the changed node: it is not loading, it is crashing
    tolerate: int = 0  # pods that may stay unready; the next one fails

    key: ClassVar[str] = "workloads_ready"
    title: ClassVar[str] = "Tenants' GPU pods"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        sick = {owner for target in evidence.changed if target.baseline for owner in target.baseline.sick_owners}
        pods = [(target, pod) for target in evidence.changed for pod in target.workloads if pod.owner not in sick]
        unready = [(target, pod) for target, pod in pods if not pod.is_ready]
        broken = [(target, pod) for target, pod in unready if self._is_broken(pod, now)]
        measured: dict[str, Any] = {
            "pods": len(pods),
            "ready": len(pods) - len(unready),
            "broken": len(broken),
            "tolerated": self.tolerate,
        }
        if sick:
            measured["sick_before"] = sorted(sick)
        if len(broken) > self.tolerate:
            return _broken(broken, measured)
        if len(unready) > self.tolerate:
            target, pod = unready[0]
            those = f"{count(len(unready), 'GPU pod')} {are(len(unready))} not Ready yet"
            sentence = f"{those}, such as {pod.name} on {target.name}{_status(pod)}."
            return wait(sentence, cause="not-ready", measured=measured)
        if empty := kept_empty(evidence.changed, measured):
            return empty
        if lacking := _lacking(evidence):
            return replace(lacking, measured=measured)
        if evidence.not_changed:
            to_come = f"{share(len(evidence.not_changed), len(evidence.counted))} still to come."
            return wait(to_come, cause=TO_COME, measured=measured)
        if not evidence.changed:
            return wait("The stage has no node left: nothing has tested the new driver.", cause=NO_TARGET)
        measured["proven"] = sum(_is_proven(target) for target in evidence.changed)
        proven = frozenset(fact for target in evidence.changed if _is_proven(target) for fact in target.facts.items())
        if unproven := _unproven(evidence.changed, proven):
            return _untested(unproven, proven, measured)
        return passed(_says_proven(evidence.changed, measured), measured=measured)

    def _is_broken(self, pod: PodEvidence, now: datetime) -> bool:
        return pod.restarts > self.max_restarts or now - pod.started_at > self.timeout


def _broken(broken: list[tuple[TargetEvidence, PodEvidence]], measured: Mapping[str, Any]) -> GateResult:
    nodes = tuple(dict.fromkeys(target.name for target, _ in broken))
    target, pod = broken[0]
    others = f" {len(broken)} GPU pods are broken on {names(nodes)}." if broken[1:] else ""
    sentence = f"{pod.name} does not run on {target.name} since the change{_why(pod)}.{others}"
    return fail(sentence, cause=pod.reason or pod.status or "silent", nodes=nodes, measured=measured)


def _why(pod: PodEvidence) -> str:
    reason = f": {pod.reason}" if pod.reason else _status(pod)
    if not pod.why:
        return reason or ", and nothing says why"
    return f"{reason}. {pod.why.rstrip('.')}"


def served(target: TargetEvidence) -> bool:
    """Returns whether a tenant's GPU pod is Ready on the node, of an owner without crashes before the change."""
    sick = target.baseline.sick_owners if target.baseline else ()
    return any(pod.is_ready and pod.owner not in sick for pod in target.workloads)


def _is_tested(target: TargetEvidence) -> bool:
    return target.test_job is not None and target.test_job.outcome is TestJobOutcome.PASSED


def _is_proven(target: TargetEvidence) -> bool:
    return target.has_served or served(target) or _is_tested(target)


def _unproven(changed: Sequence[TargetEvidence], proven: Kinds) -> tuple[TargetEvidence, ...]:
    """Returns the nodes without a test of their own or of a proven node of the same kind.

    A node that had tenants needs them back.
    """
    return tuple(target for target in changed if not _is_proven(target) and not _is_spoken_for(target, proven))


def _is_spoken_for(target: TargetEvidence, proven: Kinds) -> bool:
    had_tenants = bool(target.baseline and target.baseline.workloads)
    return not had_tenants and bool(target.facts) and target.facts.items() <= proven


def _untested(unproven: Sequence[TargetEvidence], proven: Kinds, measured: Mapping[str, Any]) -> GateResult:
    nodes = tuple(target.name for target in unproven)
    unmet = {fact for target in unproven for fact in target.facts.items() - proven if all(fact)}
    kinds = names(sorted(f"{_title(name)} {value}" for name, value in unmet))
    of_kinds = f" No proven node has {kinds}." if proven and kinds else ""
    nothing = f"Nothing has tested the new driver on {names(nodes)}: no tenant's GPU pod ran, and no test Job passed."
    return wait(f"{nothing}{of_kinds}", cause=UNTESTED, nodes=nodes, measured=measured)


def _title(fact: str) -> str:
    return fact.replace("_", " ")


def _says_proven(changed: Sequence[TargetEvidence], measured: Mapping[str, Any]) -> str:
    ready, pods = measured["ready"], measured["pods"]
    busy = [target.name for target in changed if served(target)]
    share_of_pods = count(ready, "GPU pod") if ready == pods else f"{ready} of {pods} GPU pods"
    where = names(busy) if len(busy) < len(changed) else "the changed nodes"
    running = f"{share_of_pods} of tenants {are(ready)} Ready on {where}." if busy else ""
    earlier = [target.name for target in changed if target.has_served and not served(target)]
    ran = f"Tenants' GPU pods became Ready earlier on {names(earlier)}." if earlier else ""
    tested = [target.name for target in changed if _is_tested(target) and not target.has_served and not served(target)]
    passed_there = f"A test Job passed on {names(tested)}." if tested else ""
    idle = [target.name for target in changed if not _is_proven(target)]
    like = f"{names(idle)} {are(len(idle))} idle, and of the same kinds as the proven nodes." if idle else ""
    return " ".join(sentence for sentence in (running, ran, passed_there, like) if sentence)


def _status(pod: PodEvidence) -> str:
    """Returns text such as ` (ContainerCreating)`; nothing for Running."""
    return f" ({pod.status})" if pod.status not in ("", "Running") else ""


def _lacking(evidence: Evidence) -> GateResult | None:
    """Returns a result for the workload with fewer Ready pods in the cluster than before its node's release; None if
    none.

    A pod that fits nowhere lacks room and says nothing about the driver. A rejected pod never exists, so only the
    smaller number shows it (Z31).
    """
    for owner, before in evidence.workloads_ready_before.items():
        now = evidence.workloads_ready_now.get(owner, 0)
        if now + evidence.workloads_waiting_for_room.get(owner, 0) < before:
            fewer = f"{owner} has {now} Ready of the {before} it had before."
            refused = evidence.workloads_refused.get(owner, "")
            if refused:
                return wait(f"{fewer} The API server takes no new one: {refused}", cause="refused")
            return wait(fewer, cause="fewer")
    return None
