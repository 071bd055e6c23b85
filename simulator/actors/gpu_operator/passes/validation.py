"""Waits for the validator pod on the node: 600 s once it is there, for ever while there is none."""

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.passes.base import Hands
from simulator.actors.gpu_operator.policy import Policy
from simulator.actors.gpu_operator.snapshot import Snapshot
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.objects import Obj, annotations, labels, name, phase, status
from simulator.kinds import POD

TIMEOUT_S = 600


def run(hands: Hands, snapshot: Snapshot, _policy: Policy) -> None:
    for seen in snapshot.of(UpgradeState.VALIDATION):
        hands.acts.annotate(seen.node, keys.SAFE_LOAD, None)
        if _is_validated(hands, seen.node):
            hands.acts.leave(seen.node)


def _is_validated(hands: Hands, node: Obj) -> bool:
    pods = [pod for pod in hands.world[POD].by("node", name(node)) if labels(pod).get("app") == keys.VALIDATOR_APP]
    for pod in pods:
        if not _is_ready(pod):
            _watch_timeout(hands, node)
            return False
        hands.acts.annotate(node, keys.VALIDATION_SINCE, None)
    return bool(pods)


def _is_ready(pod: Obj) -> bool:
    reports = status(pod).get("containerStatuses") or []
    return phase(pod) == "Running" and bool(reports) and all(report["ready"] for report in reports)


def _watch_timeout(hands: Hands, node: Obj) -> None:
    since = annotations(node).get(keys.VALIDATION_SINCE)
    if since is None:
        hands.acts.annotate(node, keys.VALIDATION_SINCE, str(hands.acts.unix()))
    elif hands.acts.has_passed(since, TIMEOUT_S):
        hands.acts.move(node, UpgradeState.FAILED)
        hands.acts.annotate(node, keys.VALIDATION_SINCE, None)
