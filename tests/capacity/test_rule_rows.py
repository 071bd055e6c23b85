"""The pods on nodes that rules of waiting pods name, from the mirror."""

from datetime import timedelta

import pytest

from capacity.rule_rows import LABELS_AT_MOST, read_neighbours, rules_wanted
from capacity.wait_reasons.answers import PendingExplanation
from capacity.wait_reasons.pod_rules import read_port
from capacity.waiting_pods import explanations_of, facts_of
from fleet.models import Pod
from tests import make
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
CHAT = {"matchLabels": {"app": "chat"}}
APART = {"key": "zone", "selector": CHAT}


@pytest.fixture
def cluster():
    return make.a_cluster("east")


def a_waiting_pod(cluster, **placement) -> Pod:
    pod = make.a_pending_pod(cluster)
    pod.placement |= placement
    pod.labels = {"app": "chat", "index": str(pod.pk)}
    pod.save()
    return pod


@pytest.mark.parametrize("labels", [1, LABELS_AT_MOST + 1])
def test_pods_are_counted_by_their_labels_on_each_node(cluster, labels):
    nodes = [make.a_node(cluster, f"n-{number}") for number in range(2)]
    selected = {"app": "chat"} | {f"label-{number}": "x" for number in range(1, labels)}
    for number, node in enumerate((nodes[0], nodes[0], nodes[1])):
        make.a_pod(node, f"chat-{number}", namespace="team-a", labels=selected)
    make.a_pod(nodes[1], "other", namespace="team-a", labels={"app": "train"})
    make.a_pod(nodes[1], "elsewhere", namespace="team-b", labels=selected)
    make.a_pod(nodes[1], "done", namespace="team-a", labels=selected, phase="Succeeded")
    make.a_pod(nodes[1], "leaving", namespace="team-a", labels=selected, deleted_at=NOON)
    term = {"key": "zone", "selector": {"matchLabels": selected}, "namespaces": ["team-a"]}
    waiting = facts_of(a_waiting_pod(cluster, pod_anti_affinity=[term], spread=[term | {"max_skew": 1}]))

    wanted = rules_wanted([waiting])
    found = read_neighbours(cluster.pk, wanted, below=0).counts

    by_kind = {each.also_terminating: counts for each, counts in found.items()}
    assert by_kind[True] == {nodes[0].pk: 2, nodes[1].pk: 2}
    assert waiting.rules.spread[0].pods.namespaces == frozenset({waiting.namespace})


def test_ports_and_anti_affinity_of_pods_on_nodes(cluster):
    node = make.a_node(cluster, "n-1")
    make.a_pod(node, "exporter", namespace="gpu-operator", is_tenant=False, exclusions={"host_ports": ["9400/TCP"]})
    for number in range(2):
        make.a_pod(node, f"loner-{number}", namespace="team-b", exclusions={"anti_affinity": [APART]})
    make.a_pod(node, "ended", namespace="team-c", phase="Failed", exclusions={"anti_affinity": [APART]})

    found = read_neighbours(cluster.pk, frozenset(), below=0)

    assert found.ports == {read_port("9400/TCP"): frozenset({node.pk})}
    (found_term,) = found.exclusions
    assert (found_term.term.text, found_term.nodes) == ("app=chat by zone", frozenset({node.pk}))
    assert found_term.example.startswith("team-b/loner-")


def test_a_pod_is_kept_away_by_the_anti_affinity_of_another(cluster):
    node = make.a_node(cluster, "n-1", labels={"zone": "a"}, allocatable={"nvidia.com/gpu": 8})
    pod = a_waiting_pod(cluster)
    pod.created_at = NOON
    everywhere = APART | {"namespace_selector": {}}
    make.a_pod(node, "loner", namespace="team-b", gpus=0, resources={}, exclusions={"anti_affinity": [everywhere]})

    found = explanations_of([pod], now=NOON + timedelta(seconds=5))[pod.uid]

    assert (found.key, found.decided_by) == ("pod_affinity", "team-b/loner")


def test_siblings_with_rules_are_explained_once(cluster, monkeypatch):
    make.a_node(cluster, "n-1", labels={"zone": "a"})
    pods = [a_waiting_pod(cluster, spread=[APART | {"max_skew": 1}]) for _ in range(5)]
    explained = list[str]()

    def explain(pod, *_, **__):
        explained.append(pod.name)
        return PendingExplanation("fits", "It fits")

    monkeypatch.setattr("capacity.waiting_pods.explain", explain)

    explanations_of(pods, now=NOON)

    assert len(explained) == 1
