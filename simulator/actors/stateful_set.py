"""A StatefulSet: pods with ordinals, one after the other, each made anew under the name it had."""

from simulator.actors.making_pods import PodMaker
from simulator.actors.objects import (
    Key,
    Obj,
    controller,
    generation,
    is_active,
    is_finished,
    is_terminating,
    is_true,
    key,
    name,
    namespace,
    spec,
    status,
    uid,
)
from simulator.actors.replicaset import pod_from
from simulator.actors.world import World
from simulator.kinds import POD, STATEFUL_SET

SOURCE = "statefulset-controller"
INDEX_LABEL, NAME_LABEL = "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"


def pod_of(owner: Obj, ordinal: int) -> Obj:
    pod = pod_from(owner, api_version="apps/v1", kind="StatefulSet")
    called = f"{name(owner)}-{ordinal}"
    metadata = {key: value for key, value in pod["metadata"].items() if key != "generateName"}
    numbered = {**metadata["labels"], INDEX_LABEL: str(ordinal), NAME_LABEL: called}
    return {**pod, "metadata": {**metadata, "name": called, "labels": numbered}}


class StatefulSets:
    def __init__(self, world: World) -> None:
        self._world = world
        self._maker = PodMaker(world, "StatefulSet", SOURCE, self.sync)
        world[STATEFUL_SET].on_change(self._set_changed)
        world[POD].on_change(self._pod_changed)

    def sync(self, at: Key) -> None:
        owner = self._world[STATEFUL_SET].objects.get(at)
        if owner is None or is_terminating(owner):
            return
        pods = {name(pod): pod for pod in self._world[POD].by("controller", uid(owner))}
        wanted = int(spec(owner).get("replicas", 1))
        self._keep(owner, pods, wanted)
        for called, pod in pods.items():
            if int(called.rpartition("-")[2]) >= wanted and not is_terminating(pod):
                self._world.delete(POD, pod)
        self._count(owner)

    def _keep(self, owner: Obj, pods: dict[str, Obj], wanted: int) -> None:
        is_parallel = spec(owner).get("podManagementPolicy") == "Parallel"
        for ordinal in range(wanted):
            pod = pods.get(f"{name(owner)}-{ordinal}")
            if pod is not None and is_finished(pod) and not is_terminating(pod):
                self._world.delete(POD, pod)
            elif pod is None and self._maker.make(owner, pod_of(owner, ordinal)) is None:
                return
            if not is_parallel and (pod is None or not is_true(pod, "Ready")):
                return  # the next waits for this one

    def _count(self, owner: Obj) -> None:
        pods = [pod for pod in self._world[POD].by("controller", uid(owner)) if is_active(pod)]
        ready = sum(is_true(pod, "Ready") for pod in pods)
        counted = {
            "observedGeneration": generation(owner),
            "replicas": len(pods),
            "currentReplicas": len(pods),
            "updatedReplicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
        }
        if any(status(owner).get(part, 0) != value for part, value in counted.items()):
            self._world.patch_status(STATEFUL_SET, owner, counted)

    def _set_changed(self, was: Obj | None, owner: Obj | None) -> None:
        if owner and (was is None or generation(was) != generation(owner)):
            self._world.loop.soon(self.sync, key(owner))

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        seen = pod or was
        owner = controller(seen) if seen else None
        if seen is None or owner is None or owner["kind"] != "StatefulSet":
            return
        if was is None or pod is None or is_active(was) != is_active(pod) or _is_ready(was) != _is_ready(pod):
            self._world.loop.soon(self.sync, (namespace(seen), owner["name"]))


def _is_ready(pod: Obj) -> bool:
    return is_true(pod, "Ready")
