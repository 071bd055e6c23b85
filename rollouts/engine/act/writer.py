"""The access of one plan to its cluster during one round, and what it writes to a node in one patch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from edges.transition_errors import LostRace
from gpu.driver_hold import NodeLabel
from gpu.labels import UPGRADE_STATE, WAS_CORDONED
from gpu.upgrade_controller import UPGRADE_FAILED, UPGRADE_REQUIRED
from kube import client
from kube.structs import NodeSeen
from operations.node_writer import NotWritten, change_node
from rollouts.components.base import Component
from rollouts.engine.decide.acts import ClearUpgradeState, RequeueFailed
from rollouts.models import Hold, Plan, Target
from rollouts.models.transitions import record_event

LONGEST = timedelta(seconds=15)  # longest time of one act; then the round ends, and the next one observes again
LEASE_EVERY = timedelta(seconds=1)


@dataclass(frozen=True)
class Writer:
    plan: Plan
    connection: client.Connection
    clock: Callable[[], datetime]
    told: int | None  # the newest command that was known when the act was decided
    asked: Mapping[str, Any] | None = None  # the object's spec when it was decided. None: nobody has read it

    @property
    def component(self) -> Component:
        return self.plan.its_component

    @property
    def hold(self) -> NodeLabel:
        """Returns the hold label. Call it only for a component that has one."""
        if self.component.hold is None:
            raise LookupError(f"Nothing holds a node from the {self.component.key}.")
        return self.component.hold

    def is_kept(self, labels: Mapping[str, str]) -> bool:
        """Returns whether the labels carry the hold, or the component has none."""
        return self.component.hold is None or self.component.hold.is_on(labels)

    def some(self, nodes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yields as many nodes as one act has time for, and renews the lease meanwhile.

        :raises LostRace: when the lease has ended or a person has given the plan a command: a halt must not wait for
            five thousand nodes
        """
        began = kept = self.clock()
        self.plan.keep_lease(now=began)
        for uid, name in nodes.items():
            now = self.clock()
            if now - began >= LONGEST:
                return
            if now - kept >= LEASE_EVERY:
                self.plan.keep_lease(now=now)
                kept = now
            self.check_no_command()
            yield uid, name

    def check_no_command(self) -> None:
        """Checks that nobody has moved the plan or given it a command since the decision.

        :raises LostRace: when somebody has
        """
        same = Plan.objects.filter(pk=self.plan.pk, state=self.plan.state, epoch=self.plan.epoch)
        if not same.exists() or self.plan.commands.newest() != self.told:
            raise LostRace("The plan received a new command and is evaluated again.")

    def change(
        self, uid: str, name: str, wanted: Callable[[NodeSeen], client.Patch], *, rows: QuerySet[Any] | None = None
    ) -> NodeSeen | None:
        """Reads the node, patches it, and returns it as the API server then shows it.

        None means that the write is impossible now; `rows` (default: the node's hold) then carry the reason. Throttling
        ends the round.

        :raises LostRace: when another worker has the turn
        :raises TooManyRequests: with the time to wait
        :raises ServerFailing: when the API server fails for other requests too
        :raises Unreachable: when the cluster does not answer
        """
        try:
            return change_node(
                self.connection, uid, name, wanted, before_write=lambda: self.plan.keep_lease(now=self.clock())
            )
        except NotWritten as trouble:
            told = Hold.objects.filter(plan=self.plan, node_uid=uid) if rows is None else rows
            told.update(trouble=str(trouble)[:500])
        return None

    def is_gone(self, uid: str, name: str) -> bool:
        """Returns whether the node is removed. If reading is forbidden the row says so, and the result is False."""
        try:
            return client.get_node(self.connection, name).uid != uid
        except client.Absent:
            return True
        except client.Forbidden:
            return False

    def note(self, uid: str, name: str, to: str, reason: str, *, now: datetime, actor: str = "engine") -> None:
        targets = Target.objects.filter(stage__plan=self.plan, node_uid=uid).select_related("stage")
        target = targets.order_by("-stage__index").first()
        stage = target.stage if target else None
        record_event(
            plan=self.plan, stage=stage, target=target, what="note", was="", to=to, now=now, actor=actor,
            reason=reason if target else f"{name}: {reason}",
        )  # fmt: skip


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
