"""The tenants' own GPU pods run again on the changed nodes, as before (hazard Z26).

This is the most direct answer to "after the update half the nodes no longer run inference pods": drivers, operands
and validators can all be green while the workloads crash.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from rollouts.gates.base import (
    SHOWS_NOTHING,
    TO_COME,
    Evidence,
    Gate,
    Judgement,
    PodEvidence,
    TargetEvidence,
    When,
    fail,
    kept_empty,
    passed,
    share,
    wait,
)
from wording.lists import names
from wording.numbers import are, count


@dataclass(frozen=True)
class WorkloadsReady(Gate):
    timeout: timedelta = timedelta(minutes=10)  # from a pod's start on the node to Ready: models take long to load
    max_restarts: int = 2  # more since it started on the changed node: it is not loading, it is crashing
    tolerate: int = 0  # pods that may stay unready; the next one fails

    key: ClassVar[str] = "workloads_ready"
    title: ClassVar[str] = "Tenants' GPU pods"
    when: ClassVar[When] = When.THROUGH

    def judge(self, evidence: Evidence, *, now: datetime) -> Judgement:
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
        if idle := tuple(target.name for target in evidence.changed if _is_idle(target)):
            nobody = f"No GPU pod of a tenant has run on {names(idle)} since the change."
            return wait(nobody, cause="idle", nodes=idle, measured=measured)
        if lacking := _lacking(evidence):
            return replace(lacking, measured=measured)
        if evidence.not_changed:
            to_come = f"{share(len(evidence.not_changed), len(evidence.counted))} still to come."
            return wait(to_come, cause=TO_COME, measured=measured)
        return _passes(evidence, pods, measured, sick=bool(sick))

    def _is_broken(self, pod: PodEvidence, now: datetime) -> bool:
        return pod.restarts > self.max_restarts or now - pod.started_at > self.timeout


def _broken(broken: list[tuple[TargetEvidence, PodEvidence]], measured: Mapping[str, Any]) -> Judgement:
    nodes = tuple(dict.fromkeys(target.name for target, _ in broken))
    target, pod = broken[0]
    others = f" {len(broken)} GPU pods are broken on {names(nodes)}." if broken[1:] else ""
    sentence = f"{pod.name} does not run on {target.name} since the change{_why(pod)}.{others}"
    return fail(sentence, cause=pod.because or pod.status or "silent", nodes=nodes, measured=measured)


def _why(pod: PodEvidence) -> str:
    because = f": {pod.because}" if pod.because else _status(pod)
    if not pod.why:
        return because or ", and nothing says why"
    return f"{because}. {pod.why.rstrip('.')}"


def _passes(
    evidence: Evidence, pods: list[tuple[TargetEvidence, PodEvidence]], measured: Mapping[str, Any], *, sick: bool
) -> Judgement:
    """What is Ready, and where nothing is: a node without work shows nothing about its driver (hazard Z27)."""
    busy = {target.name for target, pod in pods if pod.is_ready}
    bare = [target.name for target in evidence.changed if target.name not in busy]
    if not busy:
        none = f"{_nowhere(evidence, sick=sick)} on {names(bare)}: nothing is shown about the new driver."
        return passed(none, cause=SHOWS_NOTHING, measured=measured)
    ready = measured["ready"]
    share_of_pods = count(ready, "GPU pod") if ready == len(pods) else f"{ready} of {len(pods)} GPU pods"
    where = names(sorted(busy)) if bare else "the changed nodes"
    elsewhere = f"; none is on {names(bare)}, which shows nothing about the new driver" if bare else ""
    return passed(f"{share_of_pods} of tenants {are(ready)} Ready on {where}{elsewhere}.", measured=measured)


def _nowhere(evidence: Evidence, *, sick: bool) -> str:
    if sick and any(pod.is_ready for target in evidence.changed for pod in target.workloads):
        return "No GPU pod of a tenant is Ready, but of owners whose pods crashed before,"
    if any(target.baseline is None for target in evidence.changed):
        return "No GPU pod of a tenant is Ready, and nobody knows which were before,"
    return "No GPU pod of a tenant was Ready before, so that none is missed, and none is now"


def _status(pod: PodEvidence) -> str:
    """` (ContainerCreating)`. Running says nothing that the sentence does not."""
    return f" ({pod.status})" if pod.status not in ("", "Running") else ""


def _is_idle(target: TargetEvidence) -> bool:
    """A node that had tenants and has none since proves nothing."""
    return bool(target.baseline and target.baseline.workloads) and not any(pod.is_ready for pod in target.workloads)


def _lacking(evidence: Evidence) -> Judgement | None:
    """The workload that has fewer Ready pods in the whole cluster than before its node was released. None: none has.

    A pod that fits nowhere is short of room, and says nothing about the new driver. One that is refused was never
    there, so that none is seen to wait: only that there are fewer tells of it (hazard Z31).
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
