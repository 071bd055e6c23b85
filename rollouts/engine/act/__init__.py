"""Carry out what was decided. The intent is a row first; every act is safe to repeat; errors stay with their node."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from kube import client
from rollouts.engine.act.cordons import cordon_again, uncordon
from rollouts.engine.act.exclusions import opt_out_again, put_back
from rollouts.engine.act.holds import free_strays, lift_holds, place_holds
from rollouts.engine.act.labels import clear_upgrade_state, requeue_failed
from rollouts.engine.act.node_handover import hand_over
from rollouts.engine.act.test_jobs import follow_proofs, make_proofs
from rollouts.engine.act.version import write_version
from rollouts.engine.act.waves import finish_release, open_rollback_stage, recall, release_wave
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide.acts import (
    Act,
    ClearUpgradeState,
    CordonAgain,
    FinishRelease,
    FollowProofs,
    FreeStrays,
    HandOver,
    LiftHolds,
    MakeProofs,
    OpenRollbackStage,
    OptOutAgain,
    PlaceHolds,
    PutBack,
    Recall,
    ReleaseWave,
    RequeueFailed,
    Uncordon,
    WriteVersion,
)
from rollouts.engine.writer_lease import take_writer_lease
from rollouts.models import Plan

CARRY_OUT: dict[type, Callable[[Writer, Any], str | None]] = {
    PlaceHolds: place_holds,
    LiftHolds: lift_holds,
    HandOver: hand_over,
    FreeStrays: free_strays,
    WriteVersion: write_version,
    ReleaseWave: release_wave,
    FinishRelease: finish_release,
    Recall: recall,
    ClearUpgradeState: clear_upgrade_state,
    RequeueFailed: requeue_failed,
    OpenRollbackStage: open_rollback_stage,
    PutBack: put_back,
    OptOutAgain: opt_out_again,
    CordonAgain: cordon_again,
    Uncordon: uncordon,
    MakeProofs: make_proofs,
    FollowProofs: follow_proofs,
}


def carry_out(
    plan: Plan,
    act: Act,
    connection: client.Connection,
    *,
    told: int | None,
    clock: Callable[[], datetime],
    asked: Mapping[str, Any] | None = None,
) -> str:
    """Why it was not done, by what the API server or a person said since: the sentence in place of the decision's.

    Blank: it was done, as far as one round comes. `told`: the newest command that was known when it was decided;
    `asked`: the object's spec as it was then.

    :raises ClusterError: when the cluster as a whole does not answer
    :raises Forfeit: when we may not write there
    :raises LostRace: when the plan is no longer ours, or no longer what it was
    """
    take_writer_lease(connection, plan.cluster, now=clock())
    return CARRY_OUT[type(act)](Writer(plan, connection, clock, told, asked), act) or ""
