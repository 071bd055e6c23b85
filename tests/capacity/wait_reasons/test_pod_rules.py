"""Pods kept from nodes by other pods: host ports, topology spread, affinity and anti-affinity."""

from dataclasses import replace
from typing import Any

import pytest

from capacity.wait_reasons.early_reasons import WaitFacts
from capacity.wait_reasons.explanation import explain
from capacity.wait_reasons.neighbours import Neighbours, PlacedPod, PodExclusion, count_pods
from capacity.wait_reasons.node_index import NodeIndex
from capacity.wait_reasons.obstacles import find_obstacles
from capacity.wait_reasons.pod_rules import read_port, read_rules, read_terms
from tests.capacity.wait_reasons.clusters import a_node, a_pod
from tests.make import NOON

CHAT = {"matchLabels": {"app": "chat"}}
MESSAGE = "0/3 nodes are available: 3 x."
ZONES = {"n-1": "a", "n-2": "b", "n-3": "c"}  # the zones of three nodes with 8 free GPUs


def a_world(
    pods: dict[str, list[dict[str, str]]], *, labels: Any = (), exclusions: Any = (), placement: Any, nodes: Any = ZONES
):
    """Returns a pod with rules, and an index of nodes with pods by their labels."""
    pod = a_pod(placement=placement, labels=dict(labels), message=MESSAGE)
    named = [a_node(name, labels={"zone": zone} if zone else {}) for name, zone in nodes.items()]
    keys = {node.name: node.key for node in named}
    there = [PlacedPod(keys[name], "team-a", each) for name, found in pods.items() for each in found]
    terms = [
        PodExclusion(term, f"team-b/{name}", frozenset({keys[name]}))
        for name, stored in exclusions
        for term in read_terms([stored], "team-b")
    ]
    ports = {read_port("9400/TCP"): frozenset({keys["n-1"]})}
    return pod, NodeIndex(named, Neighbours(count_pods(there, frozenset(pod.rules.wanted())), terms, ports))


def answer(*given: Any, **more: Any):
    pod, index = a_world(*given, **more)
    found = explain(pod, index, WaitFacts(has_events=True), now=NOON)
    fitting = {node.name for node in index.nodes_of(find_obstacles(pod, index).fitting)}
    return found, fitting


def chats(**numbers: int) -> dict[str, list[dict[str, str]]]:
    return {name.replace("_", "-"): [{"app": "chat"}] * number for name, number in numbers.items()}


SPREAD = {"key": "zone", "max_skew": 1, "selector": CHAT}


@pytest.mark.parametrize(
    ("spread", "pods", "fitting"),
    [
        ({}, chats(n_1=1), {"n-2", "n-3"}),
        ({}, chats(n_1=1, n_2=1, n_3=1), {"n-1", "n-2", "n-3"}),
        ({"max_skew": 2}, chats(n_1=1), {"n-1", "n-2", "n-3"}),
        ({"min_domains": 4}, chats(n_1=1, n_2=1, n_3=2), set()),  # the fourth domain is empty
        ({"selector": {}}, chats(n_1=5), {"n-1", "n-2", "n-3"}),  # an empty selector counts no pod
        ({"selector": None}, chats(n_1=5), {"n-1", "n-2", "n-3"}),
        ({"match_label_keys": ["version"]}, chats(n_1=1), {"n-1", "n-2", "n-3"}),  # of another version
    ],
)
def test_a_spread_compares_with_the_emptiest_domain(spread, pods, fitting):
    labels = {"app": "chat", "version": "2"}
    assert answer(pods, labels=labels, placement={"spread": [SPREAD | spread]})[1] == fitting


def test_nodes_that_the_affinity_excludes_do_not_count_as_domains():
    only_a = [[{"key": "zone", "operator": "In", "values": ["a"]}]]
    given = {"labels": {"app": "chat"}, "placement": {"spread": [SPREAD], "node_affinity": only_a}}
    assert answer(chats(n_1=3), **given)[1] == {"n-1"}
    given["placement"] |= {"spread": [SPREAD | {"ignores_affinity": True}]}
    assert answer(chats(n_1=3), **given)[1] == set()


def test_a_change_counts_the_nodes_that_the_spread_allows_after_it():
    """Without the label, the spread counts two more domains, which are empty."""
    placement = {"node_selector": {"zone": "b"}, "spread": [SPREAD]}
    given = {"labels": {"app": "chat"}, "placement": placement, "nodes": {"n-1": "a", "n-2": "c"}}
    found, _ = answer(chats(n_1=1), **given)
    change = next(each for each in found.changes if each.text == "Remove zone=b from the node selector.")
    assert (change.fits_now, change.fits_later) == (1, 2)


def test_a_spread_names_the_fullest_domain_and_the_change():
    nodes = {"n-1": "a", "n-2": "b"}
    found, _ = answer(
        chats(n_1=3, n_2=3), labels={"app": "chat"}, placement={"spread": [SPREAD | {"min_domains": 3}]}, nodes=nodes
    )
    assert found.title == "Spread over zone excludes 2 of 2 nodes with room"
    assert found.summary == "zone=a has 3 of these GPU pods, the emptiest domain 0; maxSkew is 1."
    change = next(each for each in found.changes if "Spread" in each.text or "spread" in each.text)
    assert change.text == "Set whenUnsatisfiable of the spread over zone to ScheduleAnyway."
    assert (change.fits_now, change.fits_later) == (2, 2)
    assert [step.title for step in found.funnel][-1] == "Are in a domain with few enough of these GPU pods"
    assert found.near_misses[0].lacks == ["room by its spread over zone"]


def test_a_node_without_the_label_of_a_spread_is_no_domain():
    found, fitting = answer({}, placement={"spread": [SPREAD]}, nodes={"n-1": "", "n-2": ""})
    assert (found.key, fitting) == ("spread", set())
    assert found.title == "No qualifying node has the label of the topology spread: zone"


@pytest.mark.parametrize(
    ("labels", "pods", "fitting"),
    [
        ({}, chats(n_2=1), {"n-2"}),
        ({"app": "chat"}, {}, {"n-1", "n-2", "n-3"}),  # the first of its kind
        ({"app": "chat"}, chats(n_3=1), {"n-3"}),
    ],
)
def test_an_affinity_needs_its_pods_in_the_domain(labels, pods, fitting):
    placement = {"pod_affinity": [{"key": "zone", "selector": CHAT}]}
    assert answer(pods, labels=labels, placement=placement)[1] == fitting


def test_the_pods_without_gpus_that_rules_count_are_named_as_not_checked():
    db = {"matchLabels": {"app": "db"}}
    placement = {"spread": [SPREAD], "pod_anti_affinity": [{"key": "zone", "selector": db}] * 2}

    found, _ = answer(chats(n_2=1), labels={"app": "chat"}, placement=placement)

    assert found.not_checked == ["pods without GPUs that match app=chat, app=db"]


def test_an_affinity_to_pods_that_are_not_observed_is_not_compared():
    """Pods without GPUs have no labels in the mirror, so the scheduler's words decide."""
    found, fitting = answer({}, placement={"pod_affinity": [{"key": "zone", "selector": CHAT}]})
    assert fitting == {"n-1", "n-2", "n-3"}
    assert found.not_checked == ["affinity to pods without GPUs (app=chat by zone)"]


def test_an_affinity_to_pods_without_gpus_is_the_reason_where_the_scheduler_says_so():
    """loft-sh/devpod-provider-kubernetes #63: the pod to be near runs on a node without GPUs."""
    message = "0/4 nodes are available: 1 node(s) didn't match pod affinity rules, 3 Insufficient nvidia.com/gpu."
    pod, index = a_world({}, placement={"pod_affinity": [{"key": "zone", "selector": CHAT}]})

    found = explain(replace(pod, message=message), index, WaitFacts(has_events=True), now=NOON)

    assert found.title == "It must run beside pods without GPUs: app=chat by zone"
    assert found.changes[0].text == "Find the pods with app=chat, and start one on a node with free GPUs."
    terms = [{"key": "zone", "selector": CHAT}, {"key": "zone", "selector": {"matchLabels": {"tier": "1"}}}]
    pod, index = a_world({}, placement={"pod_affinity": terms})
    found = explain(replace(pod, message=message), index, WaitFacts(has_events=True), now=NOON)
    assert found.title == "It must run beside pods without GPUs: 2 terms"
    assert "all 2 terms (app=chat by zone; tier=1 by zone)" in found.changes[0].text


def test_an_affinity_counts_pods_that_match_all_terms_and_names_their_domain():
    terms = [{"key": "zone", "selector": CHAT}, {"key": "zone", "selector": {"matchLabels": {"tier": "1"}}}]
    pods = {"n-1": [{"app": "chat"}], "n-2": [{"app": "chat", "tier": "1"}]}
    _, fitting = answer(pods, placement={"pod_affinity": terms})
    assert fitting == {"n-2"}
    only_b = {"node_affinity": [[{"key": "zone", "operator": "In", "values": ["b"]}]]}
    found, _ = answer(chats(n_1=1), placement={"pod_affinity": terms[:1]} | only_b, nodes={"n-1": "a", "n-2": "b"})
    assert found.title == "No qualifying node is near GPU pods of its affinity: app=chat by zone"
    assert found.summary == "These GPU pods are in zone=a."
    assert "Make the pod affinity (app=chat by zone) preferred, not required." in [each.text for each in found.changes]


@pytest.mark.parametrize(
    ("term", "fitting"),
    [
        ({}, {"n-2", "n-3"}),
        ({"namespaces": ["elsewhere"]}, {"n-1", "n-2", "n-3"}),
        ({"namespaces": ["elsewhere"], "namespace_selector": {}}, {"n-2", "n-3"}),
        ({"key": "rack"}, {"n-1", "n-2", "n-3"}),  # without the label there is no domain
    ],
)
def test_an_anti_affinity_keeps_a_pod_out_of_the_domain(term, fitting):
    placement = {"pod_anti_affinity": [{"key": "zone", "selector": CHAT} | term]}
    assert answer(chats(n_1=1), placement=placement)[1] == fitting


def test_the_anti_affinity_of_a_pod_on_a_node_is_named():
    stored = {"key": "zone", "selector": CHAT, "namespaces": ["team-a"]}
    found, fitting = answer({}, labels={"app": "chat"}, exclusions=[("n-1", stored)], placement={}, nodes={"n-1": "a"})
    assert (found.key, found.decided_by, fitting) == ("pod_affinity", "team-b/n-1", set())
    assert found.title == "The anti-affinity of team-b/n-1 excludes the only node with room"
    assert found.summary == "It excludes pods with app=chat by zone."
    text = "Make the anti-affinity of team-b/n-1 preferred, not required: it excludes this pod."
    assert [change.text for change in found.changes] == [text, "Wait until other pods end.", "Add nodes like these."]
    _, fitting = answer({}, labels={"app": "train"}, exclusions=[("n-1", stored)], placement={}, nodes={"n-1": "a"})
    assert fitting == {"n-1"}


def test_a_host_port_in_use_is_named():
    found, fitting = answer({}, placement={"host_ports": ["9400/TCP"]}, nodes={"n-1": "a"})
    assert (found.key, fitting) == ("host_port", set())
    assert found.title == "Host port 9400/TCP is in use on the only node with room"
    assert "Remove the host port 9400/TCP from the pod template." in [change.text for change in found.changes]


@pytest.mark.parametrize(
    ("one", "other", "is_conflict"),
    [
        ("80/TCP", "80/TCP", True), ("80/TCP", "80/UDP", False), ("80/TCP", "81/TCP", False),
        ("10.0.0.1:80/TCP", "80/TCP", True), ("10.0.0.1:80/TCP", "10.0.0.2:80/TCP", False),
        ("fd00::1:80/TCP", "fd00::1:80/TCP", True),
    ],
)  # fmt: skip
def test_ports_conflict_by_protocol_and_address(one, other, is_conflict):
    assert read_port(one).conflicts_with(read_port(other)) is is_conflict
    assert read_port(one).text == one


def test_rules_of_an_earlier_version_and_of_namespace_labels_are_unread():
    placement = {
        "spread": ["zone"], "pod_affinity": ["zone"], "host_ports": [80],
        "pod_anti_affinity": [{"key": "zone", "namespace_selector": {"matchLabels": {"team": "a"}}}],
    }  # fmt: skip
    rules = read_rules(placement, "team-a", {})
    assert (rules.spread, rules.affinity, rules.anti_affinity) == ((), (), ())
    assert [port.text for port in rules.ports] == ["80/TCP"]
    assert rules.unread == [
        "topology spread constraints", "affinity to other pods", "pod affinity to namespaces by their labels",
    ]  # fmt: skip


def test_namespaces_are_selected_by_their_labels_where_these_are_known():
    by_label = {
        "key": "zone",
        "selector": CHAT,
        "namespaces": ["c"],
        "namespace_selector": {"matchLabels": {"tier": "x"}},
    }
    known = {"a": {"tier": "x"}, "b": {}, "c": {}}

    (term,) = read_rules({"pod_affinity": [by_label]}, "b", {}, known).affinity

    assert term.pods.namespaces == {"a", "c"}
    assert read_rules({"pod_affinity": [by_label]}, "b", {}, known).unread == []


def test_nodes_are_counted_in_the_order_of_the_scheduler():
    placement = {
        "host_ports": ["9400/TCP"],
        "spread": [SPREAD],
        "pod_anti_affinity": [{"key": "zone", "selector": CHAT}],
    }
    pod, index = a_world(chats(n_2=2), labels={"app": "chat"}, placement=placement, nodes=ZONES | {"n-3": ""})
    assert find_obstacles(pod, index).counted_as_scheduler() == {"ports": 1, "spread": 2}
