"""Carries out a decision.

Each act writes its intent as a row first, is safe to repeat, and keeps errors to one node.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from kube import client
from operations.writer_lease import take_writer_lease
from rollouts.engine.act.cordons import cordon_affected, cordon_again, uncordon
from rollouts.engine.act.exclusions import exclude_again, put_back
from rollouts.engine.act.holds import lift_holds, place_holds, release_unmanaged_nodes
from rollouts.engine.act.node_handover import hand_over
from rollouts.engine.act.test_jobs import create_test_jobs, track_test_jobs
from rollouts.engine.act.version import write_version
from rollouts.engine.act.waves import finish_release, open_rollback_stage, recall, release_wave
from rollouts.engine.act.writer import Writer, clear_upgrade_state, requeue_failed
from rollouts.engine.decide.acts import (
    Act,
    ClearUpgradeState,
    CordonAffected,
    CordonAgain,
    CreateTestJobs,
    ExcludeAgain,
    FinishRelease,
    HandOver,
    LiftHolds,
    OpenRollbackStage,
    PlaceHolds,
    PutBack,
    Recall,
    ReleaseUnmanagedNodes,
    ReleaseWave,
    RequeueFailed,
    TrackTestJobs,
    Uncordon,
    WriteVersion,
)
from rollouts.models import Plan

CARRY_OUT: dict[type, Callable[[Writer, Any], str | None]] = {
    PlaceHolds: place_holds,
    LiftHolds: lift_holds,
    HandOver: hand_over,
    ReleaseUnmanagedNodes: release_unmanaged_nodes,
    WriteVersion: write_version,
    ReleaseWave: release_wave,
    FinishRelease: finish_release,
    Recall: recall,
    ClearUpgradeState: clear_upgrade_state,
    RequeueFailed: requeue_failed,
    OpenRollbackStage: open_rollback_stage,
    PutBack: put_back,
    ExcludeAgain: exclude_again,
    CordonAffected: cordon_affected,
    CordonAgain: cordon_again,
    Uncordon: uncordon,
    CreateTestJobs: create_test_jobs,
    TrackTestJobs: track_test_jobs,
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
    """Carries out one act, and returns a sentence where the act was refused or is incomplete; empty means done for now.

    The sentence replaces the one of the decision. `told` is the newest command known when the round decided, `asked` is
    the driver object's spec at that time.

    :raises ClusterError: when the whole cluster does not answer
    :raises Forfeit: when this Quarterdeck may not write to the cluster
    :raises LostRace: when another worker owns the plan, or its state has changed
    """
    take_writer_lease(connection, plan.cluster, now=clock())
    return CARRY_OUT[type(act)](Writer(plan, connection, clock, told, asked), act) or ""
