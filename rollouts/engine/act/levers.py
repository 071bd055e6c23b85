"""The levers that release and recall a node: its hold label, or its driver pod.

Intent, ledger, last checks and lease are the same for each lever.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Protocol

from fleet.states.pod import ENDED
from gpu.labels import CALLED_BACK, HELD_BY, UPGRADE_STATE
from kube import client
from kube.structs import NodeSeen, PodSeen
from rollouts.components.base import BEGUN, DeletePod, RemoveLabel
from rollouts.engine.act.holds import free_node, hold_node
from rollouts.engine.act.node_writes import Beside, alone
from rollouts.engine.act.writer import TRIES, Writer
from rollouts.engine.live_state import newest_of
from rollouts.models import Hold
from rollouts.queries.driver_nodes import driver_daemonsets


class Lever(Protocol):
    def may_go(self, writer: Writer, seen: NodeSeen) -> bool:
        """Returns whether the node is ours to release and has not begun, as the API server shows it."""
        ...

    def let_go(
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

    def let_go(
        self, writer: Writer, uid: str, name: str, *, may_go: Callable[[], bool], beside: Beside
    ) -> NodeSeen | None:
        return free_node(writer, uid, name, even_queued=True, may_go=may_go, beside=beside)

    def fence(self, writer: Writer, uid: str, name: str) -> bool:
        return True  # by its hold written anew; what begins in the same moment goes on, and no label stops it (Z3)

    def call_back(self, writer: Writer, uid: str, name: str, *, beside: Beside) -> NodeSeen | None:
        return hold_node(writer, uid, name, anew=True, beside=beside)


class ByPod:
    """Each pod goes by its UID and as it was seen: one that was made anew under its name, or fenced since, stays."""

    def may_go(self, writer: Writer, seen: NodeSeen) -> bool:
        return any(_old_pods(writer, seen.name))

    def let_go(
        self, writer: Writer, uid: str, name: str, *, may_go: Callable[[], bool], beside: Beside
    ) -> NodeSeen | None:
        seen = writer.change(uid, name, lambda node: alone(beside)(node) if may_go() else [])
        if seen is None or not may_go():
            return None
        gone = _each_old_pod(writer, uid, name, lambda pod: may_go() and _delete(writer, pod))
        return seen if gone is not None and all(gone) else None

    def fence(self, writer: Writer, uid: str, name: str) -> bool:
        return any(_each_old_pod(writer, uid, name, lambda pod: _fence(writer, pod)) or ())

    def call_back(self, writer: Writer, uid: str, name: str, *, beside: Beside) -> NodeSeen | None:
        return writer.change(uid, name, alone(beside))


LEVERS: Mapping[type, Lever] = {RemoveLabel: ByLabel(), DeletePod: ByPod()}


def lever_of(writer: Writer) -> Lever:
    return LEVERS[type(writer.component.release)]


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


def _each_old_pod(writer: Writer, uid: str, name: str, act: Callable[[PodSeen], bool]) -> list[bool] | None:
    """What it says of each. None: it cannot be done now; the row of the node's hold says why.

    One that anybody has written since it was listed is listed again: its status changed, or a fence was put up.
    """
    trouble = f"The pod on {name} changed each time we tried to write it."
    for _ in range(TRIES):
        try:
            found = [act(pod) for pod in _old_pods(writer, name)]
        except client.Conflict:
            continue
        except (client.Forbidden, client.Refused, client.InternalError) as refusal:
            trouble = str(refusal)
            break
        _tell(writer, uid, "")
        return found
    _tell(writer, uid, trouble[:500])
    return None


def _delete(writer: Writer, pod: PodSeen) -> bool:
    """It is gone, or on its way."""
    writer.plan.keep_lease(now=writer.clock())  # whoever slept since he read it may have lost his turn
    with suppress(client.Absent):
        client.delete_pod(writer.connection, pod)
    return True


def _fence(writer: Writer, pod: PodSeen) -> bool:
    """Whether it stays: written, it is of another resourceVersion than any delete has named so far."""
    now = writer.clock()
    writer.plan.keep_lease(now=now)
    said = f"{writer.plan.mark} {now:%Y-%m-%dT%H:%M:%S.%fZ}"
    try:
        seen = client.patch_pod(writer.connection, pod, client.metadata_patch(pod, annotations={CALLED_BACK: said}))
    except client.Absent:
        return False
    return seen.metadata.deletion_timestamp is None


def _tell(writer: Writer, uid: str, trouble: str) -> None:
    Hold.objects.filter(plan=writer.plan, node_uid=uid).exclude(trouble=trouble).update(trouble=trouble)
