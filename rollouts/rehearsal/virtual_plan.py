"""The virtual twin of a drafted plan: its nodes, their order, and its gates, as the start would take them now."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.models import Node, Pod
from gpu.resources import Layout, whole_gpus
from gpu.upgrade_controller import parallel_of
from health.models import TelemetrySource
from health.sources.cluster_telemetry import telemetry_of_clusters
from operations.ledger.disruptions import read_budgets
from rollouts.engine.gpu_health import past_findings
from rollouts.gates.drift import Drift
from rollouts.models import Plan
from rollouts.node_order.node_selection import FACTORS
from rollouts.preflight.picks import forward, pick
from rollouts.queries.change_times import COMPILED, PRECOMPILED, read_past_rounds
from rollouts.queries.compatibility import combinations
from rollouts.queries.driver_nodes import nodes_of, upgrade_policy
from rollouts.queries.gpu_telemetry import metrics_of, telemetry_of_nodes
from rollouts.queries.headroom import read_room
from rollouts.queries.restraints import restraints_of
from rollouts.rehearsal.faults import DriverFault
from rollouts.rehearsal.fleet import Pace, VirtualFleet, VirtualNode, afflict
from rollouts.rehearsal.run import RehearsedStage
from rollouts.rehearsal.surroundings import LiveHours, LiveRoom

# Hours of GPUs before and after a change: a virtual fleet has none, and without them the gate would only wait.
NOT_REHEARSED = (Drift,)


class NothingToRehearse(ValueError):
    """No stage of the plan has a node now, or no node can have the fault."""


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
    pods = _tenants_on(picks.nodes)
    gates = [gate for stage in rows for gate in stage.gates]
    telemetry = telemetry_of_nodes(
        telemetry_of_clusters([plan.cluster_id], metrics_of(gates), now=now)[plan.cluster_id],
        picks.nodes,
        metrics_of(gates),
        now=now,
    )
    driver_object = plan.cluster.driver_objects.get(uid=plan.object_uid)
    past = read_past_rounds(plan.component, PRECOMPILED if driver_object.use_precompiled else COMPILED)
    nodes = [
        VirtualNode(
            node.name,
            picks.candidates[node.uid].facts,
            plan.from_version,
            pods=picks.harms[node.name].pods,
            busy_gpus=_busy_gpus(node, pods.get(node.name, ())),
            offers=node.allocatable,
            mig_gpus=node.physical_mig or 0,
            telemetry=telemetry.by_node.get(node.uid),
            pace=Pace.lasting(past.time_of(picks.candidates[node.uid].facts).typical),
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
            *combinations(plan, [node.uid for node in picks.by_stage[stage.index]], today=now.date()),
        )
        for stage in rows
        if picks.by_stage[stage.index]
    ]
    dice = random.Random(seed)
    value = (fault.value or dice.choice(nodes).facts.get(fault.factor, "")) if fault and fault.factor else ""
    if fault and not afflict(fault, nodes, value, dice):
        raise NothingToRehearse(f"No node of the plan has the {FACTORS[fault.factor]} {value}.")
    policy = upgrade_policy(driver_object)
    windows = restraints_of(plan, now=now).windows
    pools = {node.name: frozenset(pool.pk for pool in node.pools.all()) for node in picks.nodes}
    fleet = VirtualFleet(
        {node.name: node for node in nodes},
        plan.from_version,
        plan.to_version,
        at_once=parallel_of(policy),
        has_source=telemetry.has_source,
        trouble=telemetry.trouble if telemetry.has_source else "",
        has_prometheus=TelemetrySource.objects.filter(cluster=plan.cluster_id, is_on=True).exists(),
        past=past_findings(plan.cluster_id, [node.uid for node in picks.nodes], before=now),
        room=LiveRoom(
            read_room(plan.cluster_id, {node.gpu_product for node in picks.nodes}),
            {node.name: node for node in picks.nodes},
            pods,
        ),
        hours=LiveHours(windows, pools) if windows else None,
        budgets=read_budgets(plan.cluster_id, [node.name for node in picks.nodes], is_rollback=False),
    )
    left_out = {gate.title for stage in rows for gate in stage.gates if isinstance(gate, NOT_REHEARSED)}
    return VirtualPlan(fleet, stages, fault, value, sorted(left_out))


def _tenants_on(nodes: Sequence[Node]) -> Mapping[str, Sequence[Pod]]:
    """Returns the GPU pods of tenants by node. One query."""
    found: dict[str, list[Pod]] = defaultdict(list)
    names = [node.name for node in nodes]
    for pod in Pod.objects.filter(cluster=nodes[0].cluster_id, node_name__in=names).tenants().not_done():
        found[pod.node_name].append(pod)
    return found


def _busy_gpus(node: Node, pods: Sequence[Pod]) -> int:
    """Returns the GPUs of the tenants' pods. Slices, shares and claims count as one GPU together."""
    layout = Layout.read(node.layout)
    whole = [whole_gpus(pod.resources, layout) for pod in pods]
    return min(node.physical_gpus or sum(whole) + 1, sum(whole) + (not all(whole)))
