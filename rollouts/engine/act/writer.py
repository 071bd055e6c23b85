"""One plan's hand in the cluster for the length of a round."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from edges.transition_errors import LostRace
from kube import client
from kube.structs import NodeSeen
from rollouts.components.base import Component, NodeLabel
from rollouts.models import Hold, Plan, Target
from rollouts.models.transitions import record_event

LONGEST = timedelta(seconds=15)  # an act touches nodes for so long; then the round ends, and the next looks anew
LEASE_EVERY = timedelta(seconds=1)
TRIES = 4  # a heartbeat between our read and our write is common, and no reason to give up


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
        """The label. Only asked for where the component has one: nobody else's nodes come as far as that."""
        if self.component.hold is None:
            raise LookupError(f"Nothing holds a node from the {self.component.key}.")
        return self.component.hold

    def is_kept(self, labels: Mapping[str, str]) -> bool:
        """It carries the hold, or there is none to carry."""
        return self.component.hold is None or self.component.hold.is_on(labels)

    def some(self, nodes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """As many nodes as one act has time for. The lease is moved on the way.

        :raises LostRace: when it is over, or a person has told the plan something since: five thousand nodes are no
            reason to let a halt wait
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
            if not self._is_as_it_was():
                raise LostRace("The plan was told something else: it is looked at again.")
            yield uid, name

    def _is_as_it_was(self) -> bool:
        same = Plan.objects.filter(pk=self.plan.pk, state=self.plan.state, epoch=self.plan.epoch)
        return same.exists() and self.plan.commands.newest() == self.told

    def change(
        self, uid: str, name: str, wanted: Callable[[NodeSeen], client.Patch], *, rows: QuerySet[Any] | None = None
    ) -> NodeSeen | None:
        """Read the node, patch it to be as wanted, and give back what the API server then showed.

        None: it cannot be done now; the node's own rows say why, those of its hold where no others are named. Being
        throttled ends the round.

        :raises LostRace: when the turn is another worker's by now
        :raises TooManyRequests: with the time to wait
        :raises ServerFailing: when the API server fails, and not only at this write
        :raises Unreachable: when the cluster does not answer
        """
        trouble = f"{name} changed each time we tried to write it."
        for _ in range(TRIES):
            try:
                seen = client.get_node(self.connection, name)
                if seen.uid != uid:
                    trouble = f"{name} is another node now."
                    break
                # Whoever slept since he read it may have lost his turn. What is wanted is asked after that: the lease
                # waits for a halt that is being written, and is none the wiser.
                self.plan.keep_lease(now=self.clock())
                patch = wanted(seen)
                if not patch:
                    return seen
                return self._patch(name, patch)
            except client.Conflict:
                continue
            except (client.Absent, client.Forbidden, client.Refused) as refusal:
                trouble = str(refusal)
                break
        told = Hold.objects.filter(plan=self.plan, node_uid=uid) if rows is None else rows
        told.update(trouble=trouble[:500])
        return None

    def is_gone(self, uid: str, name: str) -> bool:
        """Nobody can tell where it may not be read; the row says why then."""
        try:
            return client.get_node(self.connection, name).uid != uid
        except client.Absent:
            return True
        except client.Forbidden:
            return False

    def _patch(self, name: str, patch: client.Patch) -> NodeSeen:
        """:raises Refused: also when a webhook fails that is asked of this node: it was read a moment ago, and one such
        node must keep no other from being held"""
        try:
            return client.patch_node(self.connection, name, patch)
        except client.InternalError as failing:
            raise client.Refused(str(failing)) from failing

    def note(self, uid: str, name: str, to: str, reason: str, *, now: datetime, actor: str = "engine") -> None:
        """A line about one node in the plan's history, under its target where it has one."""
        targets = Target.objects.filter(stage__plan=self.plan, node_uid=uid).select_related("stage")
        target = targets.order_by("-stage__index").first()
        stage = target.stage if target else None
        record_event(
            plan=self.plan, stage=stage, target=target, what="note", was="", to=to, now=now, actor=actor,
            reason=reason if target else f"{name}: {reason}",
        )  # fmt: skip
