"""A Deployment as one ReplicaSet for each template it has had; a new one takes over while the old ones shrink."""

from typing import Any

from simulator.actors.objects import (
    Key,
    Obj,
    controller,
    generation,
    is_terminating,
    key,
    labels,
    name,
    namespace,
    owned_by,
    spec,
    status,
    uid,
)
from simulator.actors.revisions import template_hash
from simulator.actors.world import World
from simulator.kinds import DEPLOYMENT, REPLICA_SET

HASH_LABEL = "pod-template-hash"


def replica_set_of(deployment: Obj, *, replicas: int) -> Obj:
    template: dict[str, Any] = deployment["spec"]["template"]
    hash_ = template_hash(template)
    hashed = {**(template["metadata"].get("labels") or {}), HASH_LABEL: hash_}
    selector = {**(deployment["spec"]["selector"].get("matchLabels") or {}), HASH_LABEL: hash_}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name(deployment)}-{hash_}",
            "namespace": namespace(deployment),
            "labels": hashed,
            "ownerReferences": [owned_by(deployment, api_version="apps/v1", kind="Deployment")],
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector},
            "template": {**template, "metadata": {**template["metadata"], "labels": hashed}},
        },
    }


class Deployments:
    """Without surge: the new set grows by what the old ones have given up."""

    def __init__(self, world: World) -> None:
        self._world = world
        world[DEPLOYMENT].on_change(self._deployment_changed)
        world[REPLICA_SET].on_change(self._set_changed)

    def sync(self, at: Key) -> None:
        deployment = self._world[DEPLOYMENT].objects.get(at)
        if deployment is None or is_terminating(deployment):
            return
        owned = self._world[REPLICA_SET].by("controller", uid(deployment))
        newest = self._newest(deployment, owned)
        old = [each for each in owned if uid(each) != uid(newest)]
        wanted = int(spec(deployment).get("replicas", 1))
        for each in old:
            self._scale(each, 0)
        self._scale(newest, max(0, wanted - sum(int(status(each).get("replicas", 0)) for each in old)))
        self._count(deployment, [newest, *old])

    def _newest(self, deployment: Obj, owned: list[Obj]) -> Obj:
        """Sets that somebody made before us, with a hash of their own, are known by their template."""
        template = deployment["spec"]["template"]["spec"]
        found = [each for each in owned if each["spec"]["template"]["spec"] == template]
        if found:
            return found[0]
        return self._world.create(REPLICA_SET, replica_set_of(deployment, replicas=0), namespace(deployment))

    def _scale(self, replica_set: Obj, replicas: int) -> None:
        if int(spec(replica_set).get("replicas", 1)) != replicas:
            self._world.patch(REPLICA_SET, replica_set, {"spec": {"replicas": replicas}})

    def _count(self, deployment: Obj, sets: list[Obj]) -> None:
        def total(part: str) -> int:
            return sum(int(status(each).get(part, 0)) for each in sets)

        counted = {
            "observedGeneration": generation(deployment),
            "replicas": total("replicas"),
            "updatedReplicas": int(status(sets[0]).get("replicas", 0)),
            "readyReplicas": total("readyReplicas"),
            "availableReplicas": total("availableReplicas"),
        }
        if any(status(deployment).get(part, 0) != value for part, value in counted.items()):
            self._world.patch_status(DEPLOYMENT, deployment, counted)

    def _deployment_changed(self, was: Obj | None, deployment: Obj | None) -> None:
        if deployment and (was is None or generation(was) != generation(deployment)):
            self._world.loop.soon(self.sync, key(deployment))

    def _set_changed(self, was: Obj | None, replica_set: Obj | None) -> None:
        seen = replica_set or was
        owner = controller(seen) if seen else None
        if seen and owner and owner["kind"] == "Deployment" and HASH_LABEL in labels(seen):
            self._world.loop.soon(self.sync, (namespace(seen), owner["name"]))
