"""Which version of an operand is asked for on a node, and which object asks."""

from collections.abc import Sequence
from dataclasses import dataclass

from fleet import labels as keys
from fleet.models import DriverObject, Node, Operand
from fleet.operands import DRIVER
from fleet.stack.causes.placement import DEPLOY_DRIVER, PRE_INSTALLED, selects

OFF = frozenset({"ignored", "disabled"})  # states of an object that does not count


@dataclass(frozen=True)
class Desired:
    version: str = ""  # blank: the operator's own default, or nothing asks
    by: str = ""  # "NVIDIADriver h200"; blank: nothing does
    is_precompiled: bool = False


def desired_of(operand: str, node: Node, driver_objects: Sequence[DriverObject], daemon_set: Operand | None) -> Desired:
    if operand == DRIVER:
        source = driver_object_of(node, driver_objects, daemon_set)
        return Desired(source.version, str(source), source.use_precompiled) if source else Desired()
    for source in driver_objects:
        if source.kind != "NVIDIADriver" and source.state not in OFF and source.operand_versions.get(operand):
            return Desired(source.operand_versions[operand], str(source))
    return Desired()


def driver_object_of(
    node: Node, driver_objects: Sequence[DriverObject], daemon_set: Operand | None = None
) -> DriverObject | None:
    """The object that says which driver this node should run. None: nothing does, or the driver is the host's own."""
    if node.labels.get(DEPLOY_DRIVER) == PRE_INSTALLED:
        return None
    by_name = {(each.kind, each.name): each for each in driver_objects}
    if node.driver_owner:
        return by_name.get(("NVIDIADriver", node.driver_owner))
    if daemon_set is not None and (owner := by_name.get((daemon_set.owner_kind, daemon_set.owner_name))):
        return owner
    policy = next((each for each in driver_objects if each.kind == "ClusterPolicy" and each.state not in OFF), None)
    if policy is not None and not policy.uses_driver_crd:
        return policy
    return _selecting(node, [each for each in driver_objects if each.kind == "NVIDIADriver"])


def _selecting(node: Node, drivers: Sequence[DriverObject]) -> DriverObject | None:
    """Two that select a node by labels are a conflict in which the operator changes nothing: then neither asks."""
    taking = [each for each in drivers if each.node_selector and selects(each.node_selector, node.labels)]
    if not taking and node.labels.get(keys.GPU_PRESENT) == "true":
        taking = [each for each in drivers if not each.node_selector]
    return taking[0] if len(taking) == 1 else None
