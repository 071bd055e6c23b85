"""The operator's operands as DaemonSets (gpu-operator assets/*), but for the driver, which NVIDIADriver makes."""

from typing import Any

from simulator.actors import apps
from simulator.actors.exporting.settings import CUSTOM_FILE
from simulator.actors.gpu_operator import keys
from simulator.fleets.images import images

Obj = dict[str, Any]
GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
VALIDATOR_IMAGE = "nvcr.io/nvidia/gpu-operator:{operator}"
CONTAINERS = {
    apps.TOOLKIT: "nvidia-container-toolkit-ctr",
    apps.DEVICE_PLUGIN: "nvidia-device-plugin",
    apps.MPS: "mps-control-daemon-ctr",
    apps.GFD: "gpu-feature-discovery",
    apps.DCGM_EXPORTER: "nvidia-dcgm-exporter",
    apps.MIG: "nvidia-mig-manager",
    apps.VALIDATOR: "nvidia-operator-validator",
}
VALIDATIONS = ("driver-validation", "toolkit-validation", "cuda-validation", "plugin-validation")
INITS = {apps.TOOLKIT: ("driver-validation",), apps.VALIDATOR: VALIDATIONS}


def operand_sets(operator_version: str, *, has_mps: bool = False, metrics: str = "") -> list[Obj]:
    """`metrics`: the ConfigMap with the exporter's counters; empty: those that its image ships."""
    wanted = [app for app in CONTAINERS if has_mps or app != apps.MPS]
    made = [_operand(app, operator_version) for app in wanted] + [nfd_worker()]
    for each in made:
        if metrics and each["metadata"]["name"] == apps.DCGM_EXPORTER:
            mount_metrics(each, metrics)
    return made


def _operand(app: str, operator_version: str) -> Obj:
    validator = VALIDATOR_IMAGE.format(operator=operator_version)
    inits = [init_container(each, validator) for each in INITS.get(app, ("toolkit-validation",))]
    container: Obj = {
        "name": CONTAINERS[app],
        "image": images(operator_version).get(app, validator),
        "securityContext": {"privileged": True},
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "volumeMounts": [{"name": "run-nvidia-validations", "mountPath": "/run/nvidia/validations"}],
    }
    if app == apps.DCGM_EXPORTER:
        container["ports"] = [{"name": "metrics", "containerPort": 9400}]
        container["env"] += [
            {"name": "DCGM_EXPORTER_LISTEN", "value": ":9400"},
            {"name": "DCGM_EXPORTER_KUBERNETES", "value": "true"},
        ]
    gate = {apps.GATES[app]: "true"} | ({"nvidia.com/mps.capable": "true"} if app == apps.MPS else {})
    return daemon_set(app, keys.NAMESPACE, [container], inits=inits, selector=gate)


def mount_metrics(exporter: Obj, config_map: str) -> None:
    """As the operator does where ClusterPolicy names one (gpu-operator controllers/object_controls.go)."""
    pod_spec = exporter["spec"]["template"]["spec"]
    pod_spec["volumes"] = [*pod_spec["volumes"], {"name": "metrics-config", "configMap": {"name": config_map}}]
    container, path = pod_spec["containers"][0], f"/etc/dcgm-exporter/{CUSTOM_FILE}"
    mount = {"name": "metrics-config", "mountPath": path, "subPath": CUSTOM_FILE, "readOnly": True}
    container["volumeMounts"] = [*container["volumeMounts"], mount]
    container["env"] = [*container["env"], {"name": "DCGM_EXPORTER_COLLECTORS", "value": path}]


def init_container(name: str, image: str) -> Obj:
    return {
        "name": name,
        "image": image,
        "command": ["sh", "-c"],
        "args": [f"nvidia-validator --component {name.partition('-')[0]}"],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "run-nvidia-validations", "mountPath": "/run/nvidia/validations"}],
    }


def nfd_worker() -> Obj:
    container = {
        "name": "worker",
        "image": "registry.k8s.io/nfd/node-feature-discovery:v0.18.2",
        "command": ["nfd-worker"],
        "args": ["-feature-gates=NodeFeatureGroupAPI=false", "-metrics=8081"],
    }
    made = daemon_set("gpu-operator-node-feature-discovery-worker", keys.NAMESPACE, [container], inits=[], selector={})
    # As its chart labels them (kubernetes-sigs/node-feature-discovery, deployment/helm, templates/worker.yaml).
    made["spec"]["template"]["metadata"]["labels"] |= {
        "app.kubernetes.io/name": "node-feature-discovery",
        "role": "worker",
    }
    return made


def daemon_set(app: str, namespace: str, containers: list[Obj], *, inits: list[Obj], selector: dict[str, str]) -> Obj:
    labels = {"app": app, "app.kubernetes.io/part-of": "gpu-operator"}
    pod_spec: Obj = {
        "nodeSelector": selector,
        "tolerations": [GPU_TOLERATION],
        "priorityClassName": "system-node-critical",
        "containers": containers,
        "volumes": [
            {
                "name": "run-nvidia-validations",
                "hostPath": {"path": "/run/nvidia/validations", "type": "DirectoryOrCreate"},
            }
        ],
    }
    if inits:
        pod_spec["initContainers"] = inits
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": app, "namespace": namespace, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app": app}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec},
        },
    }
