"""What runs in a cluster beside GPUs, on nodes without any: DNS, metrics, and somebody's site.

CoreDNS requests what kubeadm's manifest does (cmd/kubeadm/app/phases/addons/dns/manifests.go of kubernetes), and
metrics-server what the components.yaml of its releases does.
"""

from dataclasses import dataclass
from typing import Any

Obj = dict[str, Any]
AGENT_NAMESPACE = "observability"
CPU_INSTANCE = {"node.kubernetes.io/instance-type": "cpu.64c"}


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    namespace: str
    image: str
    replicas: int
    cpu: str
    memory: str


PROGRAMS = (
    Program("coredns", "kube-system", "registry.k8s.io/coredns/coredns:v1.12.1", 2, "100m", "70Mi"),
    Program(
        "metrics-server", "kube-system", "registry.k8s.io/metrics-server/metrics-server:v0.8.0", 1, "100m", "200Mi"
    ),
    Program("site", "web", "docker.io/library/nginx:1.29", 3, "500m", "256Mi"),
)


def deployment(program: Program) -> Obj:
    labels = {"app.kubernetes.io/name": program.name}
    resources = {"requests": {"cpu": program.cpu, "memory": program.memory}}
    container: Obj = {"name": program.name, "image": program.image, "resources": resources}
    template = {"metadata": {"labels": labels}, "spec": {"nodeSelector": CPU_INSTANCE, "containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": program.name, "namespace": program.namespace, "labels": labels},
        "spec": {"replicas": program.replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def gpu_agent() -> Obj:
    """Somebody's own monitoring: it looks at all GPUs of its node and requests none, as many such agents do."""
    labels = {"app.kubernetes.io/name": "gpu-agent"}
    container: Obj = {
        "name": "agent",
        "image": "registry.example.com/observability/gpu-agent:2.4",
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    spec: Obj = {
        "nodeSelector": {"nvidia.com/gpu.present": "true"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "runtimeClassName": "nvidia",
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "gpu-agent", "namespace": AGENT_NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
            "updateStrategy": {"type": "RollingUpdate"},
        },
    }
