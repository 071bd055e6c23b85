"""Keeps as many pods as a ReplicaSet asks for."""

from typing import Any

from simulator.actors.objects import (
    Key,
    Obj,
    controller,
    generation,
    is_active,
    is_terminating,
    is_true,
    key,
    name,
    namespace,
    node_of,
    owned_by,
    status,
    uid,
)
from simulator.actors.world import World
from simulator.kinds import POD, REPLICA_SET
from simulator.refusals import Refused

SOURCE = "replicaset-controller"


def pod_from(owner: Obj, *, api_version: str, kind: str) -> Obj:
    template = owner["spec"]["template"]
    metadata: dict[str, Any] = {
        "generateName": f"{name(owner)}-",
        "namespace": namespace(owner),
        "labels": dict(template["metadata"].get("labels") or {}),
        "ownerReferences": [owned_by(owner, api_version=api_version, kind=kind)],
    }
    if template["metadata"].get("annotations"):
        metadata["annotations"] = template["metadata"]["annotations"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


class ReplicaSets:
    def __init__(self, world: World) -> None:
        self._world = world
        world[REPLICA_SET].on_change(self._set_changed)
        world[POD].on_change(self._pod_changed)

    def sync(self, at: Key) -> None:
        replica_set = self._world[REPLICA_SET].objects.get(at)
        if replica_set is None or is_terminating(replica_set):
            return
        pods = [pod for pod in self._world[POD].by("controller", uid(replica_set)) if is_active(pod)]
        wanted = int(replica_set["spec"].get("replicas", 1))
        for _ in range(wanted - len(pods)):
            self._create(replica_set)
        for pod in sorted(pods, key=_first_to_go)[: max(0, len(pods) - wanted)]:
            self._world.delete(POD, pod)
        self._count(replica_set)

    def _create(self, replica_set: Obj) -> None:
        pod = pod_from(replica_set, api_version="apps/v1", kind="ReplicaSet")
        try:
            made = self._world.create(POD, pod, namespace(replica_set))
        except Refused as refusal:
            words = f"Error creating: {refusal.message}"
            self._world.events.warning(replica_set, "ReplicaSet", "FailedCreate", words, source=SOURCE)
            raise
        words = f"Created pod: {name(made)}"
        self._world.events.normal(replica_set, "ReplicaSet", "SuccessfulCreate", words, source=SOURCE)

    def _count(self, replica_set: Obj) -> None:
        pods = [pod for pod in self._world[POD].by("controller", uid(replica_set)) if is_active(pod)]
        ready = sum(is_true(pod, "Ready") for pod in pods)
        counted = {
            "replicas": len(pods),
            "fullyLabeledReplicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "observedGeneration": generation(replica_set),
        }
        if any(status(replica_set).get(part, 0) != value for part, value in counted.items()):
            self._world.patch_status(REPLICA_SET, replica_set, counted)

    def _set_changed(self, was: Obj | None, replica_set: Obj | None) -> None:
        if replica_set and (was is None or generation(was) != generation(replica_set)):
            self._world.loop.soon(self.sync, key(replica_set))

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        seen = pod or was
        owner = controller(seen) if seen else None
        if seen is None or owner is None or owner["kind"] != "ReplicaSet":
            return
        if was is None or pod is None or is_active(was) != is_active(pod) or _is_ready(was) != _is_ready(pod):
            self._world.loop.soon(self.sync, (namespace(seen), owner["name"]))


def _is_ready(pod: Obj) -> bool:
    return is_true(pod, "Ready")


def _first_to_go(pod: Obj) -> tuple[bool, bool, str]:
    """Unscheduled before scheduled, unready before ready, young before old."""
    return (
        bool(node_of(pod)),
        _is_ready(pod),
        "".join(chr(255 - ord(c)) for c in pod["metadata"]["creationTimestamp"]),
    )
