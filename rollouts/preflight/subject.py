"""The subject of preflight checks: a draft, the nodes of its stages, and their facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from fleet.drivers.mode import has_own_policies, operator_of
from fleet.models import DriverObject, Node, Operand, Pod
from gpu.operands import VALIDATOR
from health.stack.combinations import Line
from operations.failure_domains import Budgets
from operations.ledger.disruptions import read_budgets
from rollouts.components.driver import DriverFacts
from rollouts.models import Plan, Stage
from rollouts.preflight.driver_facts import OperandPod, facts_of, operands_on, pods_on
from rollouts.preflight.facts import PreflightFacts
from rollouts.preflight.picks import Picks
from rollouts.queries.compatibility import lines_for
from rollouts.queries.restraints import Restraints, restraints_of


@dataclass(frozen=True)
class PreflightSubject:
    """Facts that several checks need are read once, on first use. `plan` and `stages` may be unsaved."""

    plan: Plan
    stages: Sequence[Stage]
    nodes: Sequence[Node]  # all of the object, with their pools
    picks: Picks
    driver: DriverFacts
    now: datetime

    @cached_property
    def version_compatibility(self) -> Mapping[str, tuple[Line, ...]]:
        """Returns the compatibility of the new version and of the one for a rollback. Three queries."""
        both = [self.plan.to_version, self.plan.from_version]
        return lines_for(self.plan, self.picks.nodes, both, today=self.now.date())

    @cached_property
    def pods(self) -> list[Pod]:
        """Returns the pods on the stages' nodes (see `pods_on`). One query."""
        return pods_on(self.plan.cluster_id, [node.name for node in self.picks.nodes])

    @cached_property
    def operands(self) -> Mapping[str, frozenset[OperandPod]]:
        """Returns the GPU stack's pods by node name. One query."""
        return operands_on(self.plan.cluster_id, [node.name for node in self.picks.nodes])

    @cached_property
    def budgets(self) -> Budgets:
        """Returns the failure domains' budgets for the stages' nodes. Seven queries."""
        return read_budgets(self.plan.cluster_id, [node.name for node in self.picks.nodes], is_rollback=False)

    @cached_property
    def restraints(self) -> Restraints:
        """Returns the freezes and windows that bind the plan. Three queries, and two more each."""
        return restraints_of(self.plan, now=self.now)

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
        """Returns whether the operator is at least 26.7.0; None if unknown."""
        validators = Operand.objects.filter(cluster=self.plan.cluster_id, operand=VALIDATOR)
        return has_own_policies(operator_of(self.driver_objects, list(validators)).version)
