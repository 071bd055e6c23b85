"""The access of one plan to its cluster during one round."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from edges.transition_errors import LostRace
from gpu.driver_hold import NodeLabel
from kube import client
from kube.structs import NodeSeen
from operations.node_writer import NotWritten, change_node
from rollouts.components.base import Component
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
