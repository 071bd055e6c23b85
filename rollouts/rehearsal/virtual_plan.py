"""The virtual twin of a drafted plan: its nodes, their order, and its gates, as the start would take them now."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpu.upgrade_controller import parallel_of
from rollouts.gates.drift import Drift
from rollouts.models import Plan
from rollouts.preflight.picks import forward, pick
from rollouts.queries.driver_nodes import nodes_of, upgrade_policy
from rollouts.rehearsal.faults import DriverFault
from rollouts.rehearsal.fleet import VirtualFleet, VirtualNode, afflict
from rollouts.rehearsal.run import RehearsedStage

# Hours of GPUs before and after a change: a virtual fleet has none, and without them the gate would only wait.
NOT_REHEARSED = (Drift,)


class NothingToRehearse(ValueError):
    """No stage of the plan has a node now."""


@dataclass(frozen=True)
class VirtualPlan:
    fleet: VirtualFleet
    stages: Sequence[RehearsedStage]
    fault: DriverFault | None
    value: str  # of the property that the fault follows; empty: it hits nodes at random
    not_rehearsed: Sequence[str] = ()  # titles of the gates that were left out

    @property
    def affected(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.fleet.nodes.values() if node.fault is not None)


def virtual_plan(plan: Plan, fault: DriverFault | None, *, seed: int, now: datetime) -> VirtualPlan:
    """Returns the plan on a virtual fleet on which the new driver has the fault. The seed chooses the nodes.

    :raises NothingToRehearse: when no stage takes a node
    """
    rows = forward(plan)
    picks = pick(rows, list(nodes_of(plan).prefetch_related("pools")), now=now)
    if not picks.nodes:
        raise NothingToRehearse("No stage of the plan has a node now.")
    nodes = [
        VirtualNode(
            node.name,
            picks.candidates[node.uid].facts,
            plan.from_version,
            pods=picks.harms[node.name].pods,
            is_sick_before=node.uid in picks.sick,
        )
        for node in picks.nodes
    ]
    stages = [
        RehearsedStage(
            stage.name,
            [node.name for node in picks.by_stage[stage.index]],
            tuple(gate for gate in stage.gates if not isinstance(gate, NOT_REHEARSED)),
            stage.max_unavailable,
            timedelta(seconds=stage.timeout_s),
        )
        for stage in rows
        if picks.by_stage[stage.index]
    ]
    dice = random.Random(seed)
    value = dice.choice(nodes).facts.get(fault.factor, "") if fault and fault.factor else ""
    if fault:
        afflict(fault, nodes, value, dice)
    policy = upgrade_policy(plan.cluster.driver_objects.get(uid=plan.object_uid))
    fleet = VirtualFleet(
        {node.name: node for node in nodes}, plan.from_version, plan.to_version, at_once=parallel_of(policy)
    )
    left_out = {gate.title for stage in rows for gate in stage.gates if isinstance(gate, NOT_REHEARSED)}
    return VirtualPlan(fleet, stages, fault, value, sorted(left_out))
