"""The operator's state label. For some states a change of it is the only way out (nvidia.md 2.2, 2.8)."""

from gpu.labels import UPGRADE_STATE, WAS_CORDONED
from gpu.upgrade_controller import UPGRADE_FAILED, UPGRADE_REQUIRED
from kube import client
from kube.structs import NodeSeen
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide.acts import ClearUpgradeState, RequeueFailed
from rollouts.models import Hold


def clear_upgrade_state(writer: Writer, act: ClearUpgradeState) -> None:
    """Removes the state label, so that the operator evaluates the node again: in sync, it becomes upgrade-done.

    The operator has cordoned a node in upgrade-failed, and uncordons it itself once it is in sync (k8s-operator-libs
    pkg/upgrade, ProcessUpgradeFailedNodes). Without a state it would keep the cordon.
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
    """Returns the patch from one state to another; it is empty if the operator has moved the node meanwhile.

    A node that leaves the queue also loses the operator's annotation about its cordon. Otherwise the next upgrade would
    read the old annotation and leave the node cordoned.
    """
    if seen.labels.get(UPGRADE_STATE) != was:
        return []
    note = {WAS_CORDONED: None} if to is None else {}
    return client.metadata_patch(seen, labels={UPGRADE_STATE: to}, annotations=note)
