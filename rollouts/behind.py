"""Nodes that do not run what their object asks for already: left out by the plan that wrote it, or held since."""

from collections.abc import Iterable

from fleet.models import DriverObject, Node, Operand, Pod
from gpu.operands import DRIVER
from gpu.versions import same
from rollouts.components.base import BEGUN
from rollouts.models import Plan
from rollouts.queries import newest_hashes, object_uid


def those_to_change(plan: Plan, nodes: Iterable[Node]) -> list[Node]:
    """All of the object's, or the rest that a plan brings forward. Three queries for the rest.

    Not those that the operator has begun with: what it gave up on does not go by a label that is taken off.
    """
    if not plan.writes_nothing:
        return list(nodes)
    late = behind(plan, plan.to_version, nodes)
    return [node for node in late if plan.its_component.phase(node.upgrade_state) not in BEGUN]


def behind(of: DriverObject | Plan, version: str, nodes: Iterable[Node]) -> list[Node]:
    """Those with a driver pod of an earlier template that do not name the version as loaded. Three queries."""
    daemonsets = Operand.objects.filter(cluster=of.cluster_id, operand=DRIVER, owner_uid=object_uid(of))
    newest = newest_hashes(of.cluster_id, daemonsets.values_list("uid", flat=True))
    pods = Pod.objects.filter(cluster=of.cluster_id, owner_uid__in=newest).not_done()
    found = pods.order_by().values_list("node_name", "owner_uid", "revision_hash")
    earlier = {name for name, owner, revision in found if revision and revision != newest[owner]}
    return [node for node in nodes if node.name in earlier and not same(node.driver_version, version)]
