"""The pods on the nodes of a cluster, as far as rules of waiting pods name them. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from capacity.wait_reasons.pod_rules import PodPort, PodTerm, WantedPods
from capacity.wait_reasons.pod_volumes import DriverVolumes


@dataclass(frozen=True, slots=True)
class PlacedPod:
    node: int  # key of the node
    namespace: str
    labels: Mapping[str, str]
    is_terminating: bool = False


@dataclass(frozen=True)
class PodExclusion:
    """One anti-affinity term of pods on nodes, which keeps matching pods out of their domains."""

    term: PodTerm
    example: str  # namespace/name of one of the pods
    nodes: frozenset[int]  # of the pods, by key


@dataclass(frozen=True)
class PreemptiblePods:
    """Equal pods of one priority on a node."""

    node: int  # key of the node
    priority: int
    pods: int
    amounts: Mapping[str, int]  # of all of them, by resource


@dataclass(frozen=True)
class Neighbours:
    counts: Mapping[WantedPods, Mapping[int, int]]  # pods by node, of each rule of the waiting pods
    exclusions: Sequence[PodExclusion] = ()
    ports: Mapping[PodPort, frozenset[int]] | None = None  # nodes on which pods have it
    preemptible: Sequence[PreemptiblePods] | None = None  # below the highest priority that waits; None: not read
    volumes: Mapping[str, DriverVolumes] | None = None  # by CSI driver of the waiting pods; None: limits were not read

    @cached_property
    def label_keys(self) -> frozenset[str]:
        """Returns the labels of waiting pods that exclusions read."""
        return frozenset(key for each in self.exclusions for key in each.term.pods.label_keys)

    @cached_property
    def _by_namespace(self) -> Mapping[str | None, Sequence[PodExclusion]]:
        found: dict[str | None, list[PodExclusion]] = defaultdict(list)
        for each in self.exclusions:
            for namespace in (None,) if each.term.pods.namespaces is None else each.term.pods.namespaces:
                found[namespace].append(each)
        return found

    def excluding(self, namespace: str, labels: Mapping[str, str]) -> Iterator[PodExclusion]:
        """Yields the exclusions that match a pod."""
        for each in (*self._by_namespace.get(namespace, ()), *self._by_namespace.get(None, ())):
            if each.term.pods.matches(namespace, labels):
                yield each

    def nodes_with_port(self, wanted: PodPort) -> Iterator[int]:
        for port, nodes in (self.ports or {}).items():
            if port.conflicts_with(wanted):
                yield from nodes


def count_pods(pods: Iterable[PlacedPod], wanted: Iterable[WantedPods]) -> Mapping[WantedPods, Mapping[int, int]]:
    """Counts pods by node for each rule. Equal pods are compared once."""
    places: dict[tuple[str, tuple[tuple[str, str], ...], bool], Counter[int]] = defaultdict(Counter)
    for pod in pods:
        places[pod.namespace, tuple(sorted(pod.labels.items())), pod.is_terminating][pod.node] += 1
    found: dict[WantedPods, Mapping[int, int]] = {}
    for each in wanted:
        total = Counter[int]()
        for (namespace, labels, is_terminating), nodes in places.items():
            if (each.also_terminating or not is_terminating) and each.matches(namespace, dict(labels)):
                total.update(nodes)
        found[each] = total
    return found
