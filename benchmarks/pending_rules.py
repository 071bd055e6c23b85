"""Generated rules of pods about other pods, and the pods on nodes that they concern, for the bench of waiting pods."""

import random
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from capacity.wait_reasons.neighbours import Exclusion, Neighbours, PodOnNode, count_pods
from capacity.wait_reasons.pod_rules import HostPort, PodTerm, read_port, read_terms
from capacity.wait_reasons.requirements import WaitingPod
from fleet.observer.mirror.rows.placement import exclusions_of
from kube.structs import PodSeen

NAMESPACE = "pending-bench"
HOST, ZONE, RACK, RARE = "kubernetes.io/hostname", "zone", "rack", "cores"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PORTS = (
    {"containerPort": 9400, "hostPort": 9400},
    {"containerPort": 8080, "hostPort": 8080, "protocol": "TCP"},
    {"containerPort": 8080, "hostPort": 8080, "protocol": "UDP"},
    {"containerPort": 8080, "hostPort": 8080, "hostIP": "10.0.0.1"},
)
TEAMS = ("vision", "speech")
KEPT = "cache"  # pods that stay when all others end: affinities name them
Object = dict[str, Any]


def with_rules(dice: random.Random, pod: Object) -> Object:
    """Returns a generated pod with labels, and for most with rules about other pods."""
    app = dice.choice(("train", "chat"))
    spec, affinity = dict(pod["spec"]), dict(pod["spec"].get("affinity", {}))
    if dice.random() < 0.3:
        keys = dice.sample((HOST, ZONE, RACK, RARE), dice.choice((1, 1, 2)))
        spec["topologySpreadConstraints"] = [_spread(dice, key, app) for key in keys]
    if dice.random() < 0.2:
        affinity["podAffinity"] = {REQUIRED: [_term(dice, dice.choice((KEPT, KEPT, KEPT, app)))]}
    if dice.random() < 0.2:
        affinity["podAntiAffinity"] = {REQUIRED: [_term(dice, dice.choice(("chat", app)))]}
    if affinity:
        spec["affinity"] = affinity
    ports = dice.sample(PORTS, 1) if dice.random() < 0.25 else []
    metadata = pod["metadata"] | {"namespace": NAMESPACE, "labels": {"app": app, "team": dice.choice(TEAMS)}}
    return pod | {"metadata": metadata, "spec": spec, "ports": ports}


def pods_around(dice: random.Random, nodes: Sequence[Object]) -> list[Object]:
    """Returns pods that hold no amounts on these nodes, with labels, host ports and anti-affinity."""
    found: list[Object] = []
    for node in nodes:
        name = node["metadata"]["name"]
        apps = (
            [KEPT] * (dice.random() < 0.15) + ["chat"] * dice.choice((0, 0, 1, 2)) + ["train"] * (dice.random() < 0.1)
        )
        for number, app in enumerate(apps):
            found.append(_pod_on(name, f"{app}-{number}", {"app": app, "team": dice.choice(TEAMS)}))
        if dice.random() < 0.3:
            found.append(_pod_on(name, "ports", {"app": "exporter"}, ports=dice.sample(PORTS, 1)))
        if dice.random() < 0.03:
            apart = {"podAntiAffinity": {REQUIRED: [_term(dice, dice.choice(("chat", "train")))]}}
            found.append(_pod_on(name, "loner", {"app": "loner"}, affinity=apart))
    return found


def neighbours_of(around: Iterable[Object], pods: Iterable[WaitingPod], places: dict[str, int]) -> Neighbours:
    """Returns what the mirror has of these pods, for rules of waiting pods. `places` are keys of nodes by name."""
    around = list(around)
    terms: dict[PodTerm, tuple[str, set[int]]] = {}
    ports: dict[HostPort, set[int]] = {}
    for pod in around:
        node, metadata = places[pod["spec"]["nodeName"]], pod["metadata"]
        seen = msgspec.json.decode(msgspec.json.encode(bound(pod)), type=PodSeen)
        stored = exclusions_of(seen) or {}
        for term in read_terms(stored.get("anti_affinity", ()), metadata["namespace"]):
            terms.setdefault(term, (f"{NAMESPACE}/{metadata['name']}", set()))[1].add(node)
        for port in stored.get("host_ports", ()):
            ports.setdefault(read_port(port), set()).add(node)
    on_nodes = [
        PodOnNode(places[pod["spec"]["nodeName"]], pod["metadata"]["namespace"], pod["metadata"]["labels"])
        for pod in around
    ]
    wanted = frozenset(each for pod in pods for each in pod.rules.wanted())
    exclusions = [Exclusion(term, example, frozenset(keys)) for term, (example, keys) in terms.items()]
    return Neighbours(count_pods(on_nodes, wanted), exclusions, {port: frozenset(keys) for port, keys in ports.items()})


def bound(pod: Object) -> Object:
    """Returns a pod of `pods_around` as an API server has it."""
    container = {"name": "main", "image": "none", "ports": pod.get("ports", [])}
    named = {"uid": "0", "resourceVersion": "0"} | pod["metadata"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": pod["spec"] | {"containers": [container]}}


def _pod_on(node: str, name: str, labels: dict[str, str], *, ports: Sequence[Object] = (), **spec: Any) -> Object:
    metadata = {"name": f"{name}-{node}", "namespace": NAMESPACE, "labels": labels}
    return {"metadata": metadata, "spec": {"nodeName": node, **spec}, "ports": list(ports)}


def _spread(dice: random.Random, key: str, app: str) -> Object:
    found: Object = {
        "topologyKey": key, "maxSkew": dice.choice((1, 1, 2, 4)), "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": dice.choice((app, "chat"))}},
    }  # fmt: skip
    found |= {"minDomains": dice.choice((2, 5))} if dice.random() < 0.2 else {}
    found |= {"nodeAffinityPolicy": "Ignore"} if dice.random() < 0.2 else {}
    found |= {"nodeTaintsPolicy": "Honor"} if dice.random() < 0.2 else {}
    return found | ({"matchLabelKeys": ["team"]} if dice.random() < 0.1 else {})


def _term(dice: random.Random, app: str) -> Object:
    how = [
        {"matchLabels": {"app": app}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": [app, "x"]}]},
    ]
    found: Object = {"topologyKey": dice.choice((HOST, ZONE, RACK)), "labelSelector": dice.choice(how)}
    where = dice.random()
    if where < 0.1:
        return found | {"namespaceSelector": {}}
    return found | ({"namespaces": [NAMESPACE, "elsewhere"]} if where < 0.2 else {})
