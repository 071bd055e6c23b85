"""The GPU Operator's own objects: what it is told to do, and what it runs as."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from simulator.actors.apps import DRA_CHART, GATES
from simulator.actors.exporting.counters import Choice
from simulator.actors.gpu_operator import conditions, keys
from simulator.actors.gpu_operator.gpu_clusters import READY
from simulator.actors.objects import Obj, owned_by
from simulator.actors.sharing import CONFIG_MAP, DEFAULT
from simulator.fleets.config_maps import METRICS_CONFIG_MAP
from simulator.fleets.plan import Mode, Plan

POD_HASH = "6b8f5c7d9"
STOP_DRA_PLUGIN = {"name": "NODE_LABEL_FOR_GPU_POD_EVICTION", "value": GATES[DRA_CHART]}  # for the driver manager


def cluster_policy(plan: Plan, now: datetime) -> Obj:
    driver: Obj = {"enabled": True, "useNvidiaDriverCRD": plan.mode is Mode.NVIDIA_DRIVER}
    if plan.mode is Mode.CLUSTER_POLICY:
        driver |= _driver_image(plan)
    if plan.mode is Mode.CLUSTER_POLICY or not plan.release.is_26_7:
        driver["upgradePolicy"] = _upgrade_policy(plan)
    made: Obj = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy", "labels": {"app.kubernetes.io/version": plan.release.version}},
        "spec": {
            "operator": {"defaultRuntime": "containerd", "runtimeClass": "nvidia"},
            "daemonsets": {"updateStrategy": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "1"}},
            "driver": driver,
            "devicePlugin": {"config": {"name": CONFIG_MAP, "default": DEFAULT}},
            "mig": {"strategy": "single"},
            # As the chart's values leave it: the operator makes and mounts default-mig-parted-config.
            "migManager": {"enabled": True, "config": {"name": "", "default": "all-disabled"}},
            "sandboxWorkloads": {"enabled": False},
            **(
                {"dcgmExporter": {"config": {"name": METRICS_CONFIG_MAP}}}
                if plan.counters is not Choice.SHIPPED
                else {}
            ),
        },
    }
    words = "ClusterPolicy is ready as all resources have been successfully reconciled"
    return made | {"status": conditions.ready(made, words, now) | {"namespace": keys.NAMESPACE}}


def gpu_cluster(plan: Plan, now: datetime) -> Obj:
    made: Obj = {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "GPUCluster",
        "metadata": {"name": "gpu-cluster", "labels": {"app.kubernetes.io/version": plan.release.version}},
        "spec": {"draDriver": {"computeDomains": {"enabled": True}}, "dcgmExporter": {"enabled": True}},
    }
    return made | {"status": conditions.ready(made, READY, now) | {"namespace": keys.NAMESPACE}}


def nvidia_driver(plan: Plan, called: str, selector: Mapping[str, str], now: datetime) -> Obj:
    spec: Obj = {"driverType": "gpu", **_driver_image(plan), "nodeSelector": dict(selector)}
    if plan.release.is_26_7:
        spec["upgradePolicy"] = _upgrade_policy(plan)
    made: Obj = {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "NVIDIADriver",
        "metadata": {"name": called},
        "spec": spec,
    }
    return made | {"status": conditions.ready(made, "All resources have been successfully reconciled", now)}


def _driver_image(plan: Plan) -> Obj:
    return {
        "repository": "nvcr.io/nvidia",
        "image": "driver",
        "version": plan.driver,
        "kernelModuleType": "open",
        **({"manager": {"env": [STOP_DRA_PLUGIN]}} if plan.has_claims and plan.mode is not Mode.GPU_CLUSTER else {}),
    }


def _upgrade_policy(plan: Plan) -> Obj:
    return {
        "autoUpgrade": True,
        "maxParallelUpgrades": plan.max_parallel,
        "maxUnavailable": plan.max_unavailable,
        "podDeletion": {"force": False, "timeoutSeconds": 300, "deleteEmptyDir": False},
        "drain": {"enable": False, "force": False, "timeoutSeconds": 300, "deleteEmptyDir": False},
    }


def deployment(version: str) -> Obj:
    labels = {"app": "gpu-operator", "app.kubernetes.io/name": "gpu-operator", "app.kubernetes.io/version": version}
    container: Obj = {
        "name": "gpu-operator",
        "image": f"nvcr.io/nvidia/gpu-operator:{version}",
        "command": ["gpu-operator"],
        "args": ["--leader-elect"],
        "ports": [{"name": "metrics", "containerPort": 8080}],
    }
    template = {
        "metadata": {"labels": {**labels, keys.SKIP_DRAIN: "true"}},
        "spec": {"priorityClassName": "system-node-critical", "containers": [container]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "gpu-operator", "namespace": keys.NAMESPACE, "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "gpu-operator"}}, "template": template},
    }


def replica_set(owner: Obj) -> Obj:
    hashed = {"app": "gpu-operator", "pod-template-hash": POD_HASH}
    template: Any = owner["spec"]["template"]
    labels = {**template["metadata"]["labels"], **hashed}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"gpu-operator-{POD_HASH}",
            "namespace": keys.NAMESPACE,
            "labels": labels,
            "ownerReferences": [owned_by(owner, api_version="apps/v1", kind="Deployment")],
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": hashed},
            "template": {**template, "metadata": {"labels": labels}},
        },
    }
