"""What runs where DRA offers the GPUs: GPUCluster's operands (gpu-operator manifests/state-dra-*), or the DRA driver's
own chart beside a ClusterPolicy."""

from typing import Any

from simulator.actors import apps
from simulator.actors.gpu_operator import keys
from simulator.fleets.images import images
from simulator.fleets.operands import VALIDATOR_IMAGE, daemon_set, init_container

Obj = dict[str, Any]
DRA_IMAGE = "nvcr.io/nvidia/k8s-dra-driver-gpu:v25.12.0"
CHART_NAMESPACE = "nvidia-dra-driver-gpu"
VALIDATOR_TEMPLATE = "nvidia-dra-validator-gpu"
VALIDATOR_CLAIM = "validation-gpu"
CHART_NOTE = {"app.kubernetes.io/name": "nvidia-dra-driver-gpu", "nvidia-dra-driver-gpu-component": "kubelet-plugin"}


def cluster_sets(operator_version: str) -> list[Obj]:
    validator = VALIDATOR_IMAGE.format(operator=operator_version)
    return [_plugin(apps.DRA, keys.NAMESPACE, validator), _validator(validator), _exporter(operator_version)]


def chart_set(operator_version: str) -> Obj:
    made = _plugin(apps.DRA_CHART, CHART_NAMESPACE, VALIDATOR_IMAGE.format(operator=operator_version))
    for metadata in (made["metadata"], made["spec"]["template"]["metadata"]):
        metadata["labels"] = {"app": apps.DRA_CHART, **CHART_NOTE}
    return made


def _plugin(app: str, namespace: str, validator: str) -> Obj:
    containers = [
        {"name": called, "image": DRA_IMAGE, "securityContext": {"privileged": True}}
        for called in ("gpus", "compute-domains")
    ]
    inits = [init_container("driver-validation", validator)]
    return daemon_set(app, namespace, containers, inits=inits, selector={apps.GATES[app]: "true"})


def _validator(image: str) -> Obj:
    """Its pods say the other validator's `app`, which the upgrade controller waits for."""
    claims = {"claims": [{"name": VALIDATOR_CLAIM}]}
    inits = [{"name": "gpu-validation", "image": image, "command": ["sh", "-c", "nvidia-smi -L"], "resources": claims}]
    words = "echo all validations are successful; while true; do sleep 86400; done"
    container = {"name": apps.DRA_VALIDATOR, "image": image, "command": ["sh", "-c", words]}
    gate = {apps.GATES[apps.DRA_VALIDATOR]: "true"}
    made = daemon_set(apps.DRA_VALIDATOR, keys.NAMESPACE, [container], inits=inits, selector=gate)
    named = {"app.kubernetes.io/name": apps.DRA_VALIDATOR, "app.kubernetes.io/component": apps.DRA_VALIDATOR}
    made["metadata"]["labels"] = {**named, "app": apps.DRA_VALIDATOR}
    template = made["spec"]["template"]
    template["metadata"]["labels"] = {**named, "app": apps.VALIDATOR}
    template["spec"]["resourceClaims"] = [{"name": VALIDATOR_CLAIM, "resourceClaimTemplateName": VALIDATOR_TEMPLATE}]
    made["spec"]["selector"] = {"matchLabels": {"app.kubernetes.io/name": apps.DRA_VALIDATOR}}
    made["spec"]["updateStrategy"]["rollingUpdate"] = {"maxUnavailable": "100%"}
    return made


def _exporter(operator_version: str) -> Obj:
    container = {
        "name": apps.DCGM_EXPORTER,
        "image": images(operator_version)[apps.DCGM_EXPORTER],
        "ports": [{"name": "metrics", "containerPort": 9400}],
        "env": [
            {"name": "DCGM_EXPORTER_LISTEN", "value": ":9400"},
            {"name": "DCGM_EXPORTER_KUBERNETES", "value": "true"},
            {"name": "KUBERNETES_ENABLE_DRA", "value": "true"},
        ],
    }
    gate = {apps.GATES[apps.DCGM_EXPORTER_DRA]: "true"}
    return daemon_set(apps.DCGM_EXPORTER_DRA, keys.NAMESPACE, [container], inits=[], selector=gate)
