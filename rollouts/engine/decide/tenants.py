"""Remembers changed nodes on which tenants' pods were Ready, also after those pods end. Pure."""

from rollouts.engine.snapshot import Snapshot
from rollouts.gates.workloads_ready import served
from rollouts.lifecycle import TargetState


def newly_served(snapshot: Snapshot) -> frozenset[str]:
    """Returns the uids of changed nodes on which a tenant's GPU pod is Ready for the first time since the change."""
    changed = (target for stage in snapshot.forward for target in stage.in_state(TargetState.CHANGED))
    return frozenset(target.uid for target in changed if target.is_seen and not target.has_served and served(target))
