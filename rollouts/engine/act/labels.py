"""The operator's own state label, where only a change of it gets a node out of a state (nvidia.md 2.2, 2.8)."""

from gpu.labels import UPGRADE_STATE, WAS_CORDONED
from gpu.upgrade_controller import UPGRADE_FAILED, UPGRADE_REQUIRED
from kube import client
from kube.structs import NodeSeen
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide.acts import ClearUpgradeState, RequeueFailed
from rollouts.models import Hold


def clear_upgrade_state(writer: Writer, act: ClearUpgradeState) -> None:
    """A node without a state is judged afresh by the operator: in sync, it becomes upgrade-done.

    One that it had given up on it has cordoned. Of upgrade-failed, and in sync, it uncordons it itself
    (k8s-operator-libs pkg/upgrade, ProcessUpgradeFailedNodes); without a state it would leave it as it is.
    """
    for uid, name in writer.some(act.nodes):
        _write(writer, uid, name, UPGRADE_REQUIRED, UPGRADE_FAILED if uid in act.failed else None)


def clear_queued(writer: Writer, uid: str, name: str) -> None:
    _write(writer, uid, name, UPGRADE_REQUIRED, None)


def requeue_failed(writer: Writer, act: RequeueFailed) -> None:
    for uid, name in writer.some(act.nodes):
        _write(writer, uid, name, UPGRADE_FAILED, UPGRADE_REQUIRED)


def _write(writer: Writer, uid: str, name: str, was: str, to: str | None) -> None:
    if writer.change(uid, name, lambda seen: _from(seen, was, to)) is not None:
        Hold.objects.filter(plan=writer.plan, node_uid=uid).exclude(trouble="").update(trouble="")


def _from(seen: NodeSeen, was: str, to: str | None) -> client.Patch:
    """Nothing, where the operator has moved the node since.

    A node that leaves the queue takes the operator's note of a cordon along, which is written as it comes in: left
    behind, it is read at the end of the next upgrade, and leaves a node cordoned that somebody has uncordoned since.
    """
    if seen.labels.get(UPGRADE_STATE) != was:
        return []
    note = {WAS_CORDONED: None} if to is None else {}
    return client.metadata_patch(seen, labels={UPGRADE_STATE: to}, annotations=note)
