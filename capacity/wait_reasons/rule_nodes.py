"""The nodes that rules about other pods keep from a pod. Pure.

kubernetes, pkg/scheduler/framework/plugins at 1.34: podtopologyspread/filtering.go, interpodaffinity/filtering.go,
nodeports/node_ports.go, nodevolumelimits/csi.go.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from capacity.wait_reasons.neighbours import Neighbours, PodExclusion
from capacity.wait_reasons.node_index import NodeIndex, NodeSet, union_of
from capacity.wait_reasons.pod_rules import (
    PodTerm,
    SpreadConstraint,
    WantedPods,
    pods_of_affinity,
    pods_of_spread,
    pods_of_term,
)
from capacity.wait_reasons.pod_volumes import by_driver
from capacity.wait_reasons.requirements import WaitingPod
from wording.numbers import count

REMEMBERED_AT_MOST = 256  # counts by domain; by host, each has an entry for every node with such pods
EXCLUSIONS_AT_MOST = 20  # exclusions that are listed for one pod


@dataclass(frozen=True)
class RuleNodes:
    name: str
    nodes: NodeSet  # nodes that the rule excludes
    detail: str = ""


def with_ports_in_use(pod: WaitingPod, index: NodeIndex, around: Neighbours) -> Iterator[RuleNodes]:
    for port in pod.rules.ports:
        yield RuleNodes(port.text, index.set_of_keys(around.nodes_with_port(port)))


def beyond_volume_limits(
    pod: WaitingPod, index: NodeIndex, around: Neighbours
) -> Iterator[tuple[RuleNodes, RuleNodes]]:
    """Yields by CSI driver the nodes that may never have the pod's volumes, and those without room for them now."""
    for driver, own in by_driver(pod.volumes or ()).items():
        its = (around.volumes or {}).get(driver)
        if its is None:
            continue
        full = its.full_nodes(own)
        too_low = {node for node in full if its.limits[node] < len(own)}
        has = f"The pod has {count(len(own), 'volume')} of this driver."
        example = "".join(f"For example, {node} has {its.text(node)}." for node in sorted(full - too_low)[:1])
        most = max((its.limits[node] for node in too_low), default=0)
        yield (
            RuleNodes(driver, index.set_of_names(too_low), f"{has} These nodes may have at most {most}."),
            RuleNodes(driver, index.set_of_names(full - too_low), f"{has} {example}"),
        )


def without_topology_labels(pod: WaitingPod, index: NodeIndex) -> Iterator[RuleNodes]:
    for key in dict.fromkeys(each.key for each in pod.rules.spread):
        yield RuleNodes(key, index.every & ~index.having(key))


def with_too_many_pods(
    pod: WaitingPod, index: NodeIndex, around: Neighbours, *, allowed: NodeSet, untainted: NodeSet
) -> Iterator[RuleNodes]:
    """Yields the domains that a spread constraint finds too full.

    `allowed` are the nodes of the pod's node affinity, `untainted` those whose taints it tolerates.
    """
    labelled = index.every
    for each in pod.rules.spread:
        labelled &= index.having(each.key)
    for each in pod.rules.spread:
        counted = labelled
        counted &= index.every if each.ignores_affinity else allowed
        counted &= untainted if each.honors_taints else index.every
        yield _too_full(each, pod, index, around, counted)


def _too_full(
    constraint: SpreadConstraint, pod: WaitingPod, index: NodeIndex, around: Neighbours, counted: NodeSet
) -> RuleNodes:
    key, by_value = constraint.key, index.values_of(constraint.key)
    wanted = pods_of_spread(constraint)
    pods = {} if constraint.pods.is_empty else around.counts[wanted]
    counts = _by_domain(index, key, wanted, pods, counted)
    own = constraint.pods.matches(pod.namespace, pod.labels)
    is_any_empty = bool(counted & ~union_of(by_value[value] for value in counts))
    least = 0 if is_any_empty or len(counts) < constraint.min_domains else min(counts.values())
    full = {value: number for value, number in counts.items() if number + own - least > constraint.max_skew}
    if not full:
        return RuleNodes(key, 0)
    value = max(full, key=lambda each: full[each])
    pods_there = f"{key}={value} has {full[value]} of these GPU pods, the emptiest domain {least}"
    detail = f"{pods_there}; maxSkew is {constraint.max_skew}."
    return RuleNodes(key, union_of(by_value[each] for each in full), detail)


def far_from_pods(pod: WaitingPod, index: NodeIndex, around: Neighbours) -> Iterator[RuleNodes]:
    """Yields the nodes outside of the domains of the pods that the pod must be near: those that match all terms."""
    terms = pod.rules.affinity
    if not terms:
        return
    near, labelled, is_any = index.every, index.every, False
    wanted = pods_of_affinity(terms)
    details = list[str]()
    for term in terms:
        domains = _by_domain(index, term.key, wanted, around.counts[wanted], index.every)
        is_any = is_any or bool(domains)
        near &= union_of(index.values_of(term.key)[value] for value in domains)
        labelled &= index.having(term.key)
        details.append(f"{term.key}={min(domains)}" if len(domains) == 1 else f"{len(domains)} values of {term.key}")
    is_first = not is_any and all(term.pods.matches(pod.namespace, pod.labels) for term in terms)
    name = terms[0].text if len(terms) == 1 else f"{len(terms)} terms"
    detail = f"These GPU pods are in {', '.join(details)}." if is_any else ""
    yield RuleNodes(name, index.every & ~(labelled if is_first else near), detail)


def is_far_from_unknown_pods(pod: WaitingPod, around: Neighbours) -> bool:
    """Tells whether no observed pod matches the affinity, nor the pod itself: it is about pods without GPUs."""
    terms = pod.rules.affinity
    if not terms or around.counts[pods_of_affinity(terms)]:
        return False
    return not all(term.pods.matches(pod.namespace, pod.labels) for term in terms)


def near_pods(pod: WaitingPod, index: NodeIndex, around: Neighbours) -> Iterator[RuleNodes]:
    """Yields the domains with pods from which the pod's anti-affinity keeps it apart."""
    for term in pod.rules.anti_affinity:
        wanted = pods_of_term(term)
        domains = _by_domain(index, term.key, wanted, around.counts[wanted], index.every)
        yield RuleNodes(term.text, _domain_nodes(index, term, domains))


def excluded_by_pods(pod: WaitingPod, index: NodeIndex, around: Neighbours) -> Iterator[RuleNodes]:
    """Yields the domains of pods whose own anti-affinity keeps this pod away."""
    found = sorted(around.excluding(pod.namespace, pod.labels), key=lambda each: each.example)
    for each in found[:EXCLUSIONS_AT_MOST]:
        yield RuleNodes(each.example, _domains_of(index, each), each.term.text)
    if rest := found[EXCLUSIONS_AT_MOST:]:
        yield RuleNodes(f"{len(rest)} more", union_of(_domains_of(index, each) for each in rest))


def _domain_nodes(index: NodeIndex, term: PodTerm, domains: Mapping[str, int]) -> NodeSet:
    by_value = index.values_of(term.key)
    return union_of(by_value[value] for value in domains)


def _by_domain(
    index: NodeIndex, key: str, of: WantedPods | PodExclusion, pods: Mapping[int, int], counted: NodeSet
) -> Mapping[str, int]:
    """Returns the pods by value of a label, on these nodes. Remembered. Domains without pods are left out."""
    asked = (key, of, counted)
    if asked in index.pods_by_domain:
        return index.pods_by_domain[asked]
    found = Counter[str]()
    for node_key, number in pods.items():
        place = index.place_of(node_key)
        if place is not None and counted >> place & 1 and (value := index.nodes[place].labels.get(key)) is not None:
            found[value] += number
    if len(index.pods_by_domain) < REMEMBERED_AT_MOST:
        index.pods_by_domain[asked] = found
    return found


def _domains_of(index: NodeIndex, exclusion: PodExclusion) -> NodeSet:
    domains = _by_domain(index, exclusion.term.key, exclusion, dict.fromkeys(exclusion.nodes, 1), index.every)
    return _domain_nodes(index, exclusion.term, domains)
