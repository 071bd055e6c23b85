"""Gates and budgets with extreme values: those that can never be met, and those that are always met."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta

from rollouts.checks import Check, stage_field
from rollouts.gates import GATES
from rollouts.gates.base import Gate, When
from rollouts.gates.failure_budget import FailureBudget
from rollouts.gates.options import write_options
from rollouts.gates.soak import Soak
from rollouts.gates.workloads_ready import WorkloadsReady
from rollouts.models import Stage
from rollouts.preflight.subject import PreflightSubject
from wording.durations import spell
from wording.numbers import are, count

# Up to this nobody can meet it; of every other length of time: zero.
LEAST = {"approval": {"valid_for_s": 60.0}, "window": {"must_last_s": -1.0}}
TIMEOUT_LEAST, TIMEOUT_MOST = timedelta(minutes=1), timedelta(days=7)  # of a stage and of a gate
LONGEST = timedelta(days=7)  # a gate that waits for longer asks nobody in time
CHANGE_IT = "Change the setting, or start the plan as it is."
MOST_RESTARTS = 20  # a pod that has crashed so often is crashing
JUDGING = frozenset(key for key, gate in GATES.items() if gate.when is When.THROUGH and gate is not Soak)


def never_met(gates: Sequence[Gate]) -> Iterator[str]:
    """Yields why a stage with these gates could never pass."""
    evaluating = [gate for gate in gates if gate.when is When.THROUGH and not gate.advisory]
    if evaluating and all(isinstance(gate, Soak) for gate in evaluating):
        yield (
            "The soak needs another gate that evaluates nodes, because it runs while every other gate passes. "
            "Add a gate."
        )
    for gate in gates:
        if gate.wait_timeout is not None and not TIMEOUT_LEAST <= gate.wait_timeout <= TIMEOUT_MOST:
            yield f"{gate.title}: its wait timeout must be between a minute and a week."
        for name, value in _lengths(gate).items():
            least = LEAST.get(gate.key, {}).get(name, 0.0)
            if not isinstance(gate, Soak) and value <= least:
                yield f"{gate.title}: with {name} {value:g} it could never pass."


def _lengths(gate: Gate) -> dict[str, float]:
    """Returns the gate's own durations in seconds."""
    written = {name: value for name, value in write_options(gate).items() if name != "wait_timeout_s"}
    return {name: float(value) for name, value in written.items() if name.endswith("_s")}


def meaningless(subject: PreflightSubject) -> Iterator[Check]:
    by_node = Counter(pod.node_name for pod in subject.pods if pod.is_tenant)
    budgets = subject.budgets.empty()
    for stage in subject.stages:
        names = [node.name for node in subject.picks.by_stage.get(stage.index, [])]
        at_once = budgets.largest(names, stage.max_unavailable)
        yield from _checks_of_stage(stage, nodes=len(names), at_once=at_once, pods=sum(by_node[name] for name in names))


def _checks_of_stage(stage: Stage, *, nodes: int, at_once: int, pods: int) -> Iterator[Check]:
    """Yields settings without effect. `at_once` is the number of nodes at a time, `pods` are the tenants' pods."""
    said = list(_stage_problems(stage, nodes, at_once))
    for gate in stage.gates:
        of_gate = (*_gate_problems(gate, nodes=nodes, pods=pods), *_too_long(gate))
        said += [(f"gate_options.{gate.key}", sentence) for sentence in of_gate]
    for name, sentence in said:
        field = stage_field(stage.index, name)
        title = f"{stage.name} has a setting without effect"
        summary = f"{sentence[0].upper()}{sentence[1:]}"
        yield Check("meaningless", title=title, summary=summary, steps=(CHANGE_IT,), is_grave=True, field=field)


def _stage_problems(stage: Stage, nodes: int, at_once: int) -> Iterator[tuple[str, str]]:
    """Yields each setting without effect with its field."""
    if nodes > 1 and at_once >= nodes:
        yield (
            "max_unavailable",
            f"its budget releases all {nodes} nodes at once, so no wave can stop the next.",
        )
    for sentence in _missing_gates(stage):
        yield "gate_options", sentence


def _missing_gates(stage: Stage) -> Iterator[str]:
    present = {gate.key for gate in stage.gates if not gate.advisory}
    if "soak" not in present:
        yield "it has no soak: a fault after a minute is not seen before the next stage."
    if JUDGING.isdisjoint(present):
        yield "no gate evaluates its nodes."
    elif "failure_budget" not in present:
        yield "it has no failure budget: a failed node does not stop the other nodes."


def _gate_problems(gate: Gate, *, nodes: int, pods: int) -> Iterator[str]:
    if isinstance(gate, FailureBudget) and gate.tolerate and gate.tolerate >= nodes:
        yield f"it tolerates {count(gate.tolerate, 'failure')} and takes {count(nodes, 'node')}: it never stops."
    if isinstance(gate, Soak) and not gate.duration:
        yield "its soak has no duration."
    if isinstance(gate, WorkloadsReady):
        if gate.tolerate and gate.tolerate >= pods:
            yield f"it tolerates {count(gate.tolerate, 'broken pod')}, and {_pods_on_nodes_text(pods)} on its nodes."
        if gate.max_restarts > MOST_RESTARTS:
            yield f"a pod may restart {gate.max_restarts} times before it counts as crashing."


def _too_long(gate: Gate) -> Iterator[str]:
    for name, value in _lengths(gate).items():
        if value > LONGEST.total_seconds():
            yield f"{gate.title} has {name.removesuffix('_s').replace('_', ' ')} {spell(timedelta(seconds=value))}."


def _pods_on_nodes_text(pods: int) -> str:
    return f"{count(pods, 'GPU pod')} {are(pods)}"
