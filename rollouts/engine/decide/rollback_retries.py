"""Retries a node that fails in the rollback, within the budget, and then asks a person (Z5). Pure.

The operator leaves upgrade-failed by itself only when the driver pod is of the newest template and Ready
(k8s-operator-libs pkg/upgrade/common_manager.go, ProcessUpgradeFailedNodes). If the eviction failed, the old pod is
still there and the node needs another turn in the queue. If the new pod crashes, another turn finds the same pod and
fails at once (ProcessPodRestartNodes): only a working pod helps.
"""

from datetime import datetime

from rollouts.components.base import Phase
from rollouts.engine.decide.acts import Decision, MoveTarget
from rollouts.engine.decide.releases import SOON
from rollouts.engine.snapshot import Snapshot
from rollouts.gates.base import TargetEvidence
from rollouts.lifecycle import TargetState
from wording.lists import names
from wording.numbers import are, either

TRIES = 3  # the first one included; a person who resumes grants as many again


def try_again(snapshot: Snapshot) -> tuple[MoveTarget, ...]:
    """Returns the nodes to retry. Held again, a node waits for a wave and no longer occupies an operator slot."""
    stage = snapshot.rollback_stage
    can_be = _failed(snapshot, has_its_pod=False)
    return tuple(
        MoveTarget(
            stage.index,
            target.uid,
            target.name,
            TargetState.HELD,
            f"Failed in the rollback: try {tried + 1} of {TRIES}.",
        )
        for target in stage.in_state(TargetState.FAILED)
        if target.uid in can_be and (tried := stage.failures.get(target.uid, 0)) < TRIES
    )


def beyond_us(snapshot: Snapshot) -> tuple[TargetEvidence, ...]:
    """Returns targets that nothing we may do brings back. Call it when `try_again` returns none."""
    stage = snapshot.rollback_stage
    crashing = _failed(snapshot, has_its_pod=True)
    held = (one for one in stage.in_state(TargetState.HELD) if one.uid in crashing)
    return (*stage.in_state(TargetState.FAILED), *held)


def ask_for_help(snapshot: Snapshot, failed: tuple[TargetEvidence, ...], *, now: datetime) -> Decision:
    """Asks a person for help with a failed node. A crashing pod may still start, so the stage's timeout applies."""
    stage = snapshot.rollback_stage

    def those(uids: frozenset[str]) -> tuple[TargetEvidence, ...]:
        return tuple(target for target in failed if target.uid in uids)

    crashing, tried = those(_failed(snapshot, has_its_pod=True)), those(_failed(snapshot, has_its_pod=False))
    seen = those(frozenset(node.uid for node in snapshot.nodes))
    gone = tuple(target for target in failed if target not in seen)
    parts = [_failed_retries_text(tried), _crashing_pods_text(snapshot, crashing), _unseen_targets_text(gone)]
    sentence = " ".join(part for part in parts if part)
    if not sentence:
        again = f"{are(len(failed))} in the operator's queue again"
        return Decision(f"{_names(failed)} failed and {again}.", look_again_in=SOON)
    too_long = [one for one in crashing if now - max(one.state_since, stage.state_since) > stage.wait_timeout]
    if tried or gone or too_long:
        return Decision(f"{sentence} Then resume.", pause_reason=f"{sentence} Then resume.")
    return Decision(sentence, look_again_in=SOON)


def _failed(snapshot: Snapshot, *, has_its_pod: bool) -> frozenset[str]:
    failed = (node for node in snapshot.nodes if node.phase is Phase.FAILED)
    return frozenset(node.uid for node in failed if snapshot.templates.is_in_sync(node) is has_its_pod)


def _failed_retries_text(targets: tuple[TargetEvidence, ...]) -> str:
    if not targets:
        return ""
    number = len(targets)
    why = f"the operator could not evict the pods of the {either(number, 'node', 'nodes')}"
    it = either(number, "it", "them")
    helps = f"Read {either(number, 'its', 'their')} events; repair {it} or exclude {it}."
    return f"{_names(targets)} failed {TRIES} times in the rollback: {why}. {helps}"


def _crashing_pods_text(snapshot: Snapshot, targets: tuple[TargetEvidence, ...]) -> str:
    if not targets:
        return ""
    version, number = snapshot.version.old, len(targets)
    what = either(
        number,
        f"the driver pod for {version} exists and does not become Ready",
        f"the driver pods for {version} exist and do not become Ready",
    )
    helps = either(
        number,
        "The operator continues once the pod is Ready. Read its log, delete the pod, or exclude the node.",
        "The operator continues once the pods are Ready. Read their logs, delete the pods, or exclude the nodes.",
    )
    return f"{_names(targets)}: {what}. {helps}"


def _unseen_targets_text(targets: tuple[TargetEvidence, ...]) -> str:
    if not targets:
        return ""
    it = either(len(targets), "it", "them")
    return f"{_names(targets)} failed in the rollback and can no longer be seen. Exclude {it}."


def _names(targets: tuple[TargetEvidence, ...]) -> str:
    return names(tuple(target.name for target in targets))
