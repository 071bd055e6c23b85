"""One reconcile, state by state, in the operator's order. A node moves at most one state in each."""

from simulator.actors.gpu_operator.passes import (
    cordon,
    done_or_unknown,
    drain,
    failed,
    pod_deletion,
    pod_restart,
    uncordon,
    upgrade_required,
    validation,
    wait_for_jobs,
)
from simulator.actors.gpu_operator.passes.base import Pass

PASSES: tuple[Pass, ...] = (
    done_or_unknown.run,
    upgrade_required.run,
    cordon.run,
    wait_for_jobs.run,
    pod_deletion.run,
    drain.run,
    pod_restart.run,
    failed.run,
    validation.run,
    uncordon.run,
)

__all__ = ["PASSES", "Pass"]
