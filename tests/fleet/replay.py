"""Objects of real clusters, as they were posted by people, put into an API server as their own controllers would.

What several recordings have in one cluster is kept apart: namespaced objects go into a namespace of the recording's,
and a DaemonSet's pods only to its recording's nodes.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.api_server import MERGE, ApiServer
from tests.patience import PATIENCE_S

RECORDINGS = Path(__file__).parent / "recordings"
OF = "example.com/recording"
NOW = "1970-01-01T00:00:00Z"  # in a recording: when it is replayed
PLACES = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Event": "/api/v1/namespaces/{}/events",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "ClusterPolicy": "/apis/nvidia.com/v1/clusterpolicies",
    "NVIDIADriver": "/apis/nvidia.com/v1alpha1/nvidiadrivers",
}
VERSIONS = {"Node": "v1", "Pod": "v1", "Event": "v1", "DaemonSet": "apps/v1", "Deployment": "apps/v1"}
DEFINED = {"ClusterPolicy": ("clusterpolicies", "v1"), "NVIDIADriver": ("nvidiadrivers", "v1alpha1")}
READY = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]

Document = dict[str, Any]


def replay(server: ApiServer, path: Path) -> None:
    """Everything of one recording, in the order it was written down: owners before what they own."""
    with httpx.Client(base_url=server.url, timeout=PATIENCE_S) as client:  # one for all: each costs a tenth of a second
        _put(client, path)


def _put(client: httpx.Client, path: Path) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": path.stem}}
    _create(client, "/api/v1/namespaces", namespace)
    uids: dict[tuple[str, str], str] = {}
    for document in _documents(path):
        where = PLACES[document["kind"]].format(path.stem)
        if document["kind"] in ("ResourceSlice", "ResourceClaim"):
            where = where.replace("resource.k8s.io/v1", document["apiVersion"])
        for owner in document["metadata"].get("ownerReferences", ()):
            owner |= {"apiVersion": "apps/v1", "controller": True, "uid": uids[owner["kind"], owner["name"]]}
        if about := document.get("involvedObject"):
            about |= {"namespace": path.stem, "uid": uids[about["kind"], about["name"]]}
        uids[document["kind"], document["metadata"]["name"]] = _create(client, where, document)
        for consumer in document.get("status", {}).get("reservedFor", ()):
            consumer["uid"] = uids["Pod", consumer["name"]]
        if "status" in document:
            _say(client, f"{where}/{document['metadata']['name']}", document["status"])


def _create(client: httpx.Client, where: str, document: Document) -> str:
    answer = client.post(where, json=document)
    assert answer.is_success, answer.text
    return str(answer.json()["metadata"]["uid"])


def define(server: ApiServer, *kinds: str) -> None:
    for kind in kinds:
        server.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _definition(kind))


def _documents(path: Path) -> Iterator[Document]:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    for document in yaml.safe_load_all(path.read_text().replace(NOW, now)):
        document.setdefault("apiVersion", VERSIONS.get(document["kind"]))
        if document["kind"] == "Node":
            document["metadata"].setdefault("labels", {})[OF] = path.stem
            status = document.setdefault("status", {})
            status.setdefault("conditions", READY)
            status.setdefault("allocatable", status.get("capacity", {}))
        if document["kind"] == "Event":  # clusters forget theirs after an hour
            document["lastTimestamp"] = now
        if document["kind"] == "DaemonSet":
            document["spec"]["template"]["spec"].setdefault("nodeSelector", {})[OF] = path.stem
        yield document


def _say(client: httpx.Client, path: str, status: Document) -> None:
    """The status is its own resource, and where a definition has none, a part of the object."""
    answers = (client.patch(where, json={"status": status}, headers=MERGE) for where in (f"{path}/status", path))
    assert any(answer.is_success for answer in answers), path


def _definition(kind: str) -> Document:
    plural, version = DEFINED[kind]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = {"name": version, "served": True, "storage": True, "schema": schema}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.nvidia.com"},
        "spec": {"group": "nvidia.com", "names": names, "scope": "Cluster", "versions": [served]},
    }
