"""Conditions of a node that say something is wrong when they are True, and who says so.

Those of other names may be good when they are True: they are not judged.

kubernetes.io/docs/reference/node/node-status: the kubelet's. kubernetes/node-problem-detector, README and config/.
NVIDIA/NVSentinel, docs and health monitors: its own, of fatal events only. leptonai/gpud writes none, and is
asked on the machine itself.
"""

from collections.abc import Mapping

KUBELET, DETECTOR, NVSENTINEL = "kubelet", "node-problem-detector", "NVSentinel"
RUNS_OUT = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure"})
NETWORK = "NetworkUnavailable"

BAD_WHEN_TRUE: Mapping[str, str] = {
    **dict.fromkeys((*RUNS_OUT, NETWORK), KUBELET),
    **dict.fromkeys(
        (
            "KernelDeadlock", "ReadonlyFilesystem", "CorruptDockerOverlay2", "FrequentKubeletRestart",
            "FrequentDockerRestart", "FrequentContainerdRestart", "FrequentUnregisterNetDevice", "KubeletUnhealthy",
            "ContainerRuntimeUnhealthy", "XfsShutdown", "CperHardwareErrorFatal",
        ),
        DETECTOR,
    ),
    **dict.fromkeys(
        (
            "GpuMemWatch", "GpuNvlinkWatch", "GpuPcieWatch", "GpuPowerWatch", "GpuSmWatch", "GpuThermalWatch",
            "GpuThermalMarginWatch", "GpuInforomWatch", "GpuMcuWatch", "GpuPmuWatch", "GpuDriverWatch", "GpuAllWatch",
            "GpuDcgmConnectivityFailure", "SysLogsXIDError", "SysLogsSXIDError", "SysLogsGPUFallenOff",
            "SysLogsNICDriverError",
        ),
        NVSENTINEL,
    ),
}  # fmt: skip
# What NVSentinel says of the node, of a switch or a network card, not of a GPU.
NOT_OF_A_GPU = frozenset({"GpuDcgmConnectivityFailure", "SysLogsSXIDError", "SysLogsNICDriverError"})
OF_GPUS = frozenset(each for each, by in BAD_WHEN_TRUE.items() if by == NVSENTINEL) - NOT_OF_A_GPU
# While a driver is replaced DCGM is away, and NVSentinel says this of a node that is well (Z18).
USUAL_DURING_UPGRADE = frozenset({"GpuDcgmConnectivityFailure", "GpuDriverWatch"})
# Of these a boot that went wrong is made: the kubelet was up before its container runtime, and started again and again.
AFTER_A_BOOT = frozenset({"FrequentKubeletRestart", "FrequentContainerdRestart", "ContainerRuntimeUnhealthy"})
