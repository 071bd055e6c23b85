"""Accelerators that are not NVIDIA's, with the labels that their own labellers write."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Accelerators:
    resource: str
    count: int
    instance_type: str
    labels: Mapping[str, str]


# ROCm k8s-device-plugin, docs of its node labeller; NFD's rule of AMD's GPU operator.
MI300X = Accelerators(
    resource="amd.com/gpu",
    count=8,
    instance_type="gpu.mi300x8",
    labels={
        "feature.node.kubernetes.io/amd-gpu": "true",
        "amd.com/gpu.cu-count": "304",
        "amd.com/gpu.device-id": "74a1",
        "amd.com/gpu.family": "AI",
        "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
        "amd.com/gpu.simd-count": "1216",
        "amd.com/gpu.vram": "192G",
        "beta.amd.com/gpu.device-id": "74a1",
        "beta.amd.com/gpu.device-id.74a1": "8",
    },
)
# HabanaAI's operator selects by NFD's label; the plugin offers habana.ai/gaudi. It writes no label of its own.
GAUDI = Accelerators(
    resource="habana.ai/gaudi",
    count=8,
    instance_type="accelerator.gaudi3x8",
    labels={"feature.node.kubernetes.io/pci-1da3.present": "true"},
)
