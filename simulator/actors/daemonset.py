"""One pod on each eligible node, made from the newest revision; the rest is the update strategy."""

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from simulator.actors import fits
from simulator.actors.gpu_operator.keys import COMPONENT
from simulator.actors.making_pods import FORBIDDEN, PodMaker
from simulator.actors.objects import (
    Key,
    Obj,
    by_age,
    controller,
    generation,
    is_active,
    is_finished,
    is_terminating,
    is_true,
    key,
    labels,
    name,
    namespace,
    node_of,
    owned_by,
    spec,
    status,
    uid,
)
from simulator.actors.revisions import HASH_LABEL, current_revision
from simulator.actors.world import World
from simulator.faults import Board, RefusedPods
from simulator.kinds import DAEMON_SET, NODE, POD
from simulator.refusals import Refused

SOURCE = "daemonset-controller"
STATUS_PAUSE_S = 0.5

# k8s.io/kubernetes pkg/controller/daemon/util: AddOrUpdateDaemonPodTolerations.
DAEMON_TOLERATIONS: tuple[Obj, ...] = (
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
)
NETWORK_TOLERATION: Obj = {
    "key": "node.kubernetes.io/network-unavailable",
    "operator": "Exists",
    "effect": "NoSchedule",
}


def daemon_tolerations(pod_spec: Obj) -> list[Obj]:
    extra = [NETWORK_TOLERATION] if pod_spec.get("hostNetwork") else []
    return [*(pod_spec.get("tolerations") or []), *DAEMON_TOLERATIONS, *extra]


def belongs(daemon_set: Obj, node: Obj) -> bool:
    """May a pod start there? A NoExecute taint alone is what makes a running pod leave."""
    pod_spec = daemon_set["spec"]["template"]["spec"]
    return fits.selects(pod_spec, node) and fits.untolerated(node, daemon_tolerations(pod_spec)) is None


def may_stay(daemon_set: Obj, node: Obj) -> bool:
    pod_spec = daemon_set["spec"]["template"]["spec"]
    left = fits.untolerated(node, daemon_tolerations(pod_spec), ("NoExecute",))
    return fits.selects(pod_spec, node) and left is None


def pod_of(daemon_set: Obj, hash_: str, node_name: str) -> Obj:
    """The pod as the controller posts it: pinned to its node by affinity, bound by the scheduler."""
    template = daemon_set["spec"]["template"]
    pinned = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    affinity = {
        **(template["spec"].get("affinity") or {}),
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pinned]}},
    }
    metadata: dict[str, Any] = {
        "generateName": f"{name(daemon_set)}-",
        "namespace": namespace(daemon_set),
        "labels": {
            **(template["metadata"].get("labels") or {}),
            HASH_LABEL: hash_,
            "pod-template-generation": str(generation(daemon_set)),
        },
        "ownerReferences": [owned_by(daemon_set, api_version="apps/v1", kind="DaemonSet")],
    }
    if template["metadata"].get("annotations"):
        metadata["annotations"] = template["metadata"]["annotations"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**template["spec"], "affinity": affinity, "tolerations": daemon_tolerations(template["spec"])},
    }


def _too_many(pods: Iterable[Obj]) -> list[Obj]:
    """All but the oldest that runs: podsShouldBeOnNode of pkg/controller/daemon, without surge.

    Two controllers that overlap for a moment, an old one and the one that follows it, both make one.
    """
    running = by_age(filter(is_active, pods))
    return sorted(running, key=lambda pod: not node_of(pod))[1:]


class DaemonSets:
    def __init__(self, world: World, faults: Board) -> None:
        self._world = world
        self._faults = faults
        self._maker = PodMaker(world, "DaemonSet", SOURCE, self.sync)
        self._hashes: dict[str, tuple[int, str]] = {}
        self._wanted: dict[str, set[str]] = defaultdict(set)
        self._counting: set[Key] = set()
        world[POD].index("pinned", _pinned_owner)
        world[DAEMON_SET].on_change(self._set_changed)
        world[NODE].on_change(self._node_changed)
        world[POD].on_change(self._pod_changed)

    def sync(self, at: Key) -> None:
        """The whole set: after a new template, or when it is first seen."""
        daemon_set = self._world[DAEMON_SET].objects.get(at)
        if daemon_set is None or is_terminating(daemon_set):
            return
        self._hash(daemon_set)
        for node in list(self._world[NODE].all()):
            self.sync_node(at, name(node))
        self._roll(daemon_set)
        self._count_later(at)

    def sync_node(self, at: Key, node_name: str) -> None:
        daemon_set, node = self._world[DAEMON_SET].objects.get(at), self._world[NODE].get(node_name)
        if daemon_set is None or node is None or is_terminating(daemon_set):
            return
        pods = self._world[POD].by("pinned", (uid(daemon_set), node_name))
        is_wanted = belongs(daemon_set, node)
        wanted = self._wanted[uid(daemon_set)]
        (wanted.add if is_wanted else wanted.discard)(node_name)
        if not pods and is_wanted:
            self._make(daemon_set, node_name)
        too_many = _too_many(pods)
        for pod in pods:
            if not is_terminating(pod) and (is_finished(pod) or pod in too_many or not may_stay(daemon_set, node)):
                self._world.delete(POD, pod)
        self._count_later(at)

    def _make(self, daemon_set: Obj, node_name: str) -> None:
        pod = pod_of(daemon_set, self._hash(daemon_set), node_name)
        called = {labels(pod).get("app"), labels(pod).get(COMPONENT, "").removeprefix("nvidia-")}
        for fault in self._faults.active(RefusedPods):
            if fault.node == node_name and fault.app in called:
                self._maker.refuse(daemon_set, Refused(FORBIDDEN, "Forbidden", fault.words))
                return
        self._maker.make(daemon_set, pod)

    def count(self, at: Key) -> None:
        """Write the status, if it says something new."""
        self._counting.discard(at)
        daemon_set = self._world[DAEMON_SET].objects.get(at)
        if daemon_set is None:
            return
        counted = self._status(daemon_set)
        if any(status(daemon_set).get(part, 0) != value for part, value in counted.items()):
            self._world.patch_status(DAEMON_SET, daemon_set, counted)

    def _status(self, daemon_set: Obj) -> dict[str, int]:
        pods = self._world[POD].by("controller", uid(daemon_set))
        wanted = self._wanted[uid(daemon_set)]
        placed = {fits.pinned_node(pod): pod for pod in pods if is_active(pod)}
        ours = [pod for where, pod in placed.items() if where in wanted]
        ready = sum(is_true(pod, "Ready") for pod in ours)
        hash_ = self._hash(daemon_set)
        return {
            "observedGeneration": generation(daemon_set),
            "desiredNumberScheduled": len(wanted),
            "currentNumberScheduled": len(ours),
            "numberMisscheduled": len(placed.keys() - wanted),
            "updatedNumberScheduled": sum(labels(pod).get(HASH_LABEL) == hash_ for pod in ours),
            "numberReady": ready,
            "numberAvailable": ready,
            "numberUnavailable": len(wanted) - ready,
        }

    def _roll(self, daemon_set: Obj) -> None:
        """RollingUpdate: as many old pods go as maxUnavailable leaves room for; OnDelete waits for somebody else."""
        strategy = daemon_set["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        hash_ = self._hash(daemon_set)
        pods = [pod for pod in self._world[POD].by("controller", uid(daemon_set)) if not is_terminating(pod)]
        wanted = len(self._wanted[uid(daemon_set)])
        ready = sum(is_true(pod, "Ready") for pod in pods)
        room = _max_unavailable(strategy, wanted) - (wanted - ready)
        old = [pod for pod in pods if labels(pod).get(HASH_LABEL) != hash_]
        for pod in old:
            if is_true(pod, "Ready"):
                room -= 1
                if room < 0:
                    continue
            self._world.delete(POD, pod)

    def _hash(self, daemon_set: Obj) -> str:
        known = self._hashes.get(uid(daemon_set))
        if known and known[0] == generation(daemon_set):
            return known[1]
        hash_ = current_revision(self._world, daemon_set)
        self._hashes[uid(daemon_set)] = (generation(daemon_set), hash_)
        return hash_

    def _count_later(self, at: Key) -> None:
        if at not in self._counting:
            self._counting.add(at)
            # Counting is linear in the set; a large one is counted less often.
            self._world.loop.later(STATUS_PAUSE_S + len(self._world[NODE].objects) / 1000, self.count, at)

    def _set_changed(self, was: Obj | None, daemon_set: Obj | None) -> None:
        if daemon_set is None:
            if was:
                self._hashes.pop(uid(was), None)
                self._wanted.pop(uid(was), None)
        elif was is None or generation(was) != generation(daemon_set):
            self._world.loop.soon(self.sync, key(daemon_set))

    def _node_changed(self, was: Obj | None, node: Obj | None) -> None:
        if was and node and _place(was) == _place(node):
            return
        for at in list(self._world[DAEMON_SET].objects):
            if node:
                self._world.loop.soon(self.sync_node, at, name(node))
            elif was:
                self._wanted[uid(self._world[DAEMON_SET].objects[at])].discard(name(was))
                self._count_later(at)

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        seen = pod or was
        owner = controller(seen) if seen else None
        if seen is None or owner is None or owner["kind"] != "DaemonSet":
            return
        at = (namespace(seen), owner["name"])
        is_second = was is None and len(self._world[POD].by("pinned", _pinned_owner(seen))) > 1
        if pod is None or is_finished(pod) or is_second:
            self._world.loop.soon(self.sync_node, at, fits.pinned_node(seen) or node_of(seen))
        if was is None or pod is None or is_true(was, "Ready") != is_true(pod, "Ready") or is_terminating(pod):
            self._count_later(at)
            self._world.loop.soon(self._roll_at, at)

    def _roll_at(self, at: Key) -> None:
        daemon_set = self._world[DAEMON_SET].objects.get(at)
        if daemon_set is not None and not is_terminating(daemon_set):
            self._roll(daemon_set)


def _pinned_owner(pod: Obj) -> tuple[str, str] | None:
    owner = controller(pod)
    if owner is None or owner["kind"] != "DaemonSet":
        return None
    return (owner["uid"], fits.pinned_node(pod) or node_of(pod))


def _place(node: Obj) -> tuple[object, ...]:
    return (labels(node), fits.taints(node), spec(node).get("unschedulable"))


def _max_unavailable(strategy: Obj, wanted: int) -> int:
    asked = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
    if isinstance(asked, str) and asked.endswith("%"):
        return max(1, math.ceil(wanted * int(asked[:-1]) / 100))
    return max(1, int(asked))
