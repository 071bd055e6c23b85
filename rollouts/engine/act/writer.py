"""One plan's hand in the cluster for the length of a round."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from kube import client
from kube.structs import NodeSeen
from rollouts.components.base import Component, NodeLabel
from rollouts.models import Hold, Plan

MOST_AT_ONCE = 100  # nodes an act touches before the round ends: a person's word must not wait for five thousand
TRIES = 4  # a heartbeat between our read and our write is common, and no reason to give up


@dataclass(frozen=True)
class Writer:
    plan: Plan
    connection: client.Connection
    clock: Callable[[], datetime]

    @property
    def component(self) -> Component:
        return self.plan.its_component

    @property
    def hold(self) -> NodeLabel:
        return self.component.hold

    def some(self, nodes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """As many nodes as one act may touch, the lease moved on the way."""
        for number, (uid, name) in enumerate(sorted(nodes.items(), key=lambda item: item[1])[:MOST_AT_ONCE]):
            if number % 10 == 0:
                self.plan.keep_lease(now=self.clock())
            yield uid, name

    def change(self, uid: str, name: str, wanted: Callable[[NodeSeen], client.Patch]) -> NodeSeen | None:
        """Read the node, patch it to be as wanted, and give back what the API server then showed.

        None: it cannot be done now; the node's own row says why. Being throttled ends the round.

        :raises TooManyRequests: with the time to wait
        :raises Unreachable: when the cluster does not answer
        """
        trouble = f"{name} changed each time we tried to write it."
        for _ in range(TRIES):
            try:
                seen = client.get_node(self.connection, name)
                if seen.uid != uid:
                    trouble = f"{name} is another node now."
                    break
                patch = wanted(seen)
                return client.patch_node(self.connection, name, patch) if patch else seen
            except client.Conflict:
                continue
            except (client.Absent, client.Forbidden, client.Refused) as refusal:
                trouble = str(refusal)
                break
        Hold.objects.filter(plan=self.plan, node_uid=uid).update(trouble=trouble[:500])
        return None
