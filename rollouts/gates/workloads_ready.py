"""The tenants' GPU pods run again on the changed nodes (Z26).

Drivers, operands and validators can all be green while workloads crash. An idle node proves nothing about its driver:
each kind of node among the changed ones needs a tenant's pod that became Ready there, or a passed test Job (Z27, Z41).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.base import UNTESTED, Evidence, Gate, GateResult, Items, PodEvidence, TargetEvidence, When
from rollouts.gates.results import (
    fail,
    no_target,
    passed,
    sentence_of_first_node,
    subject,
    to_come,
    wait,
    wait_for_cordoned_nodes,
)
from wording.durations import spell
from wording.lists import names
from wording.numbers import are, count, either
from wording.reports import EvidenceItem, first_items

Kinds = frozenset[tuple[str, str]]  # properties of nodes: (fact, value), such as (kernel, 5.15.0-151)


@dataclass(frozen=True)
class WorkloadsReady(Gate):
    timeout: timedelta = timedelta(minutes=10)  # for a pod to become Ready on the node: models take long to load
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
        counts: Items = (
            EvidenceItem("GPU pods of tenants", len(pods)),
            EvidenceItem("Ready", len(pods) - len(unready)),
            EvidenceItem("Broken", len(broken)),
            EvidenceItem("Tolerated", self.tolerate),
            *([EvidenceItem("Crashed before the change", names(sorted(sick)))] if sick else []),
        )
        if len(broken) > self.tolerate:
            return _fail_broken_pods(broken, counts)
        if len(unready) > self.tolerate:
            title = f"{count(len(unready), 'GPU pod')} {are(len(unready))} not Ready yet"
            summary = f"A pod may take {spell(self.timeout)} to become Ready."
            items = (*counts, *first_items(_item(target, pod) for target, pod in unready))
            return wait(title, summary, cause="not-ready", evidence=items)
        if empty := wait_for_cordoned_nodes(evidence.changed, counts):
            return empty
        if lacking := _lacking(evidence, counts):
            return lacking
        if evidence.not_changed:
            return to_come(evidence, counts)
        if not evidence.changed:
            return no_target()
        proven = frozenset(fact for target in evidence.changed if _is_proven(target) for fact in target.facts.items())
        items = (*counts, *_tests(evidence.changed))
        if unproven := _unproven(evidence.changed, proven):
            return _untested(unproven, proven, items)
        title = f"The driver is tested on {count(len(evidence.changed), 'changed node')}"
        return passed(title, "Tenants' pods ran or a test Job passed on each kind of node.", evidence=items)

    def _is_broken(self, pod: PodEvidence, now: datetime) -> bool:
        since = max(pod.started_at, pod.unready_since or pod.started_at)
        return pod.restarts > self.max_restarts or now - since > self.timeout


def _fail_broken_pods(broken: list[tuple[TargetEvidence, PodEvidence]], counts: Items) -> GateResult:
    nodes = tuple(dict.fromkeys(target.name for target, _ in broken))
    _, pod = broken[0]
    pods = pod.name if len(broken) == 1 else count(len(broken), "GPU pod")
    reason = pod.reason or pod.status
    items = (*counts, *first_items(_item(target, pod) for target, pod in broken))
    return fail(
        f"{pods} {either(len(broken), 'fails', 'fail')} on {subject(nodes)}",
        sentence_of_first_node(
            [pod.name for _, pod in broken],
            f"{reason.partition(': ')[0] or 'no reason is reported'}. {pod.why}".rstrip(". "),
        ),
        cause=reason or "silent",
        nodes=nodes,
        evidence=items,
        steps=("Read the log of the pod.", "Then roll back, or exclude the node."),
    )


def _item(target: TargetEvidence, pod: PodEvidence) -> EvidenceItem:
    """Returns the state of a pod and its likely cause."""
    state = pod.reason or pod.status or "not Ready"
    return EvidenceItem(f"{pod.name} on {target.name}", f"{state}. {pod.why}" if pod.why else state)


def served(target: TargetEvidence) -> bool:
    """Returns whether a tenant's GPU pod became Ready on the node since its new driver began.

    A pod that nothing evicted is as Ready as before and has not used the new driver. Owners with crashes before the
    change do not count.
    """
    sick = target.baseline.sick_owners if target.baseline else ()
    return any(pod.is_ready and pod.owner not in sick and not _stayed(target, pod) for pod in target.workloads)


def _stayed(target: TargetEvidence, pod: PodEvidence) -> bool:
    """Returns whether the pod has been Ready without a break since before the node's new driver began."""
    return pod.is_ready and (pod.ready_since or pod.started_at) < target.driver_since


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


def _untested(unproven: Sequence[TargetEvidence], proven: Kinds, items: Items) -> GateResult:
    nodes = tuple(target.name for target in unproven)
    unmet = {fact for target in unproven for fact in target.facts.items() - proven if all(fact)} if proven else set()
    kinds = first_items(EvidenceItem(f"Untested {name.replace('_', ' ')}", value) for name, value in sorted(unmet))
    title = f"Nothing has tested the driver on {subject(nodes)}"
    summary = "No tenant's GPU pod became Ready there with the new driver, and no test Job passed."
    return wait(title, summary, cause=UNTESTED, nodes=nodes, evidence=(*items, *kinds))


def _tests(changed: Sequence[TargetEvidence]) -> Iterator[EvidenceItem]:
    """Yields the tested nodes by the kind of test, and the idle ones."""
    running = [target.name for target in changed if served(target)]
    earlier = [target.name for target in changed if target.has_served and not served(target)]
    idle_before = (target for target in changed if not (target.has_served or served(target)))
    tested = [target.name for target in idle_before if _is_tested(target)]
    unproven = [target for target in changed if not _is_proven(target)]
    stayed = [target.name for target in unproven if any(_stayed(target, pod) for pod in target.workloads)]
    idle = [target.name for target in unproven if target.name not in stayed]
    kinds = {"Pods are Ready on": running, "Pods were Ready on": earlier, "Test Job passed on": tested,
             "Only pods from before the change on": stayed, "Idle": idle}  # fmt: skip
    return (EvidenceItem(label, names(nodes)) for label, nodes in kinds.items() if nodes)


def _lacking(evidence: Evidence, counts: Items) -> GateResult | None:
    """Returns WAIT for the workload with fewer Ready pods in the cluster than before its node's release.

    None if no workload lacks pods. A pod that fits nowhere lacks room and says nothing about the driver. A rejected pod
    never exists, so only the smaller number shows it (Z31).
    """
    for owner, before in evidence.workloads_ready_before.items():
        now = evidence.workloads_ready_now.get(owner, 0)
        if now + evidence.workloads_waiting_for_room.get(owner, 0) < before:
            title, summary = f"{now} of {count(before, 'GPU pod')} {are(now)} Ready again", f"Workload: {owner}."
            items = (*counts, EvidenceItem("Workload", owner), EvidenceItem("Ready before", before))
            if refused := evidence.workloads_refused.get(owner, ""):
                items = (*items, EvidenceItem("The API server rejects new pods", refused))
                return wait(title, f"The API server rejects new pods: {refused}", cause="refused", evidence=items)
            return wait(title, summary, cause="fewer", evidence=items)
    return None
