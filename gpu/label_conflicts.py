"""Labels of a node that contradict what its GPU and hardware discovery report. Pure.

GPU Feature Discovery writes `nvidia.com/gpu.product`. Node Feature Discovery writes
`feature.node.kubernetes.io/pci-<class>_<vendor>.present`, with the fields that `deviceLabelFields` names
(kubernetes-sigs.github.io/node-feature-discovery, features); `10de` is NVIDIA's vendor ID.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from gpu import labels as keys

NFD = "feature.node.kubernetes.io/"
NVIDIA_DEVICE = re.compile(rf"{re.escape(NFD)}pci-[\w.-]*10de[\w.-]*\.present")
PCI_DEVICE = re.compile(rf"{re.escape(NFD)}pci-[\w.-]+\.present")
PRODUCTS = (keys.GPU_PRODUCT, *keys.AMD_PRODUCT)
# Labels of hardware discovery. People may write any other label by hand.
DISCOVERED = ("nvidia.com/", "amd.com/", "beta.amd.com/", "gpu.intel.com/", NFD, "intel.feature.node.kubernetes.io/")
NAMES_GPUS = re.compile(r"gpu|accelerator|nvidia", re.IGNORECASE)
MODELS = re.compile(
    r"(?<![a-z0-9])(a10g?|a16|a2|a30|a40|a100|a800|h20|h100|h200|h800|b100|b200|b300|gh200|gb200|gb300|l4|l20|l40s?|t4|"
    r"p4|p40|p100|v100|k80|mi\d{2,3}[a-z]?)(?![a-z0-9])"
)
MOST = 10  # conflicts that one node keeps


@dataclass(frozen=True)
class LabelConflict:
    label: str
    value: str
    reported: str  # by discovery
    reporter: str


def label_conflicts(labels: Mapping[str, str], *, offers_nvidia: bool) -> list[dict[str, str]]:
    """Returns the conflicts as rows. `offers_nvidia`: the node offers NVIDIA's GPUs, so that the hardware is there."""
    found = [*_othermodels_in(labels), *(() if offers_nvidia else _no_hardware(labels))]
    return [asdict(conflict) for conflict in found[:MOST]]


def _othermodels_in(labels: Mapping[str, str]) -> Iterator[LabelConflict]:
    """Yields labels that name a GPU model other than the discovered product."""
    key = next((key for key in PRODUCTS if labels.get(key)), "")
    if not (discovered := models_in(labels.get(key, ""))):
        return
    by_hand = [label for label in labels if not label.startswith(DISCOVERED) and NAMES_GPUS.search(label)]
    for label in sorted(by_hand):
        named, value = models_in(labels[label]), labels[label]
        if named and not any(_are_alike(one, other) for one in named for other in discovered):
            yield LabelConflict(label, value, labels[key], key)


def _no_hardware(labels: Mapping[str, str]) -> Iterator[LabelConflict]:
    """Yields the label that promises NVIDIA GPUs where NFD lists PCI devices, and none of NVIDIA's."""
    devices = [key for key, value in labels.items() if value == "true" and PCI_DEVICE.fullmatch(key)]
    if labels.get(keys.GPU_PRESENT) == "true" and devices and not any(map(NVIDIA_DEVICE.fullmatch, devices)):
        yield LabelConflict(keys.GPU_PRESENT, "true", "no PCI device of NVIDIA", "node-feature-discovery")


def models_in(text: str) -> set[str]:
    """Returns the GPU models that a text names: h100, gb200."""
    return set(MODELS.findall(text.lower()))


def _are_alike(one: str, other: str) -> bool:
    """Returns whether people may mean the same model: a10 and A10G, b200 and GB200."""
    return one in other or other in one
