"""Rows of owners with several templates: JobSet, LeaderWorkerSet, Ray and Kubeflow."""

from typing import Any

import msgspec
import pytest

from fleet.observer.mirror.rows.workload import grouped_row
from kube.structs import pod_groups as seen

META = {"name": "llama", "namespace": "team-a", "uid": "u", "creationTimestamp": "2026-11-21T08:00:00Z"}
PLAIN: dict[str, Any] = {"spec": {"containers": [{"name": "head", "image": "head:1"}]}}


def asking(gpus: int) -> dict[str, Any]:
    limits = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    return {"spec": {"containers": [{"name": "main", "image": "train:1", **limits}]}}


RAY = {
    "headGroupSpec": {"template": PLAIN},
    "workerGroupSpecs": [
        {"replicas": 2, "numOfHosts": 2, "template": asking(8)},
        {"minReplicas": 1, "template": asking(1)},
    ],
}
JOBS = [
    {"name": "leader", "template": {"spec": {"template": PLAIN}}},
    {"name": "worker", "replicas": 2, "template": {"spec": {"parallelism": 4, "template": asking(8)}}},
]
REPLICAS = {"Master": {"template": asking(8)}, "Worker": {"replicas": 3, "template": asking(8)}}
LAUNCHED = {"Launcher": {"replicas": 1, "template": PLAIN}, "Worker": {"replicas": 3, "template": asking(8)}}
GROUPS = {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": asking(8)}}


def read(struct: type, spec: dict[str, Any], status: dict[str, Any] | None = None, **meta: Any):
    whole = {"metadata": META | meta, "spec": spec} | ({"status": status} if status else {})
    return grouped_row(msgspec.json.decode(msgspec.json.encode(whole), type=struct))


@pytest.mark.parametrize(
    ("struct", "spec", "kind", "pods"),
    [
        (seen.JobSetSeen, {"replicatedJobs": JOBS}, "JobSet", 8),
        (seen.LeaderWorkerSetSeen, GROUPS, "LeaderWorkerSet", 8),
        (seen.RayClusterSeen, RAY, "RayCluster", 5),
        (seen.RayJobSeen, {"rayClusterSpec": RAY}, "RayJob", 5),
        (seen.PyTorchJobSeen, {"pytorchReplicaSpecs": REPLICAS}, "PyTorchJob", 4),
        (seen.MPIJobSeen, {"mpiReplicaSpecs": LAUNCHED}, "MPIJob", 3),
    ],
)
def test_only_pods_that_want_gpus_are_counted(struct, spec, kind, pods):
    row = read(struct, spec)

    assert row is not None
    assert (row["kind"], row["desired"], row["resources"]) == (kind, pods, {"nvidia.com/gpu": 8})
    assert (row["image"], row["suspended_pods"]) == ("train:1", None)


@pytest.mark.parametrize(
    ("struct", "spec", "meta", "suspended"),
    [
        (seen.PyTorchJobSeen, {"pytorchReplicaSpecs": REPLICAS, "runPolicy": {"suspend": True}}, {}, 4),
        (seen.RayJobSeen, {"rayClusterSpec": RAY, "suspend": True}, {}, 4),
        (seen.RayClusterSeen, RAY | {"suspend": True},
         {"ownerReferences": [{"kind": "RayJob", "name": "llama", "uid": "j", "controller": True}]}, None),
        (seen.RayClusterSeen, RAY | {"suspend": True},
         {"ownerReferences": [{"kind": "RayService", "name": "llama", "uid": "s", "controller": True}]}, 4),
        (seen.JobSetSeen, {"replicatedJobs": JOBS, "suspend": True}, {}, None),  # its Jobs are suspended themselves
    ],
)  # fmt: skip
def test_demand_of_a_suspended_owner_counts_once(struct, spec, meta, suspended):
    row = read(struct, spec, **meta)

    assert row is not None
    assert (row["desired"], row["suspended_pods"]) == (0, suspended)


def test_a_finished_job_wants_no_pods_and_one_without_gpus_has_no_row():
    done = {"conditions": [{"type": "Succeeded", "status": "True"}]}

    finished = read(seen.PyTorchJobSeen, {"pytorchReplicaSpecs": REPLICAS}, done)

    assert finished is not None
    assert finished["desired"] == 0
    assert read(seen.JobSetSeen, {"replicatedJobs": JOBS[:1]}) is None
    assert read(seen.RayJobSeen, {"clusterSelector": {"ray.io/cluster": "shared"}}) is None
    assert read(seen.LeaderWorkerSetSeen, {}) is None


@pytest.mark.parametrize(
    ("group", "pods"),
    [
        ({}, 0), ({"minReplicas": 2}, 2), ({"replicas": 1, "minReplicas": 2}, 2),
        ({"replicas": 9, "maxReplicas": 4}, 4),
        ({"replicas": 3, "suspend": True}, 0),
    ],
)  # fmt: skip
def test_workers_of_ray_are_between_their_minimum_and_maximum(group, pods):
    row = read(seen.RayClusterSeen, {"workerGroupSpecs": [group | {"template": asking(8)}]})

    assert row is not None
    assert row["desired"] == pods


def test_a_ray_job_that_failed_to_deploy_wants_no_pods():
    """KubeRay stops asking for the status of the job, which stays RUNNING."""
    row = read(seen.RayJobSeen, {"rayClusterSpec": RAY}, {"jobStatus": "RUNNING", "jobDeploymentStatus": "Failed"})

    assert row is not None
    assert row["desired"] == 0
