"""The lever that releases and recalls a node: its hold label.

Intent, ledger, last checks and lease are the same for each lever.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from gpu.labels import HELD_BY, UPGRADE_STATE
from kube.structs import NodeSeen
from rollouts.components.base import BEGUN, RemoveLabel
from rollouts.engine.act.holds import free_node, hold_node
from rollouts.engine.act.writer import Beside, Writer


class Lever(Protocol):
    def may_go(self, writer: Writer, seen: NodeSeen) -> bool:
        """Returns whether the node is ours to release and has not begun, as the API server shows it."""
        ...

    def release(
        self, writer: Writer, uid: str, name: str, *, may_go: Callable[[], bool], beside: Beside
    ) -> NodeSeen | None:
        """Releases the node and returns it as the API server then shows it; None if not.

        `may_go` is called before each write.
        """
        ...

    def fence(self, writer: Writer, uid: str, name: str) -> bool:
        """Returns whether the node can be recalled.

        A release that was sent earlier and arrives later then has no effect.
        """
        ...

    def call_back(self, writer: Writer, uid: str, name: str, *, beside: Beside) -> NodeSeen | None:
        """Recalls the node and returns it as the API server then shows it; None if not."""
        ...


class ByLabel:
    def may_go(self, writer: Writer, seen: NodeSeen) -> bool:
        is_ours = seen.annotations.get(HELD_BY) == writer.plan.mark and writer.is_kept(seen.labels)
        return is_ours and writer.component.phase(seen.labels.get(UPGRADE_STATE, "")) not in BEGUN

    def release(
        self, writer: Writer, uid: str, name: str, *, may_go: Callable[[], bool], beside: Beside
    ) -> NodeSeen | None:
        return free_node(writer, uid, name, even_queued=True, may_go=may_go, beside=beside)

    def fence(self, writer: Writer, uid: str, name: str) -> bool:
        return True  # by its new hold; a change that begins at the same moment continues, and no label stops it (Z3)

    def call_back(self, writer: Writer, uid: str, name: str, *, beside: Beside) -> NodeSeen | None:
        return hold_node(writer, uid, name, anew=True, beside=beside)


LEVERS: Mapping[type, Lever] = {RemoveLabel: ByLabel()}


def lever_of(writer: Writer) -> Lever:
    return LEVERS[type(writer.component.release)]
