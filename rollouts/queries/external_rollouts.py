from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count

from fleet.models import Node, Pod
from gpu.labels import UPGRADE_SKIP, UPGRADE_STATE
from gpu.upgrade_controller import UPGRADE_REQUIRED
from health.evaluation.node_properties import properties_of
from health.suspects import NodeOutcome, Suspects, suspects_of
from operations.models import DomainBudget
from rollouts.gates import GATES
from rollouts.gates.base import Answer
from rollouts.gates.test_job import TestJobGate
from rollouts.gates.workloads_ready import WorkloadsReady
from rollouts.lifecycle import TargetState
from rollouts.models import ExternalGateAnswer, ExternalRollout, ExternalRolloutNode
from wording.lists import names
from wording.numbers import count

HOLD = f"kubectl label nodes -l {UPGRADE_STATE}={UPGRADE_REQUIRED} {UPGRADE_SKIP}=true --overwrite"
SHOWN = {  # node state → its name without holds and releases of ours
    TargetState.RELEASED: "before",
    TargetState.HELD: "held",
    TargetState.CHANGING: "changing",
    TargetState.CHANGED: "changed",
    TargetState.FAILED: "failed",
    TargetState.EXCLUDED: "gone",
}
FAILING, NOT_SHOWN = "failing", "not shown"  # states of a rollout in progress, by its gates
WOULD_SHOW = "A Ready GPU pod of a tenant on each of these nodes is the proof. To prove it now, run a GPU pod there."
ABOUT_WORKLOADS = frozenset({WorkloadsReady.key, TestJobGate.key})
MOVED = ("changed", "failed", "changing")


@dataclass(frozen=True)
class Progress:
    """The number of nodes in each state. The parts add up to `total`; removed nodes are in none."""

    before: int = 0  # not begun, and nothing keeps the operator off them
    held: int = 0  # not begun, and the skip label keeps the operator off them
    changing: int = 0
    changed: int = 0
    failed: int = 0
    gone: int = 0

    @property
    def total(self) -> int:
        return self.before + self.held + self.changing + self.changed + self.failed

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        told = (("changed", self.changed), ("failed", self.failed), ("changing", self.changing))
        return tuple((word, number) for word, number in (*told, ("held", self.held), ("before", self.before)) if number)

    @property
    def segments(self) -> list[tuple[str, float, float]]:
        """Returns (word, start, width) of 100 for the parts that have left the initial state."""
        start, found = 0.0, list[tuple[str, float, float]]()
        for word, number in self.parts:
            if word in MOVED:
                found.append((word, start, 100 * number / self.total))
                start += 100 * number / self.total
        return found

    @property
    def sentence(self) -> str:
        rest = (("changing", self.changing), ("failed", self.failed), ("held", self.held), ("not begun", self.before))
        said = [f"{number} {word}" for word, number in rest if number]
        return ", ".join([f"{self.changed} of {count(self.total, 'node')} changed", *said])


@dataclass(frozen=True)
class ShownExternalRollout:
    rollout: ExternalRollout
    progress: Progress
    answers: tuple[ExternalGateAnswer, ...]  # present result of each gate, in the order of the table

    @property
    def failing(self) -> tuple[ExternalGateAnswer, ...]:
        return tuple(answer for answer in self.answers if answer.answer == Answer.FAIL)

    @property
    def unproven(self) -> ExternalGateAnswer | None:
        """Returns the gate that waits because nothing has tested the new driver. None: none does."""
        return next((answer for answer in self.answers if answer.is_untested), None)

    @property
    def shown_state(self) -> str:
        if self.rollout.is_open and self.failing:
            return FAILING
        return NOT_SHOWN if self.rollout.is_open and self.unproven else self.rollout.state

    @property
    def what(self) -> str:
        """Returns text such as "ClusterPolicy cluster-policy from 570.172.08 to 580.95.05"."""
        rollout = self.rollout
        way = f"to {rollout.to_version}"
        if rollout.from_version == rollout.to_version:
            way = f"at {rollout.to_version}, as before"
        elif rollout.from_version:
            way = f"from {rollout.from_version} {way}"
        return f"{rollout.object_kind} {rollout.object_name} {way}"

    @property
    def why(self) -> str:
        """Returns the reason of the state: a reason to halt first, then waits."""
        if not self.rollout.is_open:
            return self.rollout.reason
        if self.failing:
            return would_have_halted(self.failing)
        waits = next((answer for answer in self.answers if answer.answer == Answer.WAIT), None)
        return waits.sentence if waits else self.rollout.reason

    @property
    def advice(self) -> str:
        """Returns what the rollout's owner should do about a failing gate or a missing proof; empty if neither."""
        if not self.rollout.is_open:
            return ""
        if not self.failing:
            return WOULD_SHOW if self.unproven else ""
        rollout, was = self.rollout, self.rollout.from_version
        first = (
            f"Hold all nodes in the operator’s queue, for every driver object: {HOLD}. Then put"
            if self.progress.before
            else "Put"
        )
        if was in ("", rollout.to_version):
            return f"{first} back the previous content of {rollout.object_kind} {rollout.object_name}."
        if rollout.driven_by:
            return f"{first} {was} back in the source of {rollout.driven_by}, which writes the object."
        return f"{first} {was} back: {rollout.its_component.command(was)}"


def would_have_halted(failing: Iterable[ExternalGateAnswer]) -> str:
    first, *others = failing
    also = f" {names([GATES[each.gate].title for each in others])} also fail." if others else ""
    return f"Quarterdeck would have halted here: {first.sentence}{also}"


def shown_external_rollouts(rollouts: Iterable[ExternalRollout]) -> list[ShownExternalRollout]:
    """Returns the rollouts for pages. Two queries."""
    listed = list(rollouts)
    keys = [rollout.pk for rollout in listed]
    counts: dict[int, dict[str, int]] = {key: {} for key in keys}
    nodes = ExternalRolloutNode.objects.filter(rollout__in=keys).order_by()
    for key, state, number in nodes.values_list("rollout", "state").annotate(number=Count("pk")):
        counts[key][SHOWN[TargetState(state)]] = number
    answers: dict[int, list[ExternalGateAnswer]] = {key: [] for key in keys}
    for answer in ExternalGateAnswer.objects.filter(rollout__in=keys, is_current=True):
        answers[answer.rollout_id].append(answer)
    order = list(GATES)
    return [
        ShownExternalRollout(
            rollout,
            Progress(**counts[rollout.pk]),
            tuple(sorted(answers[rollout.pk], key=lambda answer: order.index(answer.gate))),
        )
        for rollout in listed
    ]


def rollout_suspects(shown: ShownExternalRollout) -> Suspects | None:
    """Returns what the failed nodes share and changed ones lack; None if no node failed. At most six queries.

    If workloads failed, a changed node counts as good only while a tenant's GPU pod is Ready there.
    """
    named = {name for answer in shown.failing for name in answer.nodes}
    needs_work = any(answer.gate in ABOUT_WORKLOADS and answer.nodes for answer in shown.failing)
    ended = shown.rollout.nodes.filter(state__in=(TargetState.FAILED, TargetState.CHANGED), is_lost=False)
    states = dict(ended.order_by().values_list("node_name", "state"))
    failed = {name for name, state in states.items() if state == TargetState.FAILED or name in named}
    if not failed:
        return None
    if needs_work:
        pods = Pod.objects.filter(cluster=shown.rollout.cluster_id, node_name__in=states, is_ready=True).tenants()
        working = set(pods.order_by().values_list("node_name", flat=True))
        states = {name: state for name, state in states.items() if name in failed or name in working}
    cluster_id = shown.rollout.cluster_id
    nodes = Node.objects.filter(cluster=cluster_id, name__in=states)
    found = properties_of(nodes, cluster_id, rack_label=DomainBudget.rack_label(cluster_id))
    return suspects_of(NodeOutcome(name, name in failed, its) for name, its in found.items())
