"""The rules of a pod about other pods and host ports, as kube-scheduler reads them. Pure.

kubernetes, pkg/scheduler/framework/plugins at 1.34: podtopologyspread, interpodaffinity, nodeports.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kube.selectors import Requirement, Selector, readable

SHOWN = 3  # parts of a selector in a text
EVERY_ADDRESS = ""
DEFAULT_PROTOCOL = "TCP"


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Pods of these namespaces by their labels."""

    selector: Selector | None  # None: no pod
    namespaces: frozenset[str] | None  # None: all

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        is_inside = self.namespaces is None or namespace in self.namespaces
        return is_inside and self.selector is not None and self.selector.matches(labels)

    @property
    def is_empty(self) -> bool:
        """Tells whether it has no requirement. The spread counts no pod then."""
        return self.selector is None or not self.selector.requirements

    @property
    def label_keys(self) -> frozenset[str]:
        return frozenset(each.key for each in self.selector.requirements) if self.selector else frozenset()

    @property
    def text(self) -> str:
        parts = [_requirement_text(each) for each in self.selector.requirements] if self.selector else ["no pod"]
        more = f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
        return (", ".join(parts[:SHOWN]) or "every pod") + more


@dataclass(frozen=True, slots=True)
class PodTerm:
    """One required term of a pod affinity or anti-affinity: pods of one domain."""

    key: str  # label of nodes whose values are the domains
    pods: PodSelector

    @property
    def text(self) -> str:
        return f"{self.pods.text} by {self.key}"


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """One topology spread constraint that keeps a pod from nodes."""

    key: str
    max_skew: int
    pods: PodSelector
    min_domains: int = 1
    ignores_affinity: bool = False  # also nodes that the pod's node affinity excludes are counted
    honors_taints: bool = False  # nodes with untolerated taints are not counted


@dataclass(frozen=True, slots=True)
class PodPort:
    port: int
    protocol: str = DEFAULT_PROTOCOL
    address: str = EVERY_ADDRESS

    def conflicts_with(self, other: "PodPort") -> bool:
        is_same = (self.port, self.protocol) == (other.port, other.protocol)
        return is_same and (EVERY_ADDRESS in (self.address, other.address) or self.address == other.address)

    @property
    def text(self) -> str:
        return f"{self.address}{':' if self.address else ''}{self.port}/{self.protocol}"


@dataclass(frozen=True, slots=True)
class WantedPods:
    """Pods that a rule counts on each node: those that match all of these selectors."""

    selectors: tuple[PodSelector, ...]
    also_terminating: bool = True

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return all(each.matches(namespace, labels) for each in self.selectors)


@dataclass(frozen=True)
class PodRules:
    """Rules about the pods on the node of a pod, and near it."""

    spread: Sequence[SpreadConstraint] = ()
    affinity: Sequence[PodTerm] = ()
    anti_affinity: Sequence[PodTerm] = ()
    ports: Sequence[PodPort] = ()
    unread: Sequence[str] = ()  # rules that are not compared

    @property
    def _by_domain(self) -> tuple[SpreadConstraint | PodTerm, ...]:
        return (*self.spread, *self.affinity, *self.anti_affinity)

    @property
    def topology_keys(self) -> frozenset[str]:
        return frozenset(each.key for each in self._by_domain)

    @property
    def selected_pods(self) -> list[str]:
        """Returns the pods that its rules count, as text, each once."""
        return list(dict.fromkeys(each.pods.text for each in self._by_domain))

    @property
    def label_keys(self) -> frozenset[str]:
        """Returns the labels of pods that its rules read."""
        return frozenset(key for each in self._by_domain for key in each.pods.label_keys)

    def wanted(self) -> Iterator[WantedPods]:
        yield from (pods_of_spread(each) for each in self.spread)
        if self.affinity:
            yield pods_of_affinity(self.affinity)
        yield from (pods_of_term(each) for each in self.anti_affinity)


NO_RULES = PodRules()


def pods_of_spread(constraint: SpreadConstraint) -> WantedPods:
    return WantedPods((constraint.pods,), also_terminating=False)


def pods_of_affinity(terms: Sequence[PodTerm]) -> WantedPods:
    return WantedPods(tuple(each.pods for each in terms))


def pods_of_term(term: PodTerm) -> WantedPods:
    return WantedPods((term.pods,))


NamespaceLabels = Mapping[str, Mapping[str, str]]  # by name of the namespace


def selects_namespaces(terms: Sequence[Any]) -> bool:
    """Tells whether a term names namespaces by their labels."""
    return any(_is_stored(term) and term.get("namespace_selector") for term in terms)


def read_rules(
    placement: Mapping[str, Any], namespace: str, labels: Mapping[str, str], known: NamespaceLabels | None = None
) -> PodRules:
    """Reads the rules of a stored placement. An earlier version stored some by their topology alone: unread.

    `known` are the namespaces of the cluster with their labels. None: they were not read.
    """
    spread, affinity = placement.get("spread", ()), placement.get("pod_affinity", ())
    anti_affinity = placement.get("pod_anti_affinity", ())
    unread = ["topology spread constraints"] if not all(map(_is_stored, spread)) else []
    terms = (*affinity, *anti_affinity)
    unread += ["affinity to other pods"] if not all(map(_is_stored, terms)) else []
    is_by_namespace_label = known is None and selects_namespaces(terms)
    unread += ["pod affinity to namespaces by their labels"] if is_by_namespace_label else []
    return PodRules(
        tuple(_spread(each, namespace, labels) for each in spread if _is_stored(each)),
        tuple(read_terms(affinity, namespace, known)),
        tuple(read_terms(anti_affinity, namespace, known)),
        tuple(map(read_port, placement.get("host_ports", ()))),
        unread,
    )


def read_terms(stored: Sequence[Any], namespace: str, known: NamespaceLabels | None = None) -> Iterator[PodTerm]:
    """Yields the terms that can be compared. Labels of namespaces need those of the cluster."""
    for each in stored:
        if not _is_stored(each):
            continue
        by_label, named = each.get("namespace_selector"), frozenset(each.get("namespaces") or ())
        if by_label:
            selector = readable(by_label)
            if known is None or selector is None:
                continue
            where: frozenset[str] | None = named | {name for name, labels in known.items() if selector.matches(labels)}
        else:
            where = None if by_label == {} else named or frozenset({namespace})
        yield PodTerm(each.get("key", ""), PodSelector(readable(each.get("selector")), where))


@lru_cache(1024)
def read_port(stored: str | int) -> PodPort:
    """Reads `8080/TCP` or `10.0.0.1:8080/TCP`; an earlier version stored the number alone."""
    where, _, protocol = str(stored).partition("/")
    address, _, port = where.rpartition(":")
    return PodPort(int(port) if port.isdigit() else 0, protocol or DEFAULT_PROTOCOL, address)


def _spread(stored: Mapping[str, Any], namespace: str, labels: Mapping[str, str]) -> SpreadConstraint:
    selector = readable(stored.get("selector"))
    same = [key for key in stored.get("match_label_keys", ()) if key in labels]
    if selector is not None and same:
        own = tuple(Requirement(key, frozenset({labels[key]}), negated=False) for key in same)
        selector = Selector((*selector.requirements, *(each for each in own if each not in selector.requirements)))
    return SpreadConstraint(
        key=stored.get("key", ""),
        max_skew=stored.get("max_skew", 1),
        pods=PodSelector(selector, frozenset({namespace})),
        min_domains=stored.get("min_domains") or 1,
        ignores_affinity=stored.get("ignores_affinity", False),
        honors_taints=stored.get("honors_taints", False),
    )


def _is_stored(part: Any) -> bool:
    return isinstance(part, Mapping)


def _requirement_text(requirement: Requirement) -> str:
    no = "!" if requirement.negated else ""
    if requirement.wanted is None:
        return f"{no}{requirement.key}"
    values = sorted(requirement.wanted)
    if len(values) == 1:
        return f"{requirement.key}{no}={values[0]}"
    more = ", …" if len(values) > SHOWN else ""
    return f"{requirement.key} {'not in' if requirement.negated else 'in'} ({', '.join(values[:SHOWN])}{more})"
