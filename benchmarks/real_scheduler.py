"""The verdicts of a real kube-scheduler on generated cases, and on the changes that the explanations propose.

The API server must have no nodes: the bench creates its own, and deletes them. Each pod is judged alone.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import msgspec
import yaml

from benchmarks.pending_cases import (
    GPU,
    NOW,
    PODS_PER_NODE,
    a_node,
    a_pod,
    node_object,
    observed_node,
    observed_pod,
    pod_object,
)
from benchmarks.pending_fixes import Fix, UnknownChange, read_fix
from benchmarks.pending_rules import (
    KEPT,
    NAMESPACE,
    bound,
    csi_nodes,
    neighbours_of,
    pods_around,
    volume_objects,
    with_rules,
    with_volumes,
)
from capacity.wait_reasons.answers import Change, PendingExplanation
from capacity.wait_reasons.early_reasons import WaitFacts
from capacity.wait_reasons.explanation import explain
from capacity.wait_reasons.node_index import ComparedNode, NodeIndex
from capacity.wait_reasons.obstacles import PODS
from kube.client.connection import Connection, connect
from kube.client.errors import Absent, Conflict
from kube.structs import PodSeen

CSI_NODES_PATH = "/apis/storage.k8s.io/v1/csinodes"
NODES_PATH, PODS_PATH = "/api/v1/nodes", f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIMS_PATH = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
KEPT_KINDS = ("Namespace", "PersistentVolume", "PersistentVolumeClaim")
MERGE = "application/merge-patch+json"
AT_ONCE = {"gracePeriodSeconds": 0}
VERDICT_S, SETTLED_S = 30.0, 1.0
BATCH_NODES, BATCH_PODS, MORE_PODS = 60, 100, 200
WAITS = WaitFacts(has_events=True)
Object = dict[str, Any]


@dataclass
class RealAgreement:
    cases: int = 0
    scheduled: int = 0
    same_verdict: int = 0
    same_counts: int = 0
    fixes: int = 0
    wrong_fixes: int = 0
    unread: Counter[str] = field(default_factory=Counter)  # advice that names no act

    @property
    def ratio(self) -> float:
        return self.same_verdict / self.cases

    @property
    def counts_ratio(self) -> float:
        return self.same_counts / max(1, self.cases - self.scheduled)

    @property
    def wrong_fix_ratio(self) -> float:
        return self.wrong_fixes / max(1, self.fixes)


def compare_with_scheduler(kubeconfig: Path, dice: random.Random, cases: int) -> RealAgreement:
    connection = connect(str(kubeconfig), yaml.safe_load(kubeconfig.read_text())["current-context"])
    if msgspec.json.decode(connection.get(NODES_PATH))["items"]:
        sys.exit("The API server has nodes. The bench needs one without nodes.")
    found = RealAgreement()
    for first in range(0, cases, BATCH_PODS):
        with Batch.create(connection, dice) as batch:
            numbers = range(first, min(first + BATCH_PODS, cases))
            pods = [with_rules(dice, a_pod(dice, number)) for number in numbers]
            batch.compare(pods, found)
        print(f"{found.cases} cases, {found.fixes} changes", file=sys.stderr, flush=True)
    return found


@dataclass
class Batch:
    """Nodes with pods on them, and pods that are judged one after another."""

    connection: Connection
    nodes: Mapping[str, Object]  # the generated ones by name
    seen: Sequence[ComparedNode]
    around: Mapping[str, Object]  # pods on them that hold no amounts, by name
    csi: Sequence[Object]  # CSINodes

    @classmethod
    @contextmanager
    def create(cls, connection: Connection, dice: random.Random) -> Iterator[Self]:
        nodes = {node["metadata"]["name"]: node for node in (a_node(dice, place) for place in range(BATCH_NODES))}
        around = {pod["metadata"]["name"]: pod for pod in pods_around(dice, list(nodes.values()))}
        csi = csi_nodes(dice, list(nodes.values()), list(around.values()))
        _limit_pods(nodes, around.values())
        _create(connection, "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for claim, volume in volume_objects():  # kept: the API server protects them from deletion
            _create(connection, "/api/v1/persistentvolumes", volume)
            _create(connection, CLAIMS_PATH, claim)
        try:
            for name, node in nodes.items():
                _create(connection, NODES_PATH, node_object(node))
                _create(connection, PODS_PATH, _resident(name, node["requested"]))
                # Admission taints a new node as not ready, and no controller runs that removes the taint.
                _patch_node(connection, name, {"taints": node["spec"]["taints"]})
            for document in csi:
                _create(connection, CSI_NODES_PATH, document)
            for pod in around.values():
                _create(connection, PODS_PATH, _on_node(pod))
            time.sleep(SETTLED_S)
            seen = [observed_node(connection.get(f"{NODES_PATH}/{name}"), node) for name, node in nodes.items()]
            yield cls(connection, nodes, seen, around, csi)
        finally:
            for path in (PODS_PATH, NODES_PATH, CSI_NODES_PATH):
                connection.request("DELETE", path, AT_ONCE)

    def compare(self, pods: list[Object], found: RealAgreement) -> None:
        later: list[tuple[Change, Fix]] = []
        for pod in pods:
            for change, fix in self._compare(pod_object(pod | {"metadata": pod["metadata"] | _named("case")}), found):
                if change.fits_now and not fix.is_later:
                    self._try(change, fix, found)
                elif change.fits_later:
                    later.append((change, fix))
        for name in self.nodes:
            self._delete_pod(f"resident-{name}")
        for name, pod in self.around.items():
            if pod["metadata"]["labels"]["app"] != KEPT:
                self._delete_pod(name)
        time.sleep(SETTLED_S)
        for change, fix in later:
            self._try(change, replace(fix, freed={}, raised=set(), relaxed=""), found)

    def _compare(self, pod: Object, found: RealAgreement) -> Iterator[tuple[Change, Fix]]:
        """Counts whether both agree, and yields the proposed changes."""
        ours, verdict, is_same, is_counted = self._verdict(pod)
        if not (is_same and is_counted):  # the scheduler's own picture of a deleted pod may be late
            time.sleep(SETTLED_S)
            ours, verdict, is_same, is_counted = self._verdict(pod)
        found.cases += 1
        found.scheduled += bool(verdict.spec.node_name)
        found.same_verdict += is_same
        found.same_counts += is_counted and not verdict.spec.node_name
        if not (is_same and is_counted):
            _show("differs", pod, ours.title, verdict.scheduled)
        if verdict.spec.node_name:
            return
        for change in ours.changes:
            try:
                yield change, read_fix(change.text, pod, self.nodes)
            except UnknownChange as unread:
                found.unread[str(unread)[:40]] += 1

    def _verdict(self, pod: Object) -> tuple[PendingExplanation, PodSeen, bool, bool]:
        """Returns our explanation without the scheduler's message, the judged pod, and what both agree on.

        The last two are whether both find the same verdict, and whether they count the same nodes.
        """
        answer = self._judge(pod)
        verdict = msgspec.json.decode(answer, type=PodSeen)
        pod = with_volumes(observed_pod(_without_verdict(answer)))
        places = {node.name: node.key for node in self.seen}
        index = NodeIndex(self.seen, neighbours_of(self.around.values(), [pod], places, self.csi))
        ours = explain(pod, index, WAITS, now=NOW)
        if verdict.spec.node_name:
            return ours, verdict, ours.key == "fits", True
        both = explain(with_volumes(observed_pod(answer)), index, WAITS, now=NOW)
        return ours, verdict, ours.key != "fits", both.agreement_ratio == 1.0

    def _try(self, change: Change, fix: Fix, found: RealAgreement) -> None:
        """Applies a change, and counts it as wrong where the pod still does not schedule."""
        pod = fix.pod | {"metadata": fix.pod["metadata"] | _named("fixed")}
        with self._changed_nodes(fix):
            verdict = msgspec.json.decode(self._judge(pod), type=PodSeen)
            if not verdict.spec.node_name:
                time.sleep(SETTLED_S)
                verdict = msgspec.json.decode(self._judge(pod), type=PodSeen)
        found.fixes += 1
        if not verdict.spec.node_name:
            found.wrong_fixes += 1
            _show(f"wrong: {change}", pod, "", verdict.scheduled)

    @contextmanager
    def _changed_nodes(self, fix: Fix) -> Iterator[None]:
        for name, spec in fix.nodes.items():
            _patch_node(self.connection, name, spec)
        for name in fix.raised:
            self._limit_pods(name, MORE_PODS)
        for name, gpus in fix.freed.items():
            self._set_resident(name, self.nodes[name]["requested"] | {GPU: self.nodes[name]["requested"][GPU] - gpus})
        relaxed = self._like(fix.relaxed)
        for each in relaxed:
            self._replace(each | {"spec": {"nodeName": each["spec"]["nodeName"]}})
        try:
            yield
        finally:
            for each in relaxed:
                self._replace(each)
            for name in fix.nodes:
                _patch_node(self.connection, name, self.nodes[name]["spec"])
            for name in fix.raised:
                self._limit_pods(name, self.nodes[name]["allocatable"][PODS])
            for name in fix.freed:
                self._set_resident(name, self.nodes[name]["requested"])

    def _like(self, named: str) -> list[Object]:
        """Returns the pods on nodes with the anti-affinity of this one."""
        if not named:
            return []
        affinity = self.around[named.partition("/")[2]]["spec"]["affinity"]
        return [pod for pod in self.around.values() if pod["spec"].get("affinity") == affinity]

    def _limit_pods(self, node: str, pods: int) -> None:
        status = {"status": {key: {PODS: str(pods)} for key in ("allocatable", "capacity")}}
        self.connection.request("PATCH", f"{NODES_PATH}/{node}/status", body=status, content_type=MERGE)

    def _replace(self, pod: Object) -> None:
        self._delete_pod(pod["metadata"]["name"])
        _create(self.connection, PODS_PATH, _on_node(pod))

    def _set_resident(self, name: str, amounts: Mapping[str, int]) -> None:
        self._delete_pod(f"resident-{name}")
        _create(self.connection, PODS_PATH, _resident(name, amounts))

    def _judge(self, pod: Object) -> bytes:
        """Returns the pod once the scheduler has bound it or said why not. It is deleted then."""
        _create(self.connection, PODS_PATH, pod)
        path = f"{PODS_PATH}/{pod['metadata']['name']}"
        try:
            return self._wait_for_verdict(path)
        finally:
            self._delete_pod(pod["metadata"]["name"])

    def _wait_for_verdict(self, path: str) -> bytes:
        until = time.monotonic() + VERDICT_S
        while time.monotonic() < until:
            answer = self.connection.get(path)
            seen = msgspec.json.decode(answer, type=PodSeen)
            if seen.spec.node_name or seen.scheduled is not None:
                return answer
            time.sleep(0.002)
        sys.exit(f"No scheduler has judged a pod for {VERDICT_S:g} s.")

    def _delete_pod(self, name: str) -> None:
        try:
            self.connection.request("DELETE", f"{PODS_PATH}/{name}", AT_ONCE)
        except Absent:
            return  # a resident that another step replaced


def _limit_pods(nodes: Mapping[str, Object], around: Iterable[Object]) -> None:
    """Counts the pods that the nodes will have, and sets the limit of full nodes to that number."""
    others = Counter(pod["spec"]["nodeName"] for pod in around)
    for name, node in nodes.items():
        is_full, node[PODS] = node[PODS] >= PODS_PER_NODE, 1 + others[name]
        node["allocatable"][PODS] = node[PODS] if is_full else PODS_PER_NODE


def _create(connection: Connection, path: str, body: Mapping[str, Any]) -> None:
    try:
        connection.request("POST", path, body=body)
    except Conflict:
        if body["kind"] not in KEPT_KINDS:
            raise


def _patch_node(connection: Connection, name: str, spec: Mapping[str, Any]) -> None:
    connection.request("PATCH", f"{NODES_PATH}/{name}", body={"spec": spec}, content_type=MERGE)


def _resident(node: str, amounts: Mapping[str, int]) -> Object:
    """Returns a pod that holds these amounts on a node."""
    pod = {"metadata": {"name": f"resident-{node}"}, "spec": {"nodeName": node}, "requests": dict(amounts)}
    return pod_object(pod)


def _on_node(pod: Object) -> Object:
    return bound(pod) | {"metadata": pod["metadata"]}


def _named(beginning: str) -> Object:
    return {"name": f"{beginning}-{time.monotonic_ns()}", "namespace": NAMESPACE}


def _without_verdict(answer: bytes) -> bytes:
    """Returns a pod as it was before the scheduler judged it."""
    pod = msgspec.json.decode(answer)
    pod["spec"].pop("nodeName", None)
    return msgspec.json.encode(pod | {"status": {"phase": "Pending"}})


def _show(what: str, pod: Object, title: str, scheduled: Any) -> None:
    message = scheduled.message if scheduled else ""
    spec = msgspec.json.encode(pod["spec"]).decode()
    print(f"{what}\n  ours: {title}\n  scheduler: {message}\n  {spec}", file=sys.stderr, flush=True)
