"""Labels, annotations and cordon that are written with a hold in one patch, or alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gpu.labels import UPGRADE_STATE, WAS_CORDONED
from gpu.upgrade_controller import UPGRADE_FAILED, UPGRADE_REQUIRED
from kube import client
from kube.structs import NodeSeen
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide.acts import ClearUpgradeState, RequeueFailed
from rollouts.models import Hold

Values = Mapping[str, str | None]  # None: the key is removed


@dataclass(frozen=True)
class NodeWrite:
    labels: Values = field(default_factory=dict)
    annotations: Values = field(default_factory=dict)
    is_unschedulable: bool | None = None  # None: left as it is

    def __or__(self, other: "NodeWrite") -> "NodeWrite":
        """Merges both writes; where they differ, `other` wins."""
        is_unschedulable = self.is_unschedulable if other.is_unschedulable is None else other.is_unschedulable
        return NodeWrite({**self.labels, **other.labels}, {**self.annotations, **other.annotations}, is_unschedulable)


Beside = Callable[[NodeSeen], NodeWrite]


def nothing_else(seen: NodeSeen) -> NodeWrite:  # noqa: ARG001
    return NodeWrite()


def combine_writes(one: Beside, other: Beside) -> Beside:
    return lambda seen: one(seen) | other(seen)


def as_patch(beside: Beside) -> Callable[[NodeSeen], client.Patch]:
    return lambda seen: patch_of(seen, beside(seen))


def patch_of(seen: NodeSeen, wanted: NodeWrite) -> client.Patch:
    return client.node_patch(
        seen, labels=wanted.labels, annotations=wanted.annotations, is_unschedulable=wanted.is_unschedulable
    )


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
    if writer.change(uid, name, lambda seen: _patch_between(seen, was, to)) is not None:
        Hold.objects.filter(plan=writer.plan, node_uid=uid).exclude(trouble="").update(trouble="")


def _patch_between(seen: NodeSeen, was: str, to: str | None) -> client.Patch:
    """Returns the patch from one state to another; it is empty if the operator has moved the node meanwhile.

    A node that leaves the queue also loses the operator's annotation about its cordon. Otherwise the next upgrade would
    read the old annotation and leave the node cordoned.
    """
    if seen.labels.get(UPGRADE_STATE) != was:
        return []
    note = {WAS_CORDONED: None} if to is None else {}
    return client.metadata_patch(seen, labels={UPGRADE_STATE: to}, annotations=note)
