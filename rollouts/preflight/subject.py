"""What a preflight check looks at: a draft, the nodes that its stages take, and what is seen of them now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from fleet.drivers.mode import has_own_policies, operator_of
from fleet.models import DriverObject, Node, Operand, Pod
from gpu.operands import VALIDATOR
from health.stack.combinations import Line
from rollouts.components.driver import DriverFacts
from rollouts.ledger.disruptions import read_budgets
from rollouts.models import Plan, Stage
from rollouts.node_order.failure_domains import Budgets
from rollouts.preflight.driver_facts import OperandPod, facts_of, operands_on, pods_on
from rollouts.preflight.facts import PreflightFacts
from rollouts.preflight.picks import Picks
from rollouts.queries.compatibility import lines_for


@dataclass(frozen=True)
class PreflightSubject:
    """What several checks need is read once, when the first asks. `plan` and `stages` may be unsaved."""

    plan: Plan
    stages: Sequence[Stage]
    nodes: Sequence[Node]  # all of the object, with their pools
    picks: Picks
    driver: DriverFacts
    now: datetime

    @cached_property
    def said_of_versions(self) -> Mapping[str, tuple[Line, ...]]:
        """What the matrix says of the version it goes to, and of the one a rollback leads to. Three queries."""
        both = [self.plan.to_version, self.plan.from_version]
        return lines_for(self.plan, self.picks.nodes, both, today=self.now.date())

    @cached_property
    def pods(self) -> list[Pod]:
        """On the nodes that its stages take, as `pods_on` has them. One query."""
        return pods_on(self.plan.cluster_id, [node.name for node in self.picks.nodes])

    @cached_property
    def operands(self) -> Mapping[str, frozenset[OperandPod]]:
        """Node's name → what runs there of the GPU stack. One query."""
        return operands_on(self.plan.cluster_id, [node.name for node in self.picks.nodes])

    @cached_property
    def budgets(self) -> Budgets:
        """Of the failure domains of the nodes that its stages take, in the ledger. Seven queries."""
        return read_budgets(self.plan.cluster_id, [node.name for node in self.picks.nodes], goes_back=False)

    @cached_property
    def facts(self) -> PreflightFacts:
        evicts = self.has_own_policies
        nodes = self.picks.nodes
        return facts_of(self.plan, self.driver, nodes, self.pods, evicts_claims=evicts, now=self.now)

    @cached_property
    def driver_objects(self) -> list[DriverObject]:
        return list(DriverObject.objects.filter(cluster=self.plan.cluster_id))

    @cached_property
    def has_own_policies(self) -> bool | None:
        """Whether its operator is as new as 26.7.0. None: nobody knows."""
        validators = Operand.objects.filter(cluster=self.plan.cluster_id, operand=VALIDATOR)
        return has_own_policies(operator_of(self.driver_objects, list(validators)).version)
