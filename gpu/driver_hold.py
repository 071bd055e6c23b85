"""The hold of a node's driver: the label by which the operator's upgrade controller skips the node. Pure.

Our annotations beside it name who holds the node, and since when. The controller reads the label before it takes a node
from its queue, so a change in progress goes on. A driver pod that is made again has the new template all the same
(NVIDIA/k8s-operator-libs, pkg/upgrade; its DaemonSet updates on delete).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from gpu.external_controllers import Metadata
from gpu.labels import HELD_BY, HELD_SINCE, UPGRADE_SKIP, UPGRADE_STATE, WAS_CORDONED
from gpu.upgrade_controller import UPGRADE_REQUIRED


@dataclass(frozen=True)
class NodeLabel:
    key: str
    value: str

    def is_on(self, labels: Mapping[str, str | None]) -> bool:
        return labels.get(self.key) == self.value


DRIVER_HOLD = NodeLabel(UPGRADE_SKIP, "true")


def hold_by(mark: str, label: NodeLabel = DRIVER_HOLD, *, now: datetime) -> Metadata:
    """Returns the metadata of a hold. Two writes within a second differ: the time is to the microsecond."""
    since = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return Metadata({label.key: label.value}, {HELD_BY: mark, HELD_SINCE: since})


def without_hold(here: Metadata, label: NodeLabel = DRIVER_HOLD) -> Metadata:
    """Returns the metadata that ends our hold. Somebody else's value of the label stays."""
    return Metadata({label.key: None} if label.is_on(here.labels) else {}, {HELD_BY: None, HELD_SINCE: None})


def is_requeued(here: Metadata, *, is_unschedulable: bool, is_our_cordon: bool) -> bool:
    """Returns whether a removal of the upgrade state makes the operator evaluate the node again.

    A queued node runs through the whole upgrade once released, even if it has the wanted driver
    (ProcessUpgradeRequiredNodes, nvidia.md 2.8). A node without a state is evaluated first. The result is False if the
    cordon may be the operator's own from a failed try: the operator uncordons only at the end of the next one.
    """
    is_free = is_our_cordon or not is_unschedulable or WAS_CORDONED in here.annotations
    return here.labels.get(UPGRADE_STATE) == UPGRADE_REQUIRED and is_free


def requeued() -> Metadata:
    """Returns the metadata of a node without upgrade state. The operator writes its note again where it is right."""
    return Metadata({UPGRADE_STATE: None}, {WAS_CORDONED: None})
