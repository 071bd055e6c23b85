"""How many nodes may start: k8s-operator-libs common_manager.go, GetUpgradesAvailable."""

from simulator.actors.gpu_operator.policy import Policy
from simulator.actors.gpu_operator.snapshot import Snapshot
from simulator.actors.gpu_operator.states import IDLE, UpgradeState


def total(snapshot: Snapshot) -> int:
    """A state nobody knows is no managed node: whoever mistypes the label takes the node out of the count."""
    return sum(len(snapshot.of(state)) for state in UpgradeState)


def in_progress(snapshot: Snapshot) -> int:
    """Failed nodes count: with one slot, one failure stops the rollout."""
    return total(snapshot) - sum(len(snapshot.of(state)) for state in IDLE)


def unavailable(snapshot: Snapshot) -> int:
    """Cordoned or not ready, for whatever reason, and those about to be cordoned."""
    seen = sum(seen.is_unavailable for seen in snapshot.all())
    return seen + len(snapshot.of(UpgradeState.CORDON))


def available(snapshot: Snapshot, policy: Policy) -> int:
    limit = policy.unavailable_limit(total(snapshot))
    free = policy.max_parallel - in_progress(snapshot)
    if policy.max_parallel == 0:
        free = len(snapshot.of(UpgradeState.REQUIRED))
    free = min(free, limit)
    gone = unavailable(snapshot)
    if gone >= limit:
        return 0
    if limit < total(snapshot) and gone + free > limit:
        return limit - gone
    return free
