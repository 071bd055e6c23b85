"""Generated rules of pods about other pods, and the pods on nodes that they concern, for the bench of waiting pods."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from capacity.wait_reasons.label_requirements import LabelRequirement, read_terms_of_nodes
from capacity.wait_reasons.neighbours import Neighbours, PlacedPod, PodExclusion, count_pods
from capacity.wait_reasons.pod_rules import PodPort, PodTerm, read_port, read_terms
from capacity.wait_reasons.pod_volumes import ClaimState, ClaimVolume, DriverVolumes
from capacity.wait_reasons.requirements import WaitingPod
from fleet.observer.mirror.rows.placement import exclusions_of
from fleet.observer.mirror.rows.storage import BOUND, csi_node_row, volume_row
from kube.structs import PodSeen
from kube.structs.storage import CsiNodeSeen, PersistentVolumeSeen

NAMESPACE = "pending-bench"
Object = dict[str, Any]
HOST, ZONE, RACK, RARE = "kubernetes.io/hostname", "zone", "rack", "cores"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PORTS = (
    {"containerPort": 9400, "hostPort": 9400},
    {"containerPort": 8080, "hostPort": 8080, "protocol": "TCP"},
    {"containerPort": 8080, "hostPort": 8080, "protocol": "UDP"},
    {"containerPort": 8080, "hostPort": 8080, "hostIP": "10.0.0.1"},
)
TEAMS = ("vision", "speech")
DISKS = "disks.example.com"  # a CSI driver that limits the volumes of a node
# PersistentVolumes by their claim: with a node affinity, a zone label, or a CSI driver.
REACHED_IN: dict[str, Object] = {
    "data-0": {"affinity": [{"key": ZONE, "operator": "In", "values": ["zone-0"]}]},
    "data-1": {"affinity": [{"key": ZONE, "operator": "NotIn", "values": ["zone-1"]}]},
    "data-2": {"labels": {"topology.kubernetes.io/zone": "zone-1__zone-2"}},
    "data-3": {},
    "disk-0": {"driver": DISKS, "affinity": [{"key": ZONE, "operator": "In", "values": ["zone-0"]}]},
    **{f"disk-{number}": {"driver": DISKS} for number in (1, 2, 3)},
}
ON_DISKS = [claim for claim, reached in REACHED_IN.items() if "driver" in reached]
KEPT = "cache"  # pods that stay when all others end: affinities name them


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
    if dice.random() < 0.3:
        spec["volumes"] = _volumes(dice.sample(dice.choice((list(REACHED_IN), ON_DISKS)), dice.choice((1, 1, 2))))
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
        if dice.random() < 0.5:
            disks = _volumes(dice.sample(ON_DISKS, dice.choice((1, 2))))
            found.append(_pod_on(name, "store", {"app": "store"}, volumes=disks))
    return found


def csi_nodes(dice: random.Random, nodes: Sequence[Object], around: Sequence[Object]) -> list[Object]:
    """Returns CSINodes to create, for most of these nodes. No limit is below the volumes of the pods there."""
    used = Counter(pod["spec"]["nodeName"] for pod in around for _ in pod["spec"].get("volumes", ()))
    return [
        {
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node["metadata"]["name"]},
            "spec": {"drivers": [_csi_driver(used[node["metadata"]["name"]], dice.choice((None, 0, 0, 0, 1, 2)))]},
        }
        for node in nodes if dice.random() < 0.8
    ]  # fmt: skip


def neighbours_of(
    around: Iterable[Object], pods: Iterable[WaitingPod], places: dict[str, int], csi: Iterable[Object]
) -> Neighbours:
    """Returns what the mirror has of these pods, for rules of waiting pods. `places` are keys of nodes by name."""
    around = list(around)
    terms: dict[PodTerm, tuple[str, set[int]]] = {}
    ports: dict[PodPort, set[int]] = {}
    used: dict[str, set[str]] = defaultdict(set)
    for pod in around:
        node, metadata = places[pod["spec"]["nodeName"]], pod["metadata"]
        seen = msgspec.json.decode(msgspec.json.encode(bound(pod)), type=PodSeen)
        stored = exclusions_of(seen) or {}
        for term in read_terms(stored.get("anti_affinity", ()), metadata["namespace"]):
            terms.setdefault(term, (f"{NAMESPACE}/{metadata['name']}", set()))[1].add(node)
        for claim in stored.get("volume_claims", ()):
            used[pod["spec"]["nodeName"]].add(f"pv-{claim}")
        for port in stored.get("host_ports", ()):
            ports.setdefault(read_port(port), set()).add(node)
    on_nodes = [
        PlacedPod(places[pod["spec"]["nodeName"]], pod["metadata"]["namespace"], pod["metadata"]["labels"])
        for pod in around
    ]
    wanted = frozenset(each for pod in pods for each in pod.rules.wanted())
    exclusions = [PodExclusion(term, example, frozenset(keys)) for term, (example, keys) in terms.items()]
    limits: dict[str, int] = {}
    for document in csi:
        named = document | {"metadata": document["metadata"] | {"uid": "0"}}
        if row := csi_node_row(msgspec.json.decode(msgspec.json.encode(named), type=CsiNodeSeen)):
            limits[row["name"]] = row["limits"][DISKS]
    return Neighbours(
        count_pods(on_nodes, wanted),
        exclusions,
        {port: frozenset(keys) for port, keys in ports.items()},
        volumes={DISKS: DriverVolumes(limits, {node: frozenset(names) for node, names in used.items()})},
    )


def volume_objects() -> list[tuple[Object, Object]]:
    """Returns each claim with its volume, as they are created."""
    found = []
    for name, reached in REACHED_IN.items():
        common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        terms = [{"matchExpressions": reached["affinity"]}] if "affinity" in reached else []
        affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if terms else {}
        source: Object = {"capacity": {"storage": "1Gi"}, "nfs": {"server": "none", "path": "/"}}
        if driver := reached.get("driver"):
            source = {"capacity": source["capacity"], "csi": {"driver": driver, "volumeHandle": name}}
        volume = {
            "apiVersion": "v1", "kind": "PersistentVolume", "spec": common | source | affinity,
            "metadata": {"name": f"pv-{name}", "labels": reached.get("labels", {})},
        }  # fmt: skip
        claimed = common | {"volumeName": f"pv-{name}", "resources": {"requests": {"storage": "1Gi"}}}
        claim = {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": claimed,
            "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {BOUND: "yes"}},
        }  # fmt: skip
        found.append((claim, volume))
    return found


def with_volumes(pod: WaitingPod) -> WaitingPod:
    """Returns a pod with what the mirror has of its volumes."""
    volumes: dict[str, ClaimVolume] = {}
    for claim, volume in volume_objects():
        named = volume | {"metadata": volume["metadata"] | {"uid": "0"}}
        row = volume_row(msgspec.json.decode(msgspec.json.encode(named), type=PersistentVolumeSeen)) or {}
        zones = tuple(LabelRequirement(key, "In", tuple(values)) for key, values in row.get("zones", {}).items())
        name, terms = claim["metadata"]["name"], read_terms_of_nodes(row.get("node_affinity", ()))
        driver = row.get("driver", "")
        volumes[name] = ClaimVolume(name, ClaimState.BOUND, f"pv-{name}", driver=driver, terms=terms, zones=zones)
    return replace(pod, volumes=tuple(volumes[name] for name in pod.volume_claims))


def bound(pod: Object) -> Object:
    """Returns a pod of `pods_around` as an API server has it."""
    container = {"name": "main", "image": "none", "ports": pod.get("ports", [])}
    named = {"uid": "0", "resourceVersion": "0"} | pod["metadata"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": pod["spec"] | {"containers": [container]}}


def _pod_on(node: str, name: str, labels: dict[str, str], *, ports: Sequence[Object] = (), **spec: Any) -> Object:
    metadata = {"name": f"{name}-{node}", "namespace": NAMESPACE, "labels": labels}
    return {"metadata": metadata, "spec": {"nodeName": node, **spec}, "ports": list(ports)}


def _volumes(claims: Sequence[str]) -> list[Object]:
    return [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]


def _csi_driver(used: int, free: int | None) -> Object:
    allocatable = {} if free is None else {"allocatable": {"count": used + free}}
    return {"name": DISKS, "nodeID": "any", **allocatable}


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
