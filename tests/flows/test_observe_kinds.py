"""Every kind but nodes and pods, from a real API server's list and watch to its row."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from fleet.freshness.kinds import freshness_of
from fleet.messages import announce, listeners, wake
from fleet.models import (
    Bookmark,
    Cluster,
    ClusterEvent,
    ClusterNamespace,
    CsiNode,
    DeviceClass,
    DisruptionBudget,
    DriverObject,
    LimitRange,
    Observer,
    OperatorConfig,
    PersistentVolume,
    PersistentVolumeClaim,
    PriorityClass,
    ResourceClaim,
    ResourceQuota,
    ResourceSlice,
    StorageClass,
    Workload,
)
from fleet.observer.lease import list_watch
from fleet.observer.watches import reflector
from kube import client
from tests.api_server import ApiServer, an_api_server
from tests.fleet.rights import OURS, allow, grant
from tests.flows.leases import hold_a_lease

pytestmark = [pytest.mark.observe, pytest.mark.django_db(transaction=True)]
QUEUES = {
    *(f"{kind}.kueue.x-k8s.io" for kind in ("workloads", "clusterqueues", "localqueues")),
    *(f"podgroups.{group}" for group in ("scheduling.volcano.sh", "scheduling.run.ai")),
    *("jobsets.jobset.x-k8s.io", "leaderworkersets.leaderworkerset.x-k8s.io"),
    *(f"{kind}.ray.io" for kind in ("rayclusters", "rayjobs")),
    *(f"{kind}.karpenter.sh" for kind in ("nodepools", "nodeclaims")),
    "noderesourcetopologies.topology.node.k8s.io",
    *(f"{kind}.kubeflow.org" for kind in ("pytorchjobs", "mpijobs")),
}
SPACE, OPERATOR = "research", "gpu-operator"
POD = {
    "metadata": {"labels": {"app": "train"}},
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
    },
}
ALWAYS = {"metadata": POD["metadata"], "spec": {**POD["spec"], "restartPolicy": "Always"}}
SELECTS = {"selector": {"matchLabels": {"app": "train"}}}
WISH = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 1}}
DEVICE = {"name": "gpu-0", "attributes": {"type": {"string": "gpu"}, "uuid": {"string": "GPU-1"}}}
SLICE = {"driver": "gpu.nvidia.com", "nodeName": "gpu-001", "devices": [DEVICE]}
SLICE |= {"pool": {"name": "gpu-001", "generation": 1, "resourceSliceCount": 1}}
DISKS = {"drivers": [{"name": "example.com/disks", "nodeID": "gpu-001", "allocatable": {"count": 25}}]}


def a_definition(kind: str, plural: str, version: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = {"name": version, "served": True, "storage": True, "schema": schema}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.nvidia.com"},
        "spec": {"group": "nvidia.com", "names": names, "scope": "Cluster", "versions": [served]},
    }


def an_object(kind: str, version: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **rest}


POLICY = an_object(
    "ClusterPolicy",
    "nvidia.com/v1",
    "cluster-policy",
    spec={
        "devicePlugin": {"version": "v0.18.1", "config": {"name": "time-slicing", "default": "any"}},
        "mig": {"strategy": "mixed"},
    },
    status={"state": "ready", "namespace": OPERATOR},
)


IN_ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
ZONAL = {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [IN_ZONE]}]}}}


def create_everything(api: ApiServer) -> None:
    for name in (SPACE, OPERATOR):
        api.create("/api/v1/namespaces", an_object("Namespace", "v1", name))
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api.create(definitions, a_definition("ClusterPolicy", "clusterpolicies", "v1"))
    api.create("/apis/nvidia.com/v1/clusterpolicies", POLICY)
    core, apps = f"/api/v1/namespaces/{SPACE}", f"/apis/apps/v1/namespaces/{SPACE}"
    dra, once = "/apis/resource.k8s.io/v1", {"spec": {"template": POD, "parallelism": 4}}
    always = {"spec": {"replicas": 2, "template": ALWAYS, **SELECTS}}
    config = {"data": {"any": "version: v1"}}
    created = api.create(f"/apis/batch/v1/namespaces/{SPACE}/jobs", an_object("Job", "batch/v1", "train", **once))
    about = {"kind": "Job", "namespace": SPACE, "name": "train", "uid": created["metadata"]["uid"]}
    told = {"involvedObject": about, "type": "Warning", "reason": "BackoffLimitExceeded", "message": "It failed."}
    strange = told | {"involvedObject": about | {"uid": "of-something-else"}}
    for path, document in (
        (f"{apps}/replicasets", an_object("ReplicaSet", "apps/v1", "serve", **always)),
        (f"{apps}/deployments", an_object("Deployment", "apps/v1", "serve", **always)),
        (f"{apps}/statefulsets", an_object("StatefulSet", "apps/v1", "serve", **always)),
        (
            f"/apis/policy/v1/namespaces/{SPACE}/poddisruptionbudgets",
            an_object("PodDisruptionBudget", "policy/v1", "serve", spec={"minAvailable": "50%", **SELECTS}),
        ),
        (
            f"{core}/resourcequotas",
            an_object("ResourceQuota", "v1", "gpus", spec={"hard": {"requests.nvidia.com/gpu": "8"}}),
        ),
        (
            f"{core}/limitranges",
            an_object("LimitRange", "v1", "limits", spec={"limits": [{"type": "Pod", "max": {"cpu": "4"}}]}),
        ),
        (f"{core}/persistentvolumeclaims", an_object("PersistentVolumeClaim", "v1", "data", spec={"volumeName": "pv"})),
        ("/api/v1/persistentvolumes", an_object("PersistentVolume", "v1", "pv", spec=ZONAL)),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            an_object("StorageClass", "storage.k8s.io/v1", "fast", provisioner="example.com/disks"),
        ),
        ("/apis/storage.k8s.io/v1/csinodes", an_object("CSINode", "storage.k8s.io/v1", "gpu-001", spec=DISKS)),
        (f"{core}/events", an_object("Event", "v1", "train.1", **told)),
        (f"{core}/events", an_object("Event", "v1", "train.2", **strange)),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            an_object("PriorityClass", "scheduling.k8s.io/v1", "high", value=1000),
        ),
        (f"{dra}/resourceslices", an_object("ResourceSlice", "resource.k8s.io/v1", "gpu-001", spec=SLICE)),
        (f"{dra}/deviceclasses", an_object("DeviceClass", "resource.k8s.io/v1", "gpu.nvidia.com", spec={})),
        (
            f"{dra}/namespaces/{SPACE}/resourceclaims",
            an_object("ResourceClaim", "resource.k8s.io/v1", "gpu", spec={"devices": {"requests": [WISH]}}),
        ),
        (f"/api/v1/namespaces/{OPERATOR}/configmaps", an_object("ConfigMap", "v1", "time-slicing", **config)),
        (f"/api/v1/namespaces/{OPERATOR}/configmaps", an_object("ConfigMap", "v1", "somebody-elses", **config)),
    ):
        api.create(path, document)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with an_api_server(tmp_path_factory.mktemp("api")) as server:
        create_everything(server)
        yield server


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "LONGEST_WAIT_S", 0.2)
    monkeypatch.setattr(list_watch, "LOOK_UP_S", 0.1)
    monkeypatch.setattr(wake, "wake_observer", lambda *_: None)
    monkeypatch.setattr(listeners, "notify", lambda *_: None)
    monkeypatch.setattr(announce, "send", lambda *_: None)


@pytest.fixture
def cluster(db: None, api: ApiServer) -> Cluster:
    return the_cluster_of(api)


def the_cluster_of(api: ApiServer, context: str = "") -> Cluster:
    uid = client.kube_system_uid(client.connect(api.kubeconfig, api.context))
    row = Cluster.objects.create(
        name="north", uid=uid, kubeconfig=api.kubeconfig, context=context or api.context, added_at=timezone.now()
    )
    Observer.objects.create(cluster=row, lease_until=timezone.now() - timedelta(seconds=1))
    return row


def test_every_kind_becomes_rows_and_what_is_not_installed_says_so(cluster, api):
    before = len(api.requests())
    hold_a_lease(cluster)

    kinds = set(Workload.objects.values_list("kind", "desired"))
    assert kinds == {("Job", 4), ("ReplicaSet", 2), ("Deployment", 2), ("StatefulSet", 2)}
    assert DriverObject.objects.get().operand_versions == {"device-plugin": "v0.18.1"}
    assert DisruptionBudget.objects.get().min_available == "50%"
    assert ResourceQuota.objects.get().hard == {"requests.nvidia.com/gpu": "8"}
    assert LimitRange.objects.get().limits == [{"type": "Pod", "max": {"cpu": "4"}}]
    assert PriorityClass.objects.filter(name="high").values_list("value", flat=True).get() == 1000
    assert PersistentVolumeClaim.objects.get().volume == ""  # no controller has bound it
    assert PersistentVolume.objects.get().node_affinity == [[IN_ZONE]]
    assert not StorageClass.objects.get().waits_for_pod
    assert CsiNode.objects.get().limits == {"example.com/disks": 25}
    assert ResourceSlice.objects.get().devices[0]["uuid"] == "GPU-1"
    assert ResourceClaim.objects.get().requests[0]["device_class"] == "gpu.nvidia.com"
    assert DeviceClass.objects.get().name == "gpu.nvidia.com"
    assert ClusterNamespace.objects.filter(name__in=(SPACE, OPERATOR)).count() == 2
    assert [event.about_kind for event in ClusterEvent.objects.all()] == ["Job"]
    assert list(OperatorConfig.objects.values_list("name", "purpose")) == [("time-slicing", "sharing")]
    asked = [one for one in api.requests()[before:] if one["path"].endswith("/configmaps")]
    assert {one["path"] for one in asked} == {
        f"/api/v1/namespaces/{namespace}/configmaps" for namespace in (OPERATOR, "kube-system")
    }
    assert all("metadata.name" in str(one["query"]) for one in asked)
    marks = {mark.kind: mark for mark in Bookmark.objects.all()}
    assert marks["gpuclusters.nvidia.com"].message == "The API server does not serve gpuclusters.nvidia.com."
    states = {kind: mark.state for kind, mark in marks.items()}
    absent = {kind for kind, state in states.items() if state == "absent"}
    assert absent == {"gpuclusters.nvidia.com", "nvidiadrivers.nvidia.com", *QUEUES}
    assert {state for kind, state in states.items() if kind not in absent} == {"watching"}


def test_a_kind_that_is_installed_later_is_seen_in_the_next_lease(cluster, api):
    hold_a_lease(cluster)
    api.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        a_definition("GPUCluster", "gpuclusters", "v1alpha1"),
    )
    api.create("/apis/nvidia.com/v1alpha1/gpuclusters", an_object("GPUCluster", "nvidia.com/v1alpha1", "gpu-cluster"))
    api.change("/apis/nvidia.com/v1/clusterpolicies/cluster-policy", {"spec": {"devicePlugin": {"config": None}}})

    hold_a_lease(cluster, until=DriverObject.objects.filter(kind="GPUCluster").exists)
    hold_a_lease(cluster, until=Bookmark.objects.filter(kind="configmaps:sharing", state="absent").exists)

    assert not OperatorConfig.objects.exists()  # nobody reads it any more
    assert Bookmark.objects.get(kind="configmaps:sharing").state == "absent"


def test_a_kind_that_is_forbidden_costs_only_itself_and_is_seen_once_it_is_allowed(db, tmp_path: Path):
    with an_api_server(tmp_path, "--authorization", "rbac") as server:
        grant(server, "events", "daemonsets")
        cluster = the_cluster_of(server, OURS)
        hold_a_lease(cluster)
        before = {mark.kind: mark for mark in Bookmark.objects.all()}
        allow(server)
        hold_a_lease(cluster, until=lambda: not Bookmark.objects.filter(state="forbidden").exists())

    forbidden = {kind for kind, mark in before.items() if mark.state == "forbidden"}
    assert forbidden == {"events", "daemonsets.apps"}
    assert {before[kind].state for kind in ("nodes", "pods", "deployments.apps")} == {"watching"}
    said = freshness_of(before["events"], now=timezone.now())
    assert said.rule == '- apiGroups: [""]\n  resources: [events]\n  verbs: [get, list, watch]\n'
    assert 'cannot list resource "events"' in said.sentence
    assert set(Bookmark.objects.filter(kind__in=forbidden).values_list("state", flat=True)) == {"watching"}
