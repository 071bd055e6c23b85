"""A lever that only tests use: a node is released by deleting its pod, and called back by a fence on the pod."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from fleet.states.pod import ENDED
from kube import client
from kube.client.connection import Connection
from kube.client.decoder import decode
from kube.client.patches import Patch
from kube.client.writes import AS_US, JSON_PATCH
from kube.resources import PODS
from kube.structs import NodeSeen, PodSeen
from operations.node_writer import TRIES
from rollouts.components.base import ReleaseAct
from rollouts.components.terms import HoldWords
from rollouts.engine.act.writer import Beside, Writer, as_patch
from rollouts.engine.live_state import newest_of
from rollouts.models import Hold
from rollouts.queries.driver_nodes import driver_daemonsets

CALLED_BACK = "quarterdeck.io/called-back"
BY_ITS_POD = HoldWords(
    holding_all="Nothing has to be held before {version} is written: a node changes once its pod is deleted.",
    writing="Writing {version}: a node changes once its pod is deleted.",
    written="{version} is written; a node changes once its pod is deleted.",
    holding="Taking note of {nodes} that should not change now.",
    holding_again="Taking note of {nodes}.",
    holding_first="Taking note of {nodes}.",
    recalling="Calling back what was to go and has its pod still.",
    recalled="Called back before its pod was deleted.",
    stays="No further pod is deleted.",
    begun="Its pod was deleted, which nobody can take back.",
    released="Its pod is gone.",
    changed="Its pod is of the newest template.",
    escaped="{names} took the new version by a pod made anew.",
    has_escaped="It took the new version by a pod made anew.",
    under_way="a pod that was deleted does not come back",
    halted="{nodes} {are} on the way and cannot be called back: a pod that was deleted does not come back.",
    all_gone="",
    ours_gone="",
    is_back="the old version is back",
    left="{names} {stay} with the pod there is.",
    given_up="{names} changed or failed, and {stay} as it is.",
    helps="Delete its pod by hand, and it is made anew with {version}.",
)


@dataclass(frozen=True)
class DeletePod(ReleaseAct):
    """A node goes with its pod of the object, deleted by its UID where it is not of the newest template.

    Gone is gone: only what has its pod still is called back.
    """

    pod_verbs: ClassVar[tuple[str, ...]] = ("delete", "patch")  # to release, and to call back


class ByPod:
    """Each pod goes by its UID and as it was seen: one that was made anew under its name, or fenced since, stays."""

    def may_go(self, writer: Writer, seen: NodeSeen) -> bool:
        return any(_old_pods(writer, seen.name))

    def release(
        self, writer: Writer, uid: str, name: str, *, may_go: Callable[[], bool], beside: Beside
    ) -> NodeSeen | None:
        seen = writer.change(uid, name, lambda node: as_patch(beside)(node) if may_go() else [])
        if seen is None or not may_go():
            return None
        gone = _each_old_pod(writer, uid, name, lambda pod: may_go() and _delete(writer, pod))
        return seen if gone is not None and all(gone) else None

    def fence(self, writer: Writer, uid: str, name: str) -> bool:
        return any(_each_old_pod(writer, uid, name, lambda pod: _fence(writer, pod)) or ())

    def call_back(self, writer: Writer, uid: str, name: str, *, beside: Beside) -> NodeSeen | None:
        return writer.change(uid, name, as_patch(beside))


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
    trouble = f"The pod on {name} changed during each attempt to write it."
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
        delete_pod(writer.connection, pod)
    return True


def _fence(writer: Writer, pod: PodSeen) -> bool:
    """Whether it stays: written, it is of another resourceVersion than any delete has named so far."""
    now = writer.clock()
    writer.plan.keep_lease(now=now)
    said = f"{writer.plan.mark} {now:%Y-%m-%dT%H:%M:%S.%fZ}"
    try:
        seen = patch_pod(writer.connection, pod, client.metadata_patch(pod, annotations={CALLED_BACK: said}))
    except client.Absent:
        return False
    return seen.metadata.deletion_timestamp is None


def _tell(writer: Writer, uid: str, trouble: str) -> None:
    Hold.objects.filter(plan=writer.plan, node_uid=uid).exclude(trouble=trouble).update(trouble=trouble)


def patch_pod(connection: Connection, seen: PodSeen, patch: Patch) -> PodSeen:
    """Raises as `patch_node` does."""
    path = PODS.path(seen.name, namespace=seen.namespace)
    return decode(connection.request("PATCH", path, AS_US, body=patch, content_type=JSON_PATCH), PodSeen)


def delete_pod(connection: Connection, seen: PodSeen) -> None:
    """As soon as its containers have ended.

    :raises Absent: when it is gone
    :raises Conflict: when it is another pod of the same name by now, or anybody has written it since it was seen
    """
    preconditions = {"uid": seen.uid, "resourceVersion": seen.resource_version}
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
    connection.request("DELETE", PODS.path(seen.name, namespace=seen.namespace), body=options)
