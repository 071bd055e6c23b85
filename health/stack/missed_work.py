"""Operands whose work a finding may miss on a node although they are ready, with the containers to read."""

from collections.abc import Mapping

from gpu.operands import (
    AMD_DRA,
    AMD_PLUGIN,
    COMPUTE_DOMAIN,
    DEVICE_PLUGIN,
    DRA_DRIVER,
    DRIVER,
    EXPORTERS,
    GAUDI_PLUGIN,
    GFD,
    INTEL_DRA,
    INTEL_PLUGIN,
)

# gpu-operator, assets/state-driver: the container that installs; the others of its pod wait for it.
MAIN_CONTAINER = {DRIVER: "nvidia-driver-ctr", COMPUTE_DOMAIN: "compute-domain-daemon"}
# Container that offers the GPUs. Blank: its pod usually has one container.
OFFERS = {
    DEVICE_PLUGIN: "",
    AMD_PLUGIN: "",
    INTEL_PLUGIN: "",
    GAUDI_PLUGIN: "",
    DRA_DRIVER: "gpus",
    AMD_DRA: "plugin",
    INTEL_DRA: "",
}
# By rule of a finding: operands that are ready although their work is missing on the node.
MISSED: Mapping[str, Mapping[str, str]] = {
    "exporter-silent": {"dcgm": "", **dict.fromkeys(EXPORTERS, "")},
    "gpus-never-offered": {DRIVER: MAIN_CONTAINER[DRIVER], GFD: ""},
    "allocatable-below-expected": {DRIVER: MAIN_CONTAINER[DRIVER], **OFFERS},
}
