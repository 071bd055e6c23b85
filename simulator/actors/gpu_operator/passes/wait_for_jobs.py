from simulator import selectors
from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.passes.base import Hands
from simulator.actors.gpu_operator.policy import Policy
from simulator.actors.gpu_operator.snapshot import Snapshot
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.objects import Obj, annotations, labels, name, phase
from simulator.kinds import POD


def run(hands: Hands, snapshot: Snapshot, policy: Policy) -> None:
    for seen in snapshot.of(UpgradeState.WAIT_FOR_JOBS):
        if not policy.wait_selector or not _is_awaited(hands, seen.node, policy.wait_selector):
            hands.acts.annotate(seen.node, keys.JOBS_SINCE, None)
            hands.acts.move(seen.node, UpgradeState.POD_DELETION)
        elif policy.wait_timeout_s:
            _watch_timeout(hands, seen.node, policy.wait_timeout_s)


def _is_awaited(hands: Hands, node: Obj, selector: str) -> bool:
    wanted = selectors.parse(selector)
    pods = hands.world[POD].by("node", name(node))
    return any(phase(pod) in ("Running", "Pending") and wanted.matches(labels(pod)) for pod in pods)


def _watch_timeout(hands: Hands, node: Obj, timeout_s: int) -> None:
    since = annotations(node).get(keys.JOBS_SINCE)
    if since is None:
        hands.acts.annotate(node, keys.JOBS_SINCE, str(hands.acts.unix()))
    elif hands.acts.has_passed(since, timeout_s):
        hands.acts.move(node, UpgradeState.POD_DELETION)
        hands.acts.annotate(node, keys.JOBS_SINCE, None)
