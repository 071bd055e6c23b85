"""The operands' images that each release of the GPU Operator brings (values.yaml of its tags)."""

from dataclasses import dataclass

from simulator.actors import apps


@dataclass(frozen=True, slots=True)
class Versions:
    toolkit: str
    plugin: str  # device plugin and GFD are one image
    exporter: str
    mig_manager: str


RELEASES = {
    "v26.7.0": Versions("v1.20.0", "v0.20.0", "4.6.0-4.8.3", "v0.15.0"),
    "v26.3.3": Versions("v1.19.1", "v0.19.3", "4.5.3-4.8.2", "v0.14.2"),
    "v26.3.0": Versions("v1.19.0", "v0.19.0", "4.5.1-4.8.0", "v0.14.0"),
    "v25.10.1": Versions("v1.18.1", "v0.18.1", "4.4.2-4.7.0", "v0.13.1"),
    "v25.10.0": Versions("v1.18.0", "v0.18.0", "4.4.1-4.6.0", "v0.13.0"),
    "v25.3.4": Versions("v1.17.8", "v0.17.4", "4.3.1-4.4.0", "v0.12.3"),
}
NEWEST = "v26.7.0"


def images(operator_version: str) -> dict[str, str]:
    """By the operand's `app`; of a release that is not in the table, those of the newest."""
    brings = RELEASES.get(operator_version, RELEASES[NEWEST])
    plugin = f"nvcr.io/nvidia/k8s-device-plugin:{brings.plugin}"
    return {
        apps.TOOLKIT: f"nvcr.io/nvidia/k8s/container-toolkit:{brings.toolkit}",
        apps.DEVICE_PLUGIN: plugin,
        apps.MPS: plugin,
        apps.GFD: plugin,
        apps.DCGM_EXPORTER: f"nvcr.io/nvidia/k8s/dcgm-exporter:{brings.exporter}-distroless",
        apps.MIG: f"nvcr.io/nvidia/cloud-native/k8s-mig-manager:{brings.mig_manager}",
    }
