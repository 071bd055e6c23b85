"""What lets a node go and what calls it back, as its component has it: its hold off and on again, or its pod deleted.

All that stands around it is the same: the intent, the ledger, the look before each, the lease.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from fleet.states.pod import ENDED
from gpu.labels import HELD_BY, UPGRADE_STATE
from kube import client
from kube.structs import NodeSeen, PodSeen
from rollouts.components.base import BEGUN, DeletePod, RemoveLabel
from rollouts.engine.act.holds import Beside, free_node, hold_node
from rollouts.engine.act.writer import Writer
from rollouts.engine.live import newest_of
from rollouts.models import Hold
from rollouts.reads.queries import driver_daemonsets


class Lever(Protocol):
    def may_go(self, writer: Writer, seen: NodeSeen) -> bool:
        """It is ours to let go and has not begun, as the API server shows it."""
        ...

    def let_go(
        self, writer: Writer, uid: str, name: str, *, may_go: Callable[[], bool], beside: Beside
    ) -> NodeSeen | None:
        """The node, let go, as it was shown afterwards. None: it is not. `may_go` is asked before each write."""
        ...

    def can_call_back(self, writer: Writer, name: str) -> bool:
        """Nothing of it is done that nobody can take back."""
        ...

    def call_back(self, writer: Writer, uid: str, name: str, *, beside: Beside) -> NodeSeen | None:
        """The node, as it was shown afterwards. None: it is not called back."""
        ...


class ByLabel:
    def may_go(self, writer: Writer, seen: NodeSeen) -> bool:
        is_ours = seen.annotations.get(HELD_BY) == writer.plan.mark and writer.is_kept(seen.labels)
        return is_ours and writer.component.phase(seen.labels.get(UPGRADE_STATE, "")) not in BEGUN

    def let_go(
        self, writer: Writer, uid: str, name: str, *, may_go: Callable[[], bool], beside: Beside
    ) -> NodeSeen | None:
        return free_node(writer, uid, name, even_queued=True, may_go=may_go, beside=beside)

    def can_call_back(self, writer: Writer, name: str) -> bool:
        return True  # what begins in the same moment goes on, and no label stops it (hazard Z3)

    def call_back(self, writer: Writer, uid: str, name: str, *, beside: Beside) -> NodeSeen | None:
        return hold_node(writer, uid, name, anew=True, beside=beside)


class ByPod:
    """Each pod goes by its UID: one that was made anew under its name since is another, and stays."""

    def may_go(self, writer: Writer, seen: NodeSeen) -> bool:
        return any(_old_pods(writer, seen.name))

    def let_go(
        self, writer: Writer, uid: str, name: str, *, may_go: Callable[[], bool], beside: Beside
    ) -> NodeSeen | None:
        seen = writer.change(uid, name, lambda node: _patch(node, beside) if may_go() else [])
        if seen is None or not may_go():
            return None
        for pod in _old_pods(writer, name):
            if not may_go() or not _delete(writer, uid, pod):
                return None
        return seen

    def can_call_back(self, writer: Writer, name: str) -> bool:
        return any(_old_pods(writer, name))

    def call_back(self, writer: Writer, uid: str, name: str, *, beside: Beside) -> NodeSeen | None:
        return writer.change(uid, name, lambda node: _patch(node, beside))


LEVERS: Mapping[type, Lever] = {RemoveLabel: ByLabel(), DeletePod: ByPod()}


def lever_of(writer: Writer) -> Lever:
    return LEVERS[type(writer.component.release)]


def _patch(seen: NodeSeen, beside: Beside) -> client.Patch:
    wanted = beside(seen)
    return client.metadata_patch(seen, labels=wanted.labels, annotations=wanted.annotations)


def _old_pods(writer: Writer, name: str) -> Iterator[PodSeen]:
    """Of this node, of what the plan changes, and not of the newest template: asked of the API server itself.

    Not those that are on their way out, and none of a DaemonSet whose newest revision nobody knows.
    """
    daemonsets = {row.uid: row.namespace for row in driver_daemonsets(writer.plan)}
    for namespace in sorted(set(daemonsets.values())):
        newest = newest_of(client.list_revisions(writer.connection, namespace=namespace))
        for pod in client.list_pods_on(writer.connection, name, namespace=namespace):
            owner = pod.metadata.owner.uid if pod.metadata.owner else ""
            is_there = pod.metadata.deletion_timestamp is None and pod.status.phase not in ENDED
            is_its = owner in daemonsets and owner in newest
            if is_its and is_there and pod.labels.get("controller-revision-hash", "") != newest[owner]:
                yield pod


def _delete(writer: Writer, uid: str, pod: PodSeen) -> bool:
    """Whether it is gone, or on its way."""
    writer.plan.keep_lease(now=writer.clock())  # whoever slept since he read it may have lost his turn
    try:
        client.delete_pod(writer.connection, pod)
    except client.Absent:
        return True
    except (client.Conflict, client.Forbidden, client.Refused) as refusal:
        Hold.objects.filter(plan=writer.plan, node_uid=uid).update(trouble=str(refusal)[:500])
        return False
    return True
