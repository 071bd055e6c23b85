"""What makes a real node's object heavy, although nobody reads it: CPU features, and the images on its disk.

Labels and their annotation as node-feature-discovery writes them (its documentation, "Feature labels"); the kubelet
names at most 50 images (KubeletConfiguration, nodeStatusMaxImages). Such a node is about 16 kB.
"""

from functools import cache
from hashlib import sha256
from typing import Any

Obj = dict[str, Any]
PREFIX = "feature.node.kubernetes.io/"
FEATURES_ANNOTATION = "nfd.node.kubernetes.io/feature-labels"
# fmt: off
CPUID = (
    "ADX", "AESNI", "AMXBF16", "AMXINT8", "AMXTILE", "AVX", "AVX2", "AVX512BF16", "AVX512BITALG", "AVX512BW",
    "AVX512CD", "AVX512DQ", "AVX512F", "AVX512FP16", "AVX512IFMA", "AVX512VBMI", "AVX512VBMI2", "AVX512VL",
    "AVX512VNNI", "AVX512VPOPCNTDQ", "AVXVNNI", "CMPXCHG8", "FLUSH_L1D", "FMA3", "FSRM", "FXSR", "FXSROPT", "GFNI",
    "HYPERVISOR", "IA32_ARCH_CAP", "IBPB", "IBRS", "LAHF", "MD_CLEAR", "MOVBE", "MOVDIR64B", "MOVDIRI", "OSXSAVE",
    "SERIALIZE", "SHA", "SPEC_CTRL_SSBD", "STIBP", "SYSCALL", "SYSEE", "VAES", "VPCLMULQDQ", "WBNOINVD", "X87",
    "XGETBV1", "XSAVE", "XSAVEC", "XSAVEOPT", "XSAVES",
)
# fmt: on
DEVICES = {
    "cpu-hardware_multithreading": "true",
    "cpu-model.family": "6",
    "cpu-model.id": "143",
    "kernel-config.NO_HZ": "true",
    "kernel-config.NO_HZ_FULL": "true",
    "memory-numa": "true",
    "network-sriov.capable": "true",
    "pci-15b3.present": "true",
    "pci-15b3.sriov.capable": "true",
    "pci-1a03.present": "true",
    "rdma.available": "true",
    "rdma.capable": "true",
    "storage-nonrotationaldisk": "true",
}
REPOSITORIES = (
    "docker.io/vllm/vllm-openai",
    "ghcr.io/example-platform/training/launcher",
    "ghcr.io/example-platform/inference/router",
    "nvcr.io/nvidia/pytorch",
    "nvcr.io/nvidia/tritonserver",
    "quay.io/prometheus/node-exporter",
    "registry.k8s.io/kube-proxy",
    "registry.k8s.io/sig-storage/csi-node-driver-registrar",
)
IMAGES = 36


def as_in_life(node: Obj) -> Obj:
    """The node with everything that a controller or a kubelet would have added in months."""
    metadata, status = node["metadata"], node["status"]
    features = ",".join(sorted(label.removeprefix(PREFIX) for label in _labels()))
    annotations = {**metadata["annotations"], FEATURES_ANNOTATION: features}
    metadata = {**metadata, "labels": {**_labels(), **metadata["labels"]}, "annotations": annotations}
    return {**node, "metadata": metadata, "status": {**status, "images": [*status["images"], *_images()]}}


@cache
def _labels() -> dict[str, str]:
    flags = {f"{PREFIX}cpu-cpuid.{flag}": "true" for flag in CPUID}
    return flags | {PREFIX + key: value for key, value in DEVICES.items()}


@cache
def _images() -> list[Obj]:
    """The same on every node, and in memory only once."""
    return [_image(REPOSITORIES[number % len(REPOSITORIES)], number) for number in range(IMAGES)]


def _image(repository: str, number: int) -> Obj:
    digest = sha256(f"{repository}{number}".encode()).hexdigest()
    names = [f"{repository}@sha256:{digest}", f"{repository}:v{1 + number // 8}.{number % 8}.{number}"]
    return {"names": names, "sizeBytes": 90_000_000 + 7_654_321 * number}
