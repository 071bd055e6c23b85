"""What is known of a driver object and of its nodes, from rows."""

from collections.abc import Sequence

from fleet.models import DriverObject, Node
from gpu.labels import DEPLOY_DRIVER, PRE_INSTALLED
from rollouts.components.base import BEGUN
from rollouts.components.driver import DriverFacts
from rollouts.models import Plan
from rollouts.queries import cluster_policy, driver_daemonsets, upgrade_policy


def driver_facts(plan: Plan, driver_object: DriverObject, nodes: Sequence[Node]) -> DriverFacts:
    """Two queries; three where the ClusterPolicy's throttle counts."""
    policy = cluster_policy(plan.cluster_id)
    return DriverFacts(
        kind=driver_object.kind,
        object_version=driver_object.version,
        to_version=plan.to_version,
        state=driver_object.state,
        message=driver_object.message,
        use_precompiled=driver_object.use_precompiled,
        sandbox_workloads=bool(policy and policy.sandbox_workloads),
        policy_uses_crd=bool(policy and policy.uses_driver_crd),
        has_policy=policy is not None,
        upgrade_policy=upgrade_policy(driver_object),
        is_driver_off=driver_object.is_driver_off,
        owned_by=tuple(driver_object.owned_by),
        nodes=len(nodes),
        pre_installed=tuple(node.name for node in nodes if node.labels.get(DEPLOY_DRIVER) == PRE_INSTALLED),
        unsettled=tuple(d.name for d in driver_daemonsets(plan) if d.observed_generation < d.generation),
        under_way=tuple(n.name for n in nodes if plan.its_component.phase(n.upgrade_state) in BEGUN),
    )
