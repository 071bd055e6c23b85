"""NVIDIA's words in the words of another vendor, for causes that hold on GPUs of any vendor. Pure.

rocm.docs.amd.com (RCCL, amd-smi, xGMI), docs.habana.ai (HCCL, hl-smi), intel.github.io/intel-device-plugins-for-
kubernetes and oneAPI (oneCCL, Xe Link, xpu-smi), awsdocs-neuron.readthedocs-hosted.com (neuron-ls, NeuronLink),
github.com/vllm-project/vllm-ascend (HCCL, npu-smi).
Variables such as NCCL_DEBUG keep their names: RCCL reads the same.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpu.resources.names import TOOLS, Vendor
from gpu.resources.names import vendor_of as vendor_of_resource
from health.stack.causes.base import Signs

NEURON, ASCEND = "neuron", "ascend"
OTHER = "other"  # another vendor than NVIDIA, which is not known
# Words that only programs and drivers of one vendor write.
_SAYS = {
    vendor: re.compile(rf"\b(?:{words})(?=[\W_\d]|$)", re.IGNORECASE)
    for vendor, words in (
        (Vendor.AMD, "amdgpu|rocm|r?hip(?:error|ipc|blas(?:lt)?|failure)?|hsa|rccl|kfd|rocblas|miopen|amd[.]com/gpu"),
        (
            ASCEND,
            "ascend|torch_npu|c10_npu|aclnn[a-z]*|acl(?:init|rt[a-z]*)|npu-smi|davinci|dcmi",
        ),  # its library is HCCL, too
        (Vendor.HABANA, "habana(?:labs)?|gaudi|synapse(?:ai)?|hccl|synstatus|syn[a-z]+acquire|hlib|hcl"),
        (Vendor.INTEL, "level[_ -]?zero|i915|sycl|oneccl|xpu|ze_result|ur_result|gpu[.]intel[.]com"),
        (NEURON, "nrt|tdrv|neuron(?:x|core|device)?s?"),
    )
}


@dataclass(frozen=True)
class VendorWords:
    tool: str
    resource: str
    library: str
    links: str
    log: str  # the driver whose lines in the kernel log are the errors
    platform: str = "its GPU software"

    @cached_property
    def replacements(self) -> Sequence[tuple[re.Pattern[str], str]]:
        return tuple(
            (re.compile(pattern), text)
            for pattern, text in (
                (r"nvidia-smi(?: topo -m| nvlink -s|(?: --?[\w=-]+)+)?", self.tool),
                (r"nvidia\.com/(?:gpu|mig-\S+)", self.resource),
                (r"\bNCCL\b(?!_)", self.library),
                (r"\bNVLinks?\b", self.links),
                (r"\bthe Xids?\b", f"the kernel log ({self.log})"),
                (r"\bfor Xids?(?: \d+)?\b", f"for {self.log} errors in the kernel log"),
                (r"\bXids?(?: \d+)?\b", f"{self.log} errors in the kernel log"),
                (r"\bMIG slices\b", "GPU partitions"),
                (r"\bMIG slice\b", "GPU partition"),
                (r"\bCUDA\b(?!_)", self.platform),
            )
        )


WORDS: Mapping[str, VendorWords] = {
    Vendor.AMD: VendorWords(TOOLS[Vendor.AMD], "amd.com/gpu", "RCCL", "xGMI links", "amdgpu", "ROCm"),
    Vendor.HABANA: VendorWords(
        TOOLS[Vendor.HABANA], "habana.ai/gaudi", "HCCL", "links between the cards", "habanalabs", "SynapseAI"
    ),
    Vendor.INTEL: VendorWords(
        TOOLS[Vendor.INTEL], "gpu.intel.com/xe or i915", "oneCCL", "Xe links", "xe or i915", "oneAPI"
    ),
    NEURON: VendorWords(
        "neuron-ls", "aws.amazon.com/neuron", "the collective library", "NeuronLinks", "neuron", "the Neuron SDK"
    ),
    ASCEND: VendorWords("npu-smi", "huawei.com/Ascend", "HCCL", "links between the NPUs", "davinci", "CANN"),
    OTHER: VendorWords(
        "the vendor's tool", "its GPU resource", "the collective library", "links between the GPUs", "the driver's"
    ),
}
# Words of NVIDIA's that no other vendor has anything for.
ONLY_NVIDIA = re.compile(
    r"nvidia|\bMIG\b|\bIMEX\b|\blibcuda|\bDCGM\b|NVSwitch|[Ff]abric [Mm]anager|\bvGPU\b|kernelModuleType"
)


def vendor_of(signs: Signs) -> str:
    """Returns the vendor of the node's GPUs, else that whose words the lines have. Blank: unknown.

    For a pod without a node it is that of the resources that it asks for: the scheduler speaks of taints of any node.
    """
    if not signs.is_placed:
        return next(filter(None, map(_vendor_asked, signs.asks)), "")
    if signs.vendor or (signs.is_gpu_node and not signs.is_of_vendor):
        return signs.vendor or Vendor.NVIDIA
    pod = signs.pod
    lines = (*signs.all_lines(), *pod.more_words) if pod else ()
    return _vendor_in(lines) or (OTHER if signs.is_of_vendor else "")


def _vendor_asked(resource: str) -> str:
    return vendor_of_resource(resource) or _vendor_in([resource])


def _vendor_in(lines: Sequence[str]) -> str:
    return next((vendor for vendor, words in _SAYS.items() if any(map(words.search, lines))), "")


def in_words_of(vendor: str, text: str) -> str:
    words = WORDS.get(vendor)
    for pattern, other in words.replacements if words else ():
        text = pattern.sub(other, text)
    return text


def steps_for(vendor: str, steps: Sequence[str]) -> tuple[str, ...]:
    """Returns the steps in the words of a vendor, without those that only NVIDIA's GPUs have."""
    if vendor not in WORDS:
        return tuple(steps)
    said = [in_words_of(vendor, step) for step in steps]
    first, *others = [step for step in said if not ONLY_NVIDIA.search(step)] or said or [""]
    begun = first.removeprefix("Then ").removeprefix("Otherwise ").removeprefix("Or ")
    return (begun[:1].upper() + begun[1:], *others) if said else ()
