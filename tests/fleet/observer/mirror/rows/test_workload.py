"""Owners of pods, as kubernetes.io/docs/concepts/workloads/controllers and its tasks show them."""

from typing import Any

import msgspec
import pytest

from fleet.observer.mirror.rows.workload import workload_row
from fleet.observer.mirror.watch_scope import WatchScope
from kube.structs.workload import DeploymentSeen, JobSeen, ReplicaSetSeen, StatefulSetSeen

NOWHERE = WatchScope()
META = {"name": "train", "namespace": "research", "uid": "uid-of-train", "creationTimestamp": "2026-11-21T08:00:00Z"}


def a_template(gpus: int = 8, **spec: Any) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    container = {"name": "main", "image": "registry.example/train:2.1", "resources": resources}
    return {"metadata": {"labels": {"app": "train"}}, "spec": {"containers": [container], **spec}}


def a_job(status: object = None, **spec: Any) -> JobSeen:
    document = {"metadata": META, "spec": {"template": a_template(), **spec}, "status": status}
    return msgspec.convert(document, JobSeen, strict=False)


def test_a_job_says_how_many_pods_it_wants_and_how_many_failed():
    row = workload_row(a_job({"active": 3, "ready": 3, "failed": 2}, parallelism=4, completions=16), NOWHERE)

    assert (row["kind"], row["desired"], row["ready"], row["failed"]) == ("Job", 4, 3, 2)
    assert (row["resources"], row["image"]) == ({"nvidia.com/gpu": 8}, "registry.example/train:2.1")
    assert row["pod_labels"] == {"app": "train"}


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"suspend": True}, {}),
        ({}, {"completionTime": "2026-11-21T09:00:00Z", "succeeded": 4}),
        ({}, {"failed": 7, "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}),
    ],
)
def test_a_job_that_is_suspended_or_over_wants_no_pod(spec, status):
    assert workload_row(a_job(status, parallelism=4, **spec), NOWHERE)["desired"] == 0


@pytest.mark.parametrize(
    ("spec", "status", "suspended"),
    [
        ({"suspend": True}, {}, 4),
        ({"suspend": True, "completions": 3}, {"succeeded": 1}, 2),
        ({"suspend": True}, {"completionTime": "2026-11-21T09:00:00Z"}, 0),
        ({}, {}, None),
    ],
)
def test_a_suspended_job_has_the_number_of_pods_that_it_starts_later(spec, status, suspended):
    assert workload_row(a_job(status, parallelism=4, **spec), NOWHERE)["suspended_pods"] == suspended


@pytest.mark.parametrize(
    ("spec", "status", "wanted"),
    [
        ({"completions": 10}, {"succeeded": 9, "active": 1}, 1),
        ({"completions": 10}, {"succeeded": 2, "active": 4}, 4),
        ({"completions": 10}, {"succeeded": 11}, 0),
        ({}, {"succeeded": 1, "active": 2}, 2),
        ({}, {"active": 2}, 4),
    ],
)
def test_of_the_last_pods_a_job_wants_no_more_than_are_still_to_succeed(spec, status, wanted):
    assert workload_row(a_job(status, parallelism=4, **spec), NOWHERE)["desired"] == wanted


def a_replica_set(replicas: int, status: dict[str, int], gpus: int = 1) -> ReplicaSetSeen:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve", "uid": "uid-of-serve", "controller": True}
    document = {
        "metadata": META | {"name": "serve-6d5f7c", "ownerReferences": [owner]},
        "spec": {"replicas": replicas, "template": a_template(gpus)},
        "status": status,
    }
    return msgspec.convert(document, ReplicaSetSeen, strict=False)


def test_a_replica_set_names_its_deployment_and_one_that_is_only_history_is_not_kept():
    row = workload_row(a_replica_set(3, {"replicas": 3, "readyReplicas": 2}), NOWHERE)

    assert (row["owner_kind"], row["owner_name"], row["owner_uid"]) == ("Deployment", "serve", "uid-of-serve")
    assert (row["desired"], row["ready"]) == (3, 2)
    assert workload_row(a_replica_set(0, {"replicas": 0}), NOWHERE) is None
    assert workload_row(a_replica_set(0, {"replicas": 1}), NOWHERE) is not None  # being scaled down


def test_what_wants_no_gpu_is_not_kept():
    assert workload_row(a_replica_set(3, {"replicas": 3}, gpus=0), NOWHERE) is None


def test_a_claim_is_a_wish_for_a_device_whether_it_is_named_or_made_from_a_template():
    """As in kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation."""
    claims = [
        {"name": "own", "resourceClaimTemplateName": "large-black-cat-claim-template"},
        {"name": "shared", "resourceClaimName": "shared-gpu"},
    ]
    document = {"metadata": META, "spec": {"replicas": 1, "template": a_template(0, resourceClaims=claims)}}

    row = workload_row(msgspec.convert(document, StatefulSetSeen, strict=False), NOWHERE)

    assert (row["kind"], row["resources"]) == ("StatefulSet", {})
    assert row["claims"] == ["large-black-cat-claim-template", "shared-gpu"]


DIGEST = "registry.connect.redhat.com/nvidia/gpu-operator@sha256:9c9e9f6ae6b9b2b2a7d2d0b3bd9e4c54c7a9bf4f"
IMAGE = "nvcr.io/nvidia/gpu-operator:v25.10.1"


def an_operator(
    app: str, namespace: str, *, image: str = IMAGE, labels: dict[str, str] | None = None
) -> DeploymentSeen:
    """As the chart makes it: gpu-operator, deployments/gpu-operator/templates/operator.yaml."""
    container = {"name": "gpu-operator", "image": image, "args": ["--leader-elect"]}
    template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}}
    document = {
        "metadata": META | {"name": app, "namespace": namespace, "labels": labels or {}},
        "spec": {"replicas": 1, "template": template},
        "status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1},
    }
    return msgspec.convert(document, DeploymentSeen, strict=False)


@pytest.mark.parametrize(
    ("app", "namespace", "kept"),
    [("gpu-operator", "elsewhere", True), ("node-feature-discovery", "gpu", True), ("web", "shop", False)],
)
def test_deployments_of_the_operator_are_kept(app, namespace, kept):
    row = workload_row(an_operator(app, namespace), WatchScope(operator_namespaces={"gpu"}))

    assert (row is not None) is kept
    assert row is None or row["image"] == IMAGE


@pytest.mark.parametrize(
    ("app", "labels", "image", "version"),
    [
        ("gpu-operator", {}, IMAGE, "v25.10.1"),
        ("gpu-operator", {"helm.sh/chart": "gpu-operator-v26.7.0"}, "mirror:5000/gpu-operator:latest", "v26.7.0"),
        ("gpu-operator", {"olm.owner": "gpu-operator-certified.v24.6.1"}, DIGEST, "v24.6.1"),
        ("gpu-operator", {"olm.owner": "gpu-operator"}, DIGEST, ""),
        ("node-feature-discovery", {}, IMAGE, ""),
    ],
)
def test_the_operators_deployment_says_its_version(app, labels, image, version):
    seen = an_operator(app, "gpu", labels=labels, image=image)

    assert workload_row(seen, WatchScope(operator_namespaces={"gpu"}))["operator_version"] == version
