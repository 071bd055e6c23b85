"""Exporters that are not the GPU Operator's: a chart's own on nodes that bring their driver, and other vendors'."""

from typing import Any

from simulator.actors.apps import OWN_DCGM_EXPORTER
from simulator.actors.exporting.settings import CUSTOM_FILE
from simulator.actors.exporting.vendors import AMD_PORT, GAUDI_PORT

Obj = dict[str, Any]
OWN_LABEL = "monitoring.example.com/dcgm-exporter"  # of nodes that the chart's exporter is told to run on
MONITORING = "gpu-monitoring"
AMD_EXPORTER = "amd-metrics-exporter"
GAUDI_EXPORTER = "metric-exporter-ds"  # as its vendor's manifest calls it
OWN_CONFIG_MAP = "dcgm-exporter-metrics"
TOLERATES = [{"operator": "Exists"}]


def own_dcgm_exporter() -> Obj:
    """Installed with NVIDIA's own chart years ago: an older version, the names of 1.x, and no profiling."""
    container: Obj = {
        "name": "exporter",
        "image": "nvcr.io/nvidia/k8s/dcgm-exporter:3.3.9-3.6.1-ubuntu22.04",
        "args": ["-f", f"/etc/dcgm-exporter/{CUSTOM_FILE}", "--use-old-namespace"],
        "ports": [{"name": "metrics", "containerPort": 9400}],
        "env": [
            {"name": "DCGM_EXPORTER_KUBERNETES", "value": "true"},
            {"name": "DCGM_EXPORTER_LISTEN", "value": ":9400"},
        ],
    }
    made = _daemon_set(OWN_DCGM_EXPORTER, container, {OWN_LABEL: "own"})
    made["spec"]["template"]["spec"]["volumes"] = [{"name": "metrics", "configMap": {"name": OWN_CONFIG_MAP}}]
    return made


def amd_exporter() -> Obj:
    container = {
        "name": "exporter",
        "image": "docker.io/rocm/device-metrics-exporter:v1.4.0",
        "ports": [{"name": "metrics", "containerPort": AMD_PORT}],
    }
    return _daemon_set(AMD_EXPORTER, container, {"feature.node.kubernetes.io/amd-gpu": "true"})


def gaudi_exporter() -> Obj:
    container = {
        "name": "metric-exporter",
        "image": "vault.habana.ai/gaudi-metric-exporter/metric-exporter:1.23.0-695",
        "ports": [{"name": "metrics", "containerPort": GAUDI_PORT}],
    }
    gate = {"feature.node.kubernetes.io/pci-1da3.present": "true"}
    made = _daemon_set("gaudi-metrics-exporter", container, gate)
    made["metadata"]["name"] = GAUDI_EXPORTER
    made["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] = GAUDI_EXPORTER
    return made


def _daemon_set(app: str, container: Obj, selector: dict[str, str]) -> Obj:
    labels = {"app": app, "app.kubernetes.io/name": app}
    if app == AMD_EXPORTER:
        labels["daemonset-name"] = app  # as AMD's operator has it
    pod_spec: Obj = {"nodeSelector": selector, "tolerations": TOLERATES, "containers": [container]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": app, "namespace": MONITORING, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app": app}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec},
        },
    }
