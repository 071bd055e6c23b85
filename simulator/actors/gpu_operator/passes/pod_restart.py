"""Deletes the old driver pod, then waits for the new one. Repeated crashes are the only way to fail here."""

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.passes.base import Hands
from simulator.actors.gpu_operator.policy import Policy
from simulator.actors.gpu_operator.snapshot import Seen, Snapshot
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.objects import Obj, is_terminating, phase, status

TOO_MANY_RESTARTS = 10


def run(hands: Hands, snapshot: Snapshot, _policy: Policy) -> None:
    for seen in snapshot.of(UpgradeState.POD_RESTART):
        if not seen.is_in_sync:
            if not is_terminating(seen.pod):
                hands.acts.restart(seen.pod)
            continue
        hands.acts.annotate(seen.node, keys.SAFE_LOAD, None)
        if is_settled(seen):
            hands.acts.move(seen.node, UpgradeState.VALIDATION)
        elif _is_failing(seen.pod):
            hands.acts.move(seen.node, UpgradeState.FAILED)


def is_settled(seen: Seen) -> bool:
    """In sync, running, and every container ready."""
    reports = status(seen.pod).get("containerStatuses") or []
    is_ready = bool(reports) and all(report["ready"] for report in reports)
    return seen.is_in_sync and phase(seen.pod) == "Running" and is_ready


def _is_failing(pod: Obj) -> bool:
    reports = [*(status(pod).get("initContainerStatuses") or ()), *(status(pod).get("containerStatuses") or ())]
    return any(not report["ready"] and report["restartCount"] > TOO_MANY_RESTARTS for report in reports)
