"""The stop, in one place: while it is in force no node is released, whatever a state decides (Z3, Z38). Pure."""

from dataclasses import replace

from rollouts.engine.decide.acts import Decision, FinishRelease, FreeStrays, HandOver, LiftHolds, ReleaseWave
from rollouts.engine.snapshot import Snapshot

LETS_GO = (LiftHolds, FreeStrays, HandOver, ReleaseWave, FinishRelease)


def under_a_stop(snapshot: Snapshot, decision: Decision) -> Decision:
    kept = tuple(act for act in decision.acts if not isinstance(act, LETS_GO))
    if not snapshot.stopped_reason or len(kept) == len(decision.acts):
        return decision
    return replace(decision, waiting_for=snapshot.stopped_reason, acts=kept)
