"""The driver DaemonSet as the operator renders it (gpu-operator manifests/state-driver/0500_daemonset.yaml)."""

import json
from hashlib import sha256
from typing import Any

from simulator.actors.gpu_operator import keys
from simulator.actors.objects import Obj, name, owned_by, spec, uid
from simulator.actors.revisions import template_hash

DRIVER_CONTAINER = "nvidia-driver-ctr"
INIT_CONTAINER = "k8s-driver-manager"
INIT_IMAGE = "nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.12.0"
GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
DIGESTED = ("repository", "image", "version", "kernelModuleType", "env", "rdma", "gds", "gdrcopy", "repoConfig")
VOLUMES = {
    "run-nvidia": "/run/nvidia",
    "var-log": "/var/log",
    "dev-log": "/dev/log",
    "host-os-release": "/etc/os-release",
    "run-mellanox-drivers": "/run/mellanox/drivers",
    "host-root": "/",
    "host-sys": "/sys",
    "firmware-search-path": "/sys/module/firmware_class/parameters/path",
    "nv-firmware": "/run/nvidia/driver/lib/firmware",
}


def driver_type(driver: Obj) -> str:
    return str(spec(driver).get("driverType", "gpu"))


def app_name(driver: Obj, os_tag: str) -> str:
    """DaemonSet name and `app` label in one."""
    return f"nvidia-{driver_type(driver)}-driver-{os_tag}-{template_hash({'uid': uid(driver)})}"


def image(driver: Obj, os_tag: str) -> str:
    given = spec(driver)
    repository, base, version = (
        given.get("repository", ""),
        given.get("image", "nvcr.io/nvidia/driver"),
        given["version"],
    )
    path = f"{repository}/{base}" if repository else base
    if version.startswith("sha256:"):
        return f"{path}@{version}"
    return f"{path}:{version}-{os_tag}"


def config_digest(driver: Obj, os_tag: str) -> str:
    """What decides whether loaded modules may stay: the fields that change what is installed."""
    chosen = {part: spec(driver).get(part) for part in DIGESTED} | {"os": os_tag}
    return sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:16]


def digest_of(pod_spec: Obj) -> str:
    for container in pod_spec["containers"]:
        for env in container.get("env") or ():
            if container["name"] == DRIVER_CONTAINER and env["name"] == keys.DIGEST_ENV:
                return str(env.get("value", ""))
    return ""


def version_of(pod_spec: Obj) -> str:
    """The driver version in the image tag: `580.95.05-ubuntu22.04`."""
    for container in pod_spec["containers"]:
        if container["name"] == DRIVER_CONTAINER:
            return str(container["image"]).rpartition(":")[2].partition("-")[0]
    return ""


def daemon_set(driver: Obj, os_tag: str, *, has_owner_label: bool) -> Obj:
    app = app_name(driver, os_tag)
    template = _template(driver, os_tag, app, has_owner_label=has_owner_label)
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": app,
            "namespace": keys.NAMESPACE,
            "labels": _labels(driver, os_tag, app),
            "annotations": {keys.APPLIED_HASH: template_hash(template)},
            "ownerReferences": [owned_by(driver, api_version="nvidia.com/v1alpha1", kind="NVIDIADriver")],
        },
        "spec": {
            "selector": {"matchLabels": {"app": app}},
            "updateStrategy": {"type": "OnDelete"},
            "template": template,
        },
    }


def _labels(driver: Obj, os_tag: str, app: str) -> dict[str, str]:
    return {
        "app": app,
        "nvidia.com/node.os-version": os_tag,
        "nvidia.com/precompiled": str(bool(spec(driver).get("usePrecompiled"))).lower(),
        keys.COMPONENT: keys.DRIVER_COMPONENT,
    }


def _template(driver: Obj, os_tag: str, app: str, *, has_owner_label: bool) -> Obj:
    given = spec(driver)
    owner = {keys.OWNER: name(driver)} if has_owner_label else given.get("nodeSelector") or {}
    return {
        "metadata": {
            "labels": {**_labels(driver, os_tag, app), **(given.get("labels") or {})},
            "annotations": {
                "kubectl.kubernetes.io/default-container": DRIVER_CONTAINER,
                **(given.get("annotations") or {}),
            },
        },
        "spec": {
            "nodeSelector": {**owner, keys.DEPLOY_DRIVER: "true"},
            "tolerations": [GPU_TOLERATION, *(given.get("tolerations") or [])],
            "affinity": _one_driver_a_node(),
            "priorityClassName": given.get("priorityClassName", "system-node-critical"),
            "serviceAccountName": f"nvidia-{driver_type(driver)}-driver-{name(driver)}-{os_tag}",
            "hostPID": True,
            "initContainers": [_init_container(given, config_digest(driver, os_tag))],
            "containers": [_driver_container(driver, os_tag)],
            "volumes": [{"name": key, "hostPath": {"path": path}} for key, path in VOLUMES.items()],
        },
    }


def _one_driver_a_node() -> Obj:
    wanted = {"key": keys.COMPONENT, "operator": "In", "values": [keys.DRIVER_COMPONENT, "nvidia-vgpu-manager"]}
    term = {"labelSelector": {"matchExpressions": [wanted]}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _init_container(given: Obj, digest: str) -> Obj:
    knobs = {
        "NVIDIA_VISIBLE_DEVICES": "void",
        "ENABLE_GPU_POD_EVICTION": "true",
        "ENABLE_AUTO_DRAIN": "true",
        "DRAIN_USE_FORCE": "false",
        "DRAIN_POD_SELECTOR_LABEL": "",
        "DRAIN_TIMEOUT_SECONDS": "0s",
        "DRAIN_DELETE_EMPTYDIR_DATA": "false",
        keys.DIGEST_ENV: digest,
    }
    return {
        "name": INIT_CONTAINER,
        "image": INIT_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["driver-manager"],
        "args": ["uninstall_driver"],
        "env": [
            _field("NODE_NAME", "spec.nodeName"),
            *({"name": key, "value": value} for key, value in knobs.items()),
            *((given.get("manager") or {}).get("env") or []),
            _field("OPERATOR_NAMESPACE", "metadata.namespace"),
        ],
        "securityContext": {"privileged": True},
        "volumeMounts": [
            {"name": "run-nvidia", "mountPath": "/run/nvidia", "mountPropagation": "Bidirectional"},
            {"name": "host-root", "mountPath": "/host", "readOnly": True, "mountPropagation": "HostToContainer"},
            {"name": "host-sys", "mountPath": "/sys"},
        ],
    }


def _driver_container(driver: Obj, os_tag: str) -> Obj:
    given = spec(driver)
    env: list[Any] = [
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},
        _field("NODE_NAME", "spec.nodeName"),
        _field("NODE_IP", "status.hostIP"),
        {"name": "KERNEL_MODULE_TYPE", "value": given.get("kernelModuleType", "auto")},
        {"name": keys.DIGEST_ENV, "value": config_digest(driver, os_tag)},
        *(given.get("env") or []),
    ]
    return {
        "name": DRIVER_CONTAINER,
        "image": image(driver, os_tag),
        "imagePullPolicy": given.get("imagePullPolicy", "IfNotPresent"),
        "command": ["nvidia-driver"],
        "args": ["init", *(given.get("args") or [])],
        "env": env,
        "securityContext": {"privileged": True, "seLinuxOptions": {"level": "s0"}},
        "volumeMounts": [
            {"name": "run-nvidia", "mountPath": "/run/nvidia", "mountPropagation": "Bidirectional"},
            {"name": "var-log", "mountPath": "/var/log"},
            {"name": "dev-log", "mountPath": "/dev/log"},
            {"name": "host-os-release", "mountPath": "/host-etc/os-release", "readOnly": True},
        ],
        "startupProbe": _startup_probe(given.get("startupProbe") or {}),
        "lifecycle": {
            "preStop": {"exec": {"command": ["/bin/sh", "-c", "rm -f /run/nvidia/validations/.driver-ctr-ready"]}}
        },
    }


def _startup_probe(given: Obj) -> Obj:
    return {
        "exec": {"command": ["sh", "-c", "nvidia-smi && touch /run/nvidia/validations/.driver-ctr-ready"]},
        "initialDelaySeconds": given.get("initialDelaySeconds", 60),
        "failureThreshold": given.get("failureThreshold", 120),
        "successThreshold": 1,
        "periodSeconds": given.get("periodSeconds", 10),
        "timeoutSeconds": given.get("timeoutSeconds", 60),
    }


def _field(env: str, path: str) -> Obj:
    return {"name": env, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
