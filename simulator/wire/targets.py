"""Where a Prometheus finds the exporters: the pods, as its own discovery of Kubernetes would tell of them.

For its `http_sd_configs`: some builds have no discovery of Kubernetes.
"""

from typing import Any

from simulator.kinds import POD
from simulator.store import Store

EXPORTERS = (
    *("nvidia-dcgm-exporter", "nvidia-dcgm-exporter-dra", "dcgm-exporter"),
    *("amd-metrics-exporter", "gaudi-metrics-exporter"),
)
PREFIX = "__meta_kubernetes_"


def targets(store: Store) -> list[dict[str, Any]]:
    """One for each port of each container."""
    pods, _, _ = store.list(POD, label_selector=f"app in ({','.join(EXPORTERS)})")
    return [
        {"targets": [f"{(pod.get('status') or {})['podIP']}:{port['containerPort']}"], "labels": _meta(pod, each, port)}
        for pod in pods
        if (pod.get("status") or {}).get("podIP")
        for each in pod["spec"]["containers"]
        for port in each.get("ports") or ()
    ]


def _meta(pod: dict[str, Any], container: dict[str, Any], port: dict[str, Any]) -> dict[str, str]:
    metadata, status = pod["metadata"], pod["status"]
    told = {
        "namespace": metadata["namespace"],
        "pod_name": metadata["name"],
        "pod_uid": metadata["uid"],
        "pod_ip": status["podIP"],
        "pod_phase": status.get("phase", ""),
        "pod_label_app": metadata["labels"]["app"],
        "pod_node_name": pod["spec"].get("nodeName", ""),
        "pod_container_name": container["name"],
        "pod_container_port_name": port.get("name", ""),
        "pod_container_port_number": str(port["containerPort"]),
    }
    return {PREFIX + key: value for key, value in told.items()}
