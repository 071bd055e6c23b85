"""The throttle of the controller that carries a change out: nodes at once, and free slots. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpu.upgrade_controller import CORDON_REQUIRED
from wording.numbers import are


@dataclass(frozen=True)
class Room:
    nodes: int
    reason: str  # reason for the number, for a person


@dataclass(frozen=True)
class ControllerOff:
    """The setting that switches the upgrade controller off, so that it changes no node and forgets node states."""

    reason: str
    fix: str  # recommended action


@dataclass(frozen=True)
class UpgradePolicy:
    """The operator's throttle (`upgradePolicy` of NVIDIADriver or ClusterPolicy)."""

    off: ControllerOff | None  # None: its upgrade controller works, or there is none to work
    max_parallel: int  # 0: no limit
    max_unavailable: int | None  # nodes; None: no limit


NO_THROTTLE = UpgradePolicy(off=None, max_parallel=0, max_unavailable=None)


class Counted(Protocol):
    @property
    def has_begun(self) -> bool: ...
    @property
    def is_unavailable(self) -> bool: ...
    @property
    def upgrade_state(self) -> str: ...


class Throttle(Protocol):
    def __call__(self, policy: UpgradePolicy, nodes: Sequence[Counted], *, waiting: int) -> Room:
        """Returns the free slots. `waiting` is the number of released nodes that have not begun."""
        ...


def operator_room(policy: UpgradePolicy, nodes: Sequence[Counted], *, waiting: int) -> Room:
    """Returns the upgrade controller's free slots (k8s-operator-libs, GetUpgradesAvailable) less released nodes.

    A failed node counts as in progress. Cordoned and NotReady nodes count as unavailable, whatever the reason.
    """
    in_progress = sum(node.has_begun for node in nodes)
    most = len(nodes) if policy.max_unavailable is None else policy.max_unavailable
    # A cordoned node that is about to be cordoned counts twice there: so it does here.
    unavailable = sum(node.is_unavailable for node in nodes) + sum(n.upgrade_state == CORDON_REQUIRED for n in nodes)
    parallel = (policy.max_parallel or len(nodes)) - in_progress
    by_unavailable = most - unavailable
    free = max(0, min(parallel, by_unavailable) - waiting)
    if by_unavailable < parallel:
        return Room(free, f"the operator allows {most} unavailable and {unavailable} {are(unavailable)}")
    begun = f"{in_progress} {are(in_progress)} on the way"
    return Room(free, f"the operator upgrades at most {policy.max_parallel or 'any number'} at once, and {begun}")
