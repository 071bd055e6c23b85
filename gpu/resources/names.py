"""The resource names of device plugins and DRA drivers for GPUs.

NVIDIA: README of k8s-device-plugin (`nvidia.com/gpu`, `.shared` with renameByDefault, `nvidia.com/mig-<profile>`),
and the sandbox device plugin's names for virtual machines, after the board (`nvidia.com/GA102GL_A10`). Plugins built
to name resources by model (k8s-device-plugin issues/424 and 1121, volcano-sh/devices pull/68) use nvidia.com/t4 or
nvidia.com/A100. People name KubeVirt's permitted devices, most often `nvidia.com/gpu_…` (user-guide,
compute/host-devices). A board's sound device and switches are no GPUs. HAMi for Volcano offers vGPUs as
`volcano.sh/vgpu-number`; gpushare uses `aliyun.com/gpu-mem`, in units of memory. Other names nvidia.com/gpu… count
no GPUs: gpumem and gpucores of HAMi, gpu.memory of others. AMD: docs/user-guide/configuration.md of
ROCm/k8s-device-plugin (`amd.com/gpu`, under `mixed` `amd.com/cpx_nps4`; for virtual machines, pull/146,
`amd.com/gpu_vf` and `amd.com/gpu_pf`). Habana: docs.habana.ai, Intel Gaudi Device Plugin. Intel:
cmd/gpu_plugin/README.md (its `*_monitoring`, millicores, memory.max and tiles are no GPUs).
"""

import re
from enum import StrEnum
from functools import lru_cache

GPU = "nvidia.com/gpu"
AMD_GPU = "amd.com/gpu"
INTEL_GPUS = ("gpu.intel.com/i915", "gpu.intel.com/xe")
MIG = "nvidia.com/mig-"
SHARED = ".shared"
VOLCANO = "volcano.sh/vgpu-number"
GPU_MEMORY = "aliyun.com/gpu-mem"
LONGEST = 317  # characters of a qualified name: 253 of the domain, a slash, 63

AMD_PARTITION = re.compile(r"^(?:gpu\.)?amd\.com/([a-z]px_nps\d+)$")
WHOLE_PARTITION = "spx"  # one partition: the whole GPU
VIRTUAL = re.compile(r"^(?:nvidia\.com/(?:pgpu|vgpu|gpu_.+|[A-Z][A-Z0-9]+[A-Z0-9_.-].*)|amd\.com/gpu_[pv]f)$")
NO_GPU = re.compile(r"AUDIO|USB|UCSI|NVSWITCH|BRIDGE")  # parts of a board, or devices beside it
SERIES = (
    r"(?:(?:tesla|geforce|quadro|[rg]tx)[-_]?)+\d{3,4}[a-z]{0,2}|(?:tesla[-_]?)?(?:gb|gh|[abhklmptv])\d{1,4}[a-z]{0,2}"
)
MODEL = re.compile(rf"^nvidia\.com/(?:{SERIES})(?:[-_.]\d{{1,3}}gb?)?$", re.IGNORECASE)
FOR_MACHINES = "/vfio"  # suffix of a DRA driver: boards offered only to virtual machines
ODD = re.compile(r"[^A-Za-z0-9-_. ]")
DRA_DRIVERS = ("gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com", "gaudi.intel.com")


class Vendor(StrEnum):
    NVIDIA = "nvidia"
    AMD = "amd"
    HABANA = "habana"
    INTEL = "intel"


# The command that lists a node's GPUs and their health.
TOOLS = {Vendor.NVIDIA: "nvidia-smi", Vendor.AMD: "amd-smi", Vendor.HABANA: "hl-smi", Vendor.INTEL: "xpu-smi"}


class ResourceKind(StrEnum):
    WHOLE = "whole"  # one GPU for one user
    SLICE = "slice"  # cut by hardware: own memory and compute
    SHARE = "share"  # one user's part of a GPU or slice
    VIRTUAL = "virtual"  # for a virtual machine: a whole GPU or a part; the name does not tell


_EXACT = {
    GPU: Vendor.NVIDIA,
    GPU + SHARED: Vendor.NVIDIA,
    VOLCANO: Vendor.NVIDIA,
    GPU_MEMORY: Vendor.NVIDIA,
    AMD_GPU: Vendor.AMD,
    "habana.ai/gaudi": Vendor.HABANA,
    **dict.fromkeys(INTEL_GPUS, Vendor.INTEL),
    "gpu.nvidia.com": Vendor.NVIDIA,  # these four: devices of a DRA driver, by its name
    "gpu.amd.com": Vendor.AMD,
    "gpu.intel.com": Vendor.INTEL,
    "gaudi.intel.com": Vendor.HABANA,
}
_EXACT |= {driver + FOR_MACHINES: _EXACT[driver] for driver in DRA_DRIVERS}
_PREFIXES = {MIG: Vendor.NVIDIA, "gpu.nvidia.com/mig-": Vendor.NVIDIA}


@lru_cache(maxsize=4096)
def vendor_of(name: str) -> Vendor | None:
    """Returns the vendor of a GPU resource. None: not a GPU resource."""
    if len(name) > LONGEST:
        return None
    if vendor := _EXACT.get(name):
        return vendor
    if prefix := next((prefix for prefix in _PREFIXES if name.startswith(prefix)), None):
        return _PREFIXES[prefix]
    if MODEL.match(name) or is_virtual(name):
        return Vendor.AMD if name.startswith("amd.com/") else Vendor.NVIDIA
    return Vendor.AMD if AMD_PARTITION.match(name) else None


def tool_of(vendor: str) -> str:
    """Returns the command for a vendor's GPUs. Blank means NVIDIA."""
    return TOOLS[Vendor(vendor or Vendor.NVIDIA)]


@lru_cache(maxsize=4096)
def is_gpu_resource(name: str) -> bool:
    return vendor_of(name) is not None


def profile_in(name: str) -> str:
    """Returns the slice profile in a resource's name: 1g.10gb, cpx_nps4. Blank: none."""
    for prefix in (MIG, "gpu.nvidia.com/mig-"):
        if name.startswith(prefix):
            return name.removeprefix(prefix).removesuffix(SHARED)
    partition = AMD_PARTITION.match(name)
    if partition is None or partition[1].startswith(WHOLE_PARTITION):
        return ""
    return partition[1]


def product_in(name: str) -> str:
    """Returns the name as gpu-feature-discovery labels it: NVIDIA-H100-80GB-HBM3 (`sanitise`,
    internal/lm/resource.go)."""
    return "-".join(ODD.sub("", name).split())[:128]


def is_dra(name: str) -> bool:
    """Tells whether ResourceSlices offer it, rather than a device plugin."""
    return name.partition("/")[0] in DRA_DRIVERS and name not in INTEL_GPUS


def is_virtual(name: str) -> bool:
    """Tells whether it counts devices for virtual machines."""
    if VIRTUAL.match(name):
        return not (MODEL.match(name) or NO_GPU.search(name))
    return name.endswith(FOR_MACHINES) and is_dra(name)
