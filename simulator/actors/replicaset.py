"""Keeps as many pods as a ReplicaSet asks for."""

from typing import Any

from simulator.actors.making_pods import PodMaker
from simulator.actors.objects import (
    Key,
    Obj,
    condition,
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
from simulator.clock import stamp
from simulator.kinds import POD, REPLICA_SET

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
        self._maker = PodMaker(world, "ReplicaSet", SOURCE, self.sync)
        world[REPLICA_SET].on_change(self._set_changed)
        world[POD].on_change(self._pod_changed)

    def sync(self, at: Key) -> None:
        replica_set = self._world[REPLICA_SET].objects.get(at)
        if replica_set is None or is_terminating(replica_set):
            return
        pods = [pod for pod in self._world[POD].by("controller", uid(replica_set)) if is_active(pod)]
        wanted = int(replica_set["spec"].get("replicas", 1))
        for _ in range(wanted - len(pods)):
            if self._maker.make(replica_set, pod_from(replica_set, api_version="apps/v1", kind="ReplicaSet")) is None:
                break
        if len(pods) >= wanted:
            self._maker.forget(replica_set)
        for pod in sorted(pods, key=_first_to_go)[: max(0, len(pods) - wanted)]:
            self._world.delete(POD, pod)
        self._count(replica_set)

    def _count(self, replica_set: Obj) -> None:
        pods = [pod for pod in self._world[POD].by("controller", uid(replica_set)) if is_active(pod)]
        ready = sum(is_true(pod, "Ready") for pod in pods)
        counted: Obj = {
            "replicas": len(pods),
            "fullyLabeledReplicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "observedGeneration": generation(replica_set),
        }
        conditions = self._conditions(replica_set)
        if conditions or status(replica_set).get("conditions"):
            counted["conditions"] = conditions or None
        if any(status(replica_set).get(part, 0) != value for part, value in counted.items()):
            self._world.patch_status(REPLICA_SET, replica_set, counted)

    def _conditions(self, replica_set: Obj) -> list[Obj]:
        words = self._maker.complaint(replica_set)
        if not words:
            return []
        was = condition(replica_set, "ReplicaFailure")
        since = was.get("lastTransitionTime") or stamp(self._world.loop.clock.now())
        told = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": words}
        return [told | {"lastTransitionTime": since}]

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
