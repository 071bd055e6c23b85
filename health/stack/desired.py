"""The wanted version of an operand on a node, and the object that names it."""

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.drivers.owners import OFF, active_policy, labelled_owner
from fleet.models import DriverObject, Node, Operand
from gpu import labels as keys
from gpu.operands import DRIVER
from health.stack.causes.placement import selects


@dataclass(frozen=True)
class Desired:
    version: str = ""  # blank: the operator's own default, or nothing asks
    by: str = ""  # "NVIDIADriver h200"; blank: nothing does
    is_precompiled: bool = False
    conflict: str = ""  # "NVIDIADriver a and NVIDIADriver b", which both select the node


def desired_of(operand: str, node: Node, driver_objects: Sequence[DriverObject], daemon_set: Operand | None) -> Desired:
    if operand == DRIVER:
        source = driver_object_of(node, driver_objects, daemon_set)
        if source is None:
            return Desired(conflict=_conflict(node, driver_objects, daemon_set))
        return Desired(source.version, str(source), source.use_precompiled)
    for source in driver_objects:
        if source.kind != "NVIDIADriver" and source.state not in OFF and source.operand_versions.get(operand):
            return Desired(source.operand_versions[operand], str(source))
    return Desired()


def driver_object_of(
    node: Node, driver_objects: Sequence[DriverObject], daemon_set: Operand | None = None
) -> DriverObject | None:
    """The object that says which driver this node should run. None: nothing does, or the driver is the host's own."""
    if node.labels.get(keys.DEPLOY_DRIVER) == keys.PRE_INSTALLED:
        return None
    by_name = {(each.kind, each.name): each for each in driver_objects}
    if daemon_set is not None and (owner := by_name.get((daemon_set.owner_kind, daemon_set.owner_name))):
        return owner
    if owner := labelled_owner(node.driver_owner, driver_objects):
        return owner
    policy = active_policy(driver_objects)
    if policy is not None and not policy.uses_driver_crd:
        return None if policy.is_driver_off else policy
    return _selecting(node, [each for each in driver_objects if each.kind == "NVIDIADriver"])


def _selecting(node: Node, drivers: Sequence[DriverObject]) -> DriverObject | None:
    """Two that select a node are a conflict in which the operator changes nothing: then neither asks.

    One without a selector takes every GPU node. A default, which takes only what is left over, came together with the
    label that names the owner (gpu-operator 26.7, pull 2518).
    """
    taking = [each for each in drivers if _selects_node(each, node)]
    return taking[0] if len(taking) == 1 else None


def _conflict(node: Node, driver_objects: Sequence[DriverObject], daemon_set: Operand | None) -> str:
    """Named only where nothing else tells whose the node is."""
    is_owned = labelled_owner(node.driver_owner, driver_objects) is not None
    if is_owned or node.labels.get(keys.DEPLOY_DRIVER) == keys.PRE_INSTALLED or daemon_set is not None:
        return ""
    taking = [str(each) for each in driver_objects if each.kind == "NVIDIADriver" and _selects_node(each, node)]
    return " and ".join(taking) if len(taking) > 1 else ""


def _selects_node(driver: DriverObject, node: Node) -> bool:
    if driver.node_selector:
        return selects(driver.node_selector, node.labels)
    return node.labels.get(keys.GPU_PRESENT) == "true"
