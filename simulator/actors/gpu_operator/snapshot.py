"""One look at all driver pods and their nodes, by upgrade state. A pass reads it and never looks again."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.objects import Obj, condition, is_unschedulable, labels, name, node_of, owners, phase, uid
from simulator.actors.objects import namespace as namespace_of
from simulator.actors.revisions import HASH_LABEL
from simulator.actors.world import World
from simulator.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, POD


class UnscheduledPods(Exception):
    """A driver DaemonSet has not as many pods as it wants: the operator then does nothing, for any node."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One node with its driver pod and that pod's DaemonSet (None: nobody owns the pod)."""

    node: Obj
    pod: Obj
    daemon_set: Obj | None
    newest_hash: str

    @property
    def is_orphan(self) -> bool:
        return self.daemon_set is None

    @property
    def is_in_sync(self) -> bool:
        return not self.is_orphan and labels(self.pod).get(HASH_LABEL) == self.newest_hash

    @property
    def is_unavailable(self) -> bool:
        return is_unschedulable(self.node) or condition(self.node, "Ready").get("status", "True") != "True"


@dataclass(frozen=True)
class Snapshot:
    states: Mapping[str, list[Seen]]

    def of(self, state: UpgradeState) -> list[Seen]:
        return self.states.get(state, [])

    def all(self) -> Iterable[Seen]:
        return (seen for found in self.states.values() for seen in found)

    def by_owner(self) -> dict[str, "Snapshot"]:
        """26.7: one snapshot for each NVIDIADriver; nodes without the owner label are in none."""
        split: dict[str, dict[str, list[Seen]]] = defaultdict(lambda: defaultdict(list))
        for state, found in self.states.items():
            for seen in found:
                owner = labels(seen.node).get(keys.OWNER)
                if owner:
                    split[owner][state].append(seen)
        return {owner: Snapshot(states) for owner, states in split.items()}


def take_snapshot(world: World) -> Snapshot:
    """:raises UnscheduledPods:"""
    daemon_sets = list(world[DAEMON_SET].by("component", keys.DRIVER_COMPONENT))
    states: dict[str, list[Seen]] = defaultdict(list)
    for daemon_set in daemon_sets:
        pods = list(world[POD].by("controller", uid(daemon_set)))
        if int((daemon_set.get("status") or {}).get("desiredNumberScheduled", 0)) != len(pods):
            raise UnscheduledPods("driver DaemonSet should not have Unscheduled pods")
        newest = newest_hash(world, daemon_set)
        for pod in pods:
            _enter(world, states, pod, daemon_set, newest)
    for pod in world[POD].by("component", keys.DRIVER_COMPONENT):
        if not owners(pod):
            _enter(world, states, pod, None, "")
    return Snapshot({state: sorted(found, key=lambda seen: name(seen.pod)) for state, found in states.items()})


def _enter(world: World, states: dict[str, list[Seen]], pod: Obj, daemon_set: Obj | None, newest: str) -> None:
    if not node_of(pod) and phase(pod) == "Pending":
        return
    node = world[NODE].get(node_of(pod))
    if node is None:
        raise UnscheduledPods(f"unable to get node {node_of(pod)}")
    states[labels(node).get(keys.STATE, "")].append(Seen(node, pod, daemon_set, newest))


def newest_hash(world: World, daemon_set: Obj) -> str:
    """As the operator finds it: by the set's selector and a name prefix, the highest revision."""
    wanted = daemon_set["spec"]["selector"]["matchLabels"].items()
    found = [
        revision
        for revision in world[CONTROLLER_REVISION].by("namespace", namespace_of(daemon_set))
        if wanted <= labels(revision).items() and name(revision).startswith(name(daemon_set))
    ]
    if not found:
        raise UnscheduledPods(f"no revision found for daemonset {name(daemon_set)}")
    newest = max(found, key=lambda revision: int(revision["revision"]))
    return name(newest).removeprefix(f"{name(daemon_set)}-")
