"""The time that tenants' pods need to become Ready, which they need again elsewhere (Z16)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from capacity.warm_up import Started, quickest, workload_of
from fleet.models import Pod
from rollouts.checks import Check, each, stage_field
from rollouts.gates.workloads_ready import WorkloadsReady
from rollouts.preflight.subject import PreflightSubject
from wording.durations import spell
from wording.numbers import count


@dataclass(frozen=True)
class WarmUp:
    workload: str  # kind and namespace/name of the pods' owner
    pods: int  # of it on the nodes
    took: timedelta  # from the pod's start on the node to Ready, of the fastest pod

    @property
    def took_s(self) -> float:
        return self.took.total_seconds()

    @property
    def sentence(self) -> str:
        return f"{self.workload}: {spell(self.took)} or more ({count(self.pods, 'pod')})"


def warm_ups(pods: Sequence[Pod]) -> list[WarmUp]:
    """Returns slow workloads, the slowest first."""
    told = [
        (workload_of(pod.owner_kind, pod.namespace, pod.owner_name, pod.name), _started(pod))
        for pod in pods
        if pod.is_tenant
    ]
    there = Counter(workload for workload, _ in told)
    found = [WarmUp(workload, there[workload], took) for workload, took in quickest(told).items()]
    return sorted(found, key=lambda one: (-one.took, one.workload))


def _started(pod: Pod) -> Started:
    return Started(pod.is_ready, pod.restarts, pod.started_at, pod.ready_since)


def load_longer(subject: PreflightSubject) -> Iterator[Check]:
    """Yields warnings where a gate would take a loading pod for a broken one."""
    for stage in subject.stages:
        gate = next((one for one in stage.gates if isinstance(one, WorkloadsReady) and not one.advisory), None)
        if gate is None:
            continue
        on = {node.name for node in subject.picks.by_stage.get(stage.index, ())}
        slow = [
            one for one in warm_ups([pod for pod in subject.pods if pod.node_name in on]) if one.took > gate.timeout
        ]
        if sum(one.pods for one in slow) > gate.tolerate:
            yield Check(
                "loads-longer",
                title=f"Pods of {stage.name} load for longer than {spell(gate.timeout)}",
                summary=f"The gate {gate.title} would count these pods as broken, and the plan would halt.",
                evidence=each((one.workload, f"{spell(one.took)} or more ({count(one.pods, 'pod')})") for one in slow),
                steps=(f"Set the option timeout_s of the gate to more than {spell(slow[0].took)}.",),
                is_grave=True,
                field=stage_field(stage.index, f"gate_options.{gate.key}"),
            )
