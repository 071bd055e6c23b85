"""Gates that cannot give a result on the nodes as they are now, each with the remedies."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleet.models import Node, Pod
from gpu.operands import VALIDATOR
from rollouts.checks import Check, stage_field
from rollouts.gates.base import Gate
from rollouts.gates.exposure import Exposure
from rollouts.gates.headroom import Headroom, short_of, shortage
from rollouts.gates.test_job import TestJobGate
from rollouts.gates.workloads_ready import WorkloadsReady
from rollouts.models import Stage
from rollouts.node_order.node_selection import at_once
from rollouts.preflight.driver_facts import OperandPod
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.headroom import ClusterRoom, read_room
from rollouts.test_jobs.test_job import resource_of
from wording.lists import names
from wording.numbers import count, either

WAIVE = "Or make the gate advisory, with a reason that whoever approves is shown."
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
        "does not name its driver",
        "do not name their driver",
        "GPU feature discovery labels it.",
    ),
    "operands_ready": Blind(
        lambda _, operands: not any(one.is_ready for one in operands),
        "has no operand that is Ready, so that none would be missed",
        "have no operand that is Ready, so that none would be missed",
        "Look at the GPU stack there first.",
    ),
    "validator_passed": Blind(
        lambda _, operands: all(one.operand != VALIDATOR for one in operands),
        "runs no validator",
        "run no validator",
        "The operator runs one where the label nvidia.com/gpu.deploy.operator-validator is true.",
    ),
    "allocatable_restored": Blind(
        lambda node, _: not node.allocatable,
        "does not say how many GPUs it offers",
        "do not say how many GPUs they offer",
        "The device plugin does.",
    ),
    "test_job": Blind(
        lambda node, _: not resource_of(node.allocatable, 1),
        "offers no GPU as a resource that a test Job could ask for",
        "offer no GPU as a resource that a test Job could ask for",
        "The device plugin does; devices that are claimed (DRA) are not tested. Such a node takes no pods until a "
        "person passes over the gate, unless its option cordon is false.",
    ),
}
# Where no GPU pod of a tenant runs: what that is to a gate, and what helps.
IDLE: Mapping[str, tuple[str, str]] = {
    WorkloadsReady.key: (
        "so that it waits for proof",
        "Add the gate Test Job, or pick nodes with tenants.",
    ),
    Exposure.key: (
        "so that it waits until some have worked there",
        "Its option wait_timeout_s says for how long, before a person is asked.",
    ),
}


def unmeasured(subject: PreflightSubject) -> Iterator[Check]:
    """Yields warnings. Three queries if a stage asks for headroom."""
    plan, stages, picked = subject.plan, subject.stages, subject.picks.by_stage
    pods = _by_node(subject.pods)
    asks = any(Headroom.key in stage.gate_options for stage in stages)
    products = {node.gpu_product for nodes in picked.values() for node in nodes}
    room = read_room(plan.cluster_id, products) if asks else None
    for stage in stages:
        nodes = picked.get(stage.index, ())
        first = _first_wave(subject, stage, nodes) if room and nodes else ()
        for gate in stage.gates if nodes else ():
            yield from _of_gate(subject, stage, gate, pods, _lacks_room(room, gate, first, pods))


def _by_node(pods: Sequence[Pod]) -> Pods:
    found: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.is_tenant:
            found[pod.node_name].append(pod)
    return found


def _first_wave(subject: PreflightSubject, stage: Stage, nodes: Sequence[Node]) -> list[Node]:
    policy, names_of = subject.driver.upgrade_policy, [node.name for node in nodes]
    going = at_once(stage.max_unavailable, names_of, policy, subject.budgets, fleet=len(subject.nodes)).first_wave
    return [node for node in nodes if node.name in going]


def _of_gate(subject: PreflightSubject, stage: Stage, gate: Gate, pods: Pods, lacks: str) -> Iterator[Check]:
    nodes = subject.picks.by_stage[stage.index]
    where, field = f"{stage.name}, {gate.title}", stage_field(stage.index, f"gate_options.{gate.key}")
    if isinstance(gate, Headroom):
        if lacks:
            helps = "Free some, let its option tolerate say how many may wait, or make it advisory."
            fix = "" if gate.advisory else helps
            yield Check("headroom", f"{where}: {lacks}", fix, is_grave=not gate.advisory, field=field)
        return
    if gate.advisory:
        return
    is_tested = isinstance(gate, WorkloadsReady) and any(isinstance(one, TestJobGate) for one in stage.gates)
    if isinstance(gate, WorkloadsReady | Exposure) and not is_tested and not _tenants_on(nodes, pods):
        those = names([node.name for node in nodes])
        so_that, helps = IDLE[gate.key]
        yield Check("unmeasured", f"{where}: no GPU pod of a tenant runs on {those}, {so_that}.", helps, field=field)
    if isinstance(gate, Exposure) and gate.nodes > len(nodes):
        few = f"{where}: it asks for tenants' work on {count(gate.nodes, 'node')}, and the stage has {len(nodes)}."
        yield Check("unmeasured", few, f"Let it ask for fewer. {WAIVE}", is_grave=True, field=field)
    blind = BLIND.get(gate.key)
    if blind and (lacking := [one.name for one in nodes if blind.is_blind(one, subject.operands.get(one.name, ()))]):
        sentence = f"{where}: {names(lacking)} {either(len(lacking), blind.of_one, blind.of_many)}."
        yield Check("unmeasured", sentence, f"{blind.helps} {WAIVE}", is_grave=True, field=field)


def _tenants_on(nodes: Sequence[Node], pods: Pods) -> bool:
    return any(node.name in pods for node in nodes)


def _lacks_room(room: ClusterRoom | None, gate: Gate, first: Sequence[Node], pods: Pods) -> str:
    """Returns the room that the first wave lacks now; empty if none or if no gate asks."""
    if room is None or not isinstance(gate, Headroom):
        return ""
    tenants = [pod for node in first for pod in pods.get(node.name, ())]
    wave = room.next_wave(first, tenants)
    return f"{shortage(wave)}." if short_of(wave) > gate.tolerate else ""
