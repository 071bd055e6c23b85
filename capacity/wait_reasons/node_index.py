"""The nodes of one cluster as bit sets, one for each label value, taint and amount. Pure.

A set of nodes is an integer with a bit for each node, so that a pod is compared with thousands of nodes in a few
operations. Sets are built on first use and shared by all pods of the cluster.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property

from capacity.wait_reasons.label_requirements import LabelRequirement, Term
from capacity.wait_reasons.neighbours import Neighbours, PreemptiblePods
from capacity.wait_reasons.requirements import NodeTaint
from gpu.label_conflicts import models_in

NodeSet = int
NUMBER = re.compile(r"\d+")
UNKNOWN_LIMIT = 10**9  # of pods on a node that does not report one
VALUES_COMPARED = 500  # of a label, with a misspelt one
NAMED = 3  # nodes in a sentence
BEST_AT_MOST = 5
CORDON_KEY = "node.kubernetes.io/unschedulable"  # corev1.TaintNodeUnschedulable


@dataclass(frozen=True, slots=True)
class ComparedNode:
    """One node. Amounts are by resource, with cpu in millicores and memory in bytes."""

    key: int
    name: str
    labels: Mapping[str, str]
    taints: tuple[NodeTaint, ...] = ()
    is_cordoned: bool = False
    allocatable: Mapping[str, int] = field(default_factory=dict)
    requested: Mapping[str, int] = field(default_factory=dict)
    expected: Mapping[str, int] = field(default_factory=dict)  # the highest that it ever offered
    parts: frozenset[str] = frozenset()  # resources whose units are shares or slices of GPUs

    def free(self, resource: str) -> int:
        return self.allocatable.get(resource, 0) - self.requested.get(resource, 0)


@dataclass(frozen=True, slots=True)
class FreeAmount:
    """The free amount of one resource on a set of nodes."""

    total: int
    having: int  # nodes with any
    most: int  # highest amount on one node; below 0: pods use more than the node has
    with_most: int  # nodes with so much
    best: tuple[ComparedNode, ...]  # nodes with the most, at most `BEST_AT_MOST`


class NodeIndex:
    def __init__(self, nodes: Iterable[ComparedNode], neighbours: Neighbours | None = None) -> None:
        self.nodes: Sequence[ComparedNode] = tuple(nodes)
        self.neighbours = neighbours  # None: the pods on these nodes were not read
        self.every: NodeSet = (1 << len(self.nodes)) - 1
        self._by_label: dict[str, dict[str, NodeSet]] = {}
        self.pods_by_domain: dict[Hashable, Mapping[str, int]] = {}  # of `rule_nodes`
        self._having: dict[str, NodeSet] = {}
        self._requirements: dict[LabelRequirement, NodeSet] = {}
        self._amounts: dict[tuple[str, bool], tuple[list[int], list[int]]] = {}
        self._rooms: dict[tuple[str, NodeSet], FreeAmount] = {}
        self._at_least: dict[tuple[str, bool, int], NodeSet] = {}

    def beside(self, neighbours: Neighbours) -> "NodeIndex":
        """Returns the same nodes with other facts of the pods on them."""
        return NodeIndex(self.nodes, neighbours)

    @property
    def preemptible(self) -> Sequence[PreemptiblePods] | None:
        return self.neighbours.preemptible if self.neighbours else None

    def __len__(self) -> int:
        return len(self.nodes)

    def nodes_of(self, nodes: NodeSet) -> Iterator[ComparedNode]:
        """Yields the nodes of a set."""
        bits = f"{nodes:b}"[::-1]
        place = bits.find("1")
        while place >= 0:
            yield self.nodes[place]
            place = bits.find("1", place + 1)

    def named(self, nodes: NodeSet) -> str:
        """Returns the first names of a set as text: `a, b, c and 4 more`."""
        number = nodes.bit_count()
        first = [node.name for node, _ in zip(self.nodes_of(nodes), range(NAMED), strict=False)]
        return ", ".join(first) + (f" and {number - NAMED} more" if number > NAMED else "")

    def room(self, resource: str, nodes: NodeSet) -> FreeAmount:
        """Returns how much of a resource is free on these nodes. Remembered: pods of one owner ask the same."""
        if (resource, nodes) not in self._rooms:
            amounts, places = self._sorted(resource, is_free=True)
            bits = f"{nodes:0{len(self.nodes)}b}"[::-1]
            free = [(amount, place) for amount, place in zip(amounts, places, strict=True) if bits[place] == "1"]
            most = free[-1][0] if free else 0
            self._rooms[resource, nodes] = FreeAmount(
                total=sum(amount for amount, _ in free if amount > 0),
                having=sum(amount > 0 for amount, _ in free),
                most=most,
                with_most=sum(amount == most for amount, _ in free),
                best=tuple(self.nodes[place] for _, place in reversed(free[-BEST_AT_MOST:])),
            )
        return self._rooms[resource, nodes]

    def largest(self, resource: str, nodes: NodeSet, *, is_free: bool = False) -> int:
        """Returns the largest amount of a resource that one of these nodes has in total, or free. 0: none has any."""
        amounts, places = self._sorted(resource, is_free=is_free)
        descending = zip(reversed(amounts), reversed(places), strict=True)
        return next((amount for amount, place in descending if nodes >> place & 1), 0)

    def has(self, nodes: NodeSet, node: ComparedNode) -> bool:
        return bool(nodes >> self._places[node.name] & 1)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {node.name: place for place, node in enumerate(self.nodes)}

    @cached_property
    def _places_by_key(self) -> Mapping[int, int]:
        return {node.key: place for place, node in enumerate(self.nodes)}

    def place_of(self, key: int) -> int | None:
        return self._places_by_key.get(key)

    def set_of_keys(self, keys: Iterable[int]) -> NodeSet:
        return self._set_of(place for key in keys if (place := self.place_of(key)) is not None)

    def set_of_names(self, names: Iterable[str]) -> NodeSet:
        return self._set_of(place for name in names if (place := self._places.get(name)) is not None)

    def having(self, key: str) -> NodeSet:
        """Returns the nodes with a label, whatever its value."""
        if key not in self._having:
            self._having[key] = union_of(self.values_of(key).values())
        return self._having[key]

    def where(self, is_wanted: Callable[[ComparedNode], bool]) -> NodeSet:
        return self._set_of(place for place, node in enumerate(self.nodes) if is_wanted(node))

    @cached_property
    def without_pod_limit(self) -> NodeSet:
        return self.where(lambda node: node.allocatable.get("pods") == UNKNOWN_LIMIT)

    @cached_property
    def cordoned(self) -> NodeSet:
        return self.where(lambda node: node.is_cordoned)

    @cached_property
    def tainted(self) -> Mapping[NodeTaint, NodeSet]:
        """Returns the nodes of each taint that keeps pods away. A cordon's own taint counts as the cordon."""
        found: dict[NodeTaint, list[int]] = defaultdict(list)
        for place, node in enumerate(self.nodes):
            for taint in node.taints:
                if taint.keeps_away and taint.key != CORDON_KEY:
                    found[taint].append(place)
        return {taint: self._set_of(places) for taint, places in found.items()}

    def matching(self, requirement: LabelRequirement) -> NodeSet:
        """Returns the nodes that satisfy one requirement of a node affinity."""
        if requirement not in self._requirements:
            self._requirements[requirement] = self._matching(requirement)
        return self._requirements[requirement]

    def matching_any(self, terms: Iterable[Term]) -> NodeSet:
        """Returns the nodes that satisfy all requirements of one of these terms. An empty term takes no node."""
        found = 0
        for term in terms:
            nodes = self.every if term else 0
            for requirement in term:
                nodes &= self.matching(requirement)
            found |= nodes
        return found

    def values_of(self, key: str) -> Mapping[str, NodeSet]:
        """Returns the nodes by value of a label."""
        if key not in self._by_label:
            found: dict[str, list[int]] = defaultdict(list)
            for place, node in enumerate(self.nodes):
                if (value := node.labels.get(key)) is not None:
                    found[value].append(place)
            self._by_label[key] = {value: self._set_of(places) for value, places in found.items()}
        return self._by_label[key]

    def nearest_value(self, key: str, value: str) -> str:
        """Returns the value of a label that is spelt almost like this one. Blank: none is, or it exists.

        Another number or another GPU model is another thing, not another spelling: H200 and GB200, 40GB and 80GB.
        """
        values = self.values_of(key)
        if value in values:
            return ""
        alike = [each for each in list(values)[:VALUES_COMPARED] if _identity_of(each) == _identity_of(value)]
        return next(iter(get_close_matches(value, alike, n=1, cutoff=0.85)), "")

    def in_parts(self, resource: str) -> NodeSet:
        """Returns the nodes on which a unit of a resource is a share or a slice of a GPU."""
        return self._parts.get(resource, 0)

    @cached_property
    def _parts(self) -> Mapping[str, NodeSet]:
        found: dict[str, list[int]] = defaultdict(list)
        for place, node in enumerate(self.nodes):
            for name in node.parts:
                found[name].append(place)
        return {name: self._set_of(places) for name, places in found.items()}

    def offering(self, resource: str, amount: int = 1) -> NodeSet:
        """Returns the nodes with at least this amount in total, whoever has it."""
        return self._with(resource, amount, is_free=False)

    def with_free(self, resource: str, amount: int) -> NodeSet:
        return self._with(resource, amount, is_free=True)

    def _matching(self, wanted: LabelRequirement) -> NodeSet:
        if wanted.is_field:
            return self.where(lambda node: wanted.holds({wanted.key: node.name}))
        by_value = self.values_of(wanted.key)
        present = self.having(wanted.key)
        match wanted.operator:
            case "In":
                return union_of(by_value.get(value, 0) for value in wanted.values)
            case "NotIn":
                return self.every & ~union_of(by_value.get(value, 0) for value in wanted.values)
            case "Exists":
                return present
            case "DoesNotExist":
                return self.every & ~present
        return union_of(nodes for value, nodes in by_value.items() if wanted.holds({wanted.key: value}))

    def _with(self, resource: str, amount: int, *, is_free: bool) -> NodeSet:
        if (resource, is_free, amount) not in self._at_least:
            amounts, places = self._sorted(resource, is_free=is_free)
            start = bisect_left(amounts, amount)
            self._at_least[resource, is_free, amount] = self._set_of(places[start:])
        return self._at_least[resource, is_free, amount]

    def _sorted(self, resource: str, *, is_free: bool) -> tuple[list[int], list[int]]:
        """Returns the amounts in ascending order, and the place of the node of each."""
        if (resource, is_free) not in self._amounts:
            of = (node.free(resource) if is_free else node.allocatable.get(resource, 0) for node in self.nodes)
            pairs = sorted((amount, -place) for place, amount in enumerate(of))
            self._amounts[resource, is_free] = ([amount for amount, _ in pairs], [-place for _, place in pairs])
        return self._amounts[resource, is_free]

    def _set_of(self, places: Iterable[int]) -> NodeSet:
        """Returns the set in linear time: single bits set in an integer would each copy it."""
        bits = bytearray(len(self.nodes) // 8 + 1)
        for place in places:
            bits[place >> 3] |= 1 << (place & 7)
        return int.from_bytes(bits, "little")


def _identity_of(value: str) -> tuple[list[str], set[str]]:
    return NUMBER.findall(value), models_in(value)


def union_of(sets: Iterable[NodeSet]) -> NodeSet:
    found = 0
    for nodes in sets:
        found |= nodes
    return found
