"""Gates that cannot give a result on the nodes as they are now, each with the remedies."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from fleet.models import Node, Pod
from gpu.operands import VALIDATOR
from operations.test_jobs.test_job import resource_of
from rollouts.checks import Check, listed, stage_field
from rollouts.gates.base import Gate, NextWave
from rollouts.gates.drift import Drift
from rollouts.gates.exposure import Exposure
from rollouts.gates.headroom import FREE_ROOM, Headroom, room_items, short_of, shortage
from rollouts.gates.results import subject as named
from rollouts.gates.soak import Soak
from rollouts.gates.test_job import TestJobGate
from rollouts.gates.workloads_ready import WorkloadsReady
from rollouts.models import Stage
from rollouts.node_order.node_selection import at_once
from rollouts.preflight.driver_facts import OperandPod
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.headroom import ClusterRoom, read_room
from wording.durations import spell
from wording.numbers import count, either
from wording.reports import EvidenceItem, fit

WAIVE = "Or make the gate advisory, with a reason that approvers see."
Pods = Mapping[str, Sequence[Pod]]  # of tenants, by node's name


@dataclass(frozen=True)
class Blind:
    """A gate that would wait for ever on such a node."""

    is_blind: Callable[[Node, Collection[OperandPod]], bool]
    of_one: str
    of_many: str
    helps: str


BLIND: Mapping[str, Blind] = {
    "driver_version": Blind(
        lambda node, _: not node.driver_version or node.driver_unknown_since is not None,
        "reports no driver version",
        "report no driver version",
        "GPU feature discovery labels it.",
    ),
    "operands_ready": Blind(
        lambda _, operands: not any(one.is_ready for one in operands),
        "has no Ready operand",
        "have no Ready operand",
        "Check the GPU stack of the node first.",
    ),
    "validator_passed": Blind(
        lambda _, operands: all(one.operand != VALIDATOR for one in operands),
        "runs no validator",
        "run no validator",
        "The operator runs one where the label nvidia.com/gpu.deploy.operator-validator is true.",
    ),
    "allocatable_restored": Blind(
        lambda node, _: not node.allocatable,
        "offers no GPUs",
        "offer no GPUs",
        "The device plugin reports them.",
    ),
    "test_job": Blind(
        lambda node, _: not resource_of(node.allocatable, 1),
        "offers no GPU for a test Job",
        "offer no GPU for a test Job",
        "The device plugin offers them. Claimed devices (DRA) are not tested. The node stays cordoned until a person "
        "overrides the gate, unless its option cordon is false.",
    ),
}
# Without GPU pods of tenants: effect on each gate, and the remedy.
IDLE: Mapping[str, tuple[str, str]] = {
    WorkloadsReady.key: (
        "The gate Tenants' GPU pods waits until something has tested the new driver.",
        "Add the gate Test Job, or pick nodes with tenants.",
    ),
    Exposure.key: (
        "The gate Exposure waits until tenants or test Jobs have worked there.",
        "Add the gate Test Job; after its wait_timeout_s the gate asks a person.",
    ),
}


PROVING = (WorkloadsReady, TestJobGate, Exposure)


def unmeasured(subject: PreflightSubject) -> Iterator[Check]:
    """Yields warnings. Three queries if a stage asks for headroom."""
    plan, stages, picked = subject.plan, subject.stages, subject.picks.by_stage
    pods = _pods_by_node(subject.pods)
    asks = any(Headroom.key in stage.gate_options for stage in stages)
    products = {node.gpu_product for nodes in picked.values() for node in nodes}
    room = read_room(plan.cluster_id, products) if asks else None
    for stage in stages:
        nodes = picked.get(stage.index, ())
        first = _first_wave(subject, stage, nodes) if room and nodes else ()
        for gate in stage.gates if nodes else ():
            yield from _checks_of_gate(subject, stage, gate, pods, _lacks_room(room, gate, first, pods))


def unproven(subject: PreflightSubject) -> Iterator[Check]:
    """Yields a warning if the first stage passes without a workload: others follow it, or the plan ends."""
    stages = [stage for stage in subject.stages if subject.picks.by_stage.get(stage.index)]
    if not stages or any(isinstance(gate, PROVING) and not gate.advisory for gate in stages[0].gates):
        return
    first, then = stages[0], "The other stages follow" if len(stages) > 1 else "The plan ends"
    yield Check(
        "unproven",
        title=fit("No gate of {} needs a workload", first.name),
        summary=f"{then} without proof that GPU workloads run on the new driver.",
        steps=("Count the gate Tenants' GPU pods, Test Job or Exposure in this stage.",),
        is_grave=True,
        field=stage_field(first.index, "gate_options"),
    )


def _pods_by_node(pods: Sequence[Pod]) -> Pods:
    found: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.is_tenant:
            found[pod.node_name].append(pod)
    return found


def _first_wave(subject: PreflightSubject, stage: Stage, nodes: Sequence[Node]) -> list[Node]:
    policy, names_of = subject.driver.upgrade_policy, [node.name for node in nodes]
    going = at_once(stage.max_unavailable, names_of, policy, subject.budgets, fleet=len(subject.nodes)).first_wave
    return [node for node in nodes if node.name in going]


def _checks_of_gate(
    subject: PreflightSubject, stage: Stage, gate: Gate, pods: Pods, lacks: NextWave | None
) -> Iterator[Check]:
    nodes = subject.picks.by_stage[stage.index]
    where, field = (
        f"{gate.title} of {stage.name} would wait forever.",
        stage_field(stage.index, f"gate_options.{gate.key}"),
    )
    if isinstance(gate, Headroom):
        if lacks:
            yield Check(
                "headroom",
                title=shortage(lacks),
                summary=f"{gate.title} of {stage.name} is advisory and delays nothing." if gate.advisory else where,
                evidence=room_items(lacks),
                steps=() if gate.advisory else FREE_ROOM,
                is_grave=not gate.advisory,
                field=field,
            )
        return
    if gate.advisory:
        return
    if isinstance(gate, Drift):
        yield from _hours_beyond_soak(stage, gate, field)
    is_tested = _is_tested(gate, stage, len(nodes))
    if isinstance(gate, WorkloadsReady | Exposure) and not is_tested and not _tenants_on(nodes, pods):
        title = f"No tenant's GPU pod runs on {named([node.name for node in nodes])}"
        shown = listed("Nodes", (node.name for node in nodes))
        summary, step = IDLE[gate.key]
        yield Check("unmeasured", title=title, summary=summary, evidence=shown, steps=(step,), field=field)
    if isinstance(gate, Exposure) and gate.nodes > len(nodes):
        title = f"The gate needs work on {count(gate.nodes, 'node')}; the stage has {len(nodes)}"
        steps = ("Set its option nodes to a smaller number.", WAIVE)
        yield Check("unmeasured", title=title, summary=where, steps=steps, is_grave=True, field=field)
    blind = BLIND.get(gate.key)
    if blind and (lacking := [one.name for one in nodes if blind.is_blind(one, subject.operands.get(one.name, ()))]):
        title = f"{named(lacking)} {either(len(lacking), blind.of_one, blind.of_many)}"
        shown, steps = listed("Nodes", lacking), (blind.helps, WAIVE)
        yield Check("unmeasured", title=title, summary=where, evidence=shown, steps=steps, is_grave=True, field=field)


def _is_tested(gate: Gate, stage: Stage, nodes: int) -> bool:
    """Returns whether test Jobs alone may pass the gate: each counts as a GPU-minute at least."""
    has_test = any(isinstance(one, TestJobGate) for one in stage.gates)
    return has_test and not (isinstance(gate, Exposure) and gate.gpu_minutes > nodes)


def _hours_beyond_soak(stage: Stage, gate: Drift, field: str) -> Iterator[Check]:
    """Yields a warning if the gate needs more time than the soak. The soak begins only once the gate passes."""
    soak = next((one.duration for one in stage.gates if isinstance(one, Soak)), timedelta(0))
    needed, limit = gate.longest_wait, gate.wait_timeout or timedelta(seconds=stage.timeout_s)
    if soak >= needed and limit >= needed:
        return
    asks = f" The gate asks a person after {spell(limit)}." if limit < needed else ""
    step = "Set the timeout of the stage, or the gate's wait_timeout_s, to that time or more."
    yield Check(
        "unmeasured",
        title=fit("Slow drift needs up to {} of telemetry in {}", spell(needed), stage.name),
        summary=f"The soak of {spell(soak)} begins after these hours.{asks}",
        evidence=(EvidenceItem("Busy hours after each change", gate.hours), EvidenceItem("Soak", spell(soak))),
        steps=(step,) if limit < needed else ("Expect the stage to take that much longer.",),
        field=field,
    )


def _tenants_on(nodes: Sequence[Node], pods: Pods) -> bool:
    return any(node.name in pods for node in nodes)


def _lacks_room(room: ClusterRoom | None, gate: Gate, first: Sequence[Node], pods: Pods) -> NextWave | None:
    """Returns the first wave if it lacks room now; None if it does not or if no gate asks."""
    if room is None or not isinstance(gate, Headroom):
        return None
    tenants = [pod for node in first for pod in pods.get(node.name, ())]
    wave = room.next_wave(first, tenants)
    return wave if short_of(wave) > gate.tolerate else None
