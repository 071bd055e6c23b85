"""What the operands' containers write when they fail, and what the runtime says of them.

From gpu-driver-container (ubuntu22.04/nvidia-driver), k8s-driver-manager (cmd/driver-manager), gpu-operator
(cmd/nvidia-validator) and reports: gpu-operator issues 85 (headers), 730 (runtime), 265 (toolkit), k8s-device-plugin
issue 478 (NVML).
"""

from collections.abc import Sequence

from simulator.actors import apps

NO_RUNTIME = (
    "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "
    '"nvidia" is configured'
)
TOOLKIT = (
    'level=info msg="Error: error validating toolkit installation: exec: \\"nvidia-smi\\": executable file not found '
    'in $PATH"'
)
CUDA = (
    'level=info msg="Error: error validating cuda workload: gave up waiting for pod nvidia-cuda-validator to be '
    'available"'
)
NVML = (
    "Failed to initialize NVML: could not load NVML library: libnvidia-ml.so.1: cannot open shared object file: No "
    "such file or directory"
)
NVML_INIT = (
    "error starting plugins: error creating plugin manager: unable to create plugin manager: nvml init failed: "
    "ERROR_LIBRARY_NOT_FOUND"
)
PANIC = ("panic: runtime error: invalid memory address or nil pointer dereference",)
VALIDATIONS = {
    "toolkit-validation": (
        "toolkit is not ready",
        TOOLKIT,
    ),
    "cuda-validation": (
        'level=info msg="pod nvidia-cuda-validator is curently in Failed phase"',
        CUDA,
    ),
    "plugin-validation": (
        'level=info msg="GPU resources are not yet discovered by the node, retry: 30"',
        'level=info msg="Error: error validating plugin installation: GPU resources are not discovered by the node"',
    ),
}
CRASHES = {
    apps.DEVICE_PLUGIN: (
        "Starting Plugins.",
        "Loading configuration.",
        NVML,
        "If this is a GPU node, did you set the docker default runtime to `nvidia`?",
        NVML_INIT,
    ),
    apps.DCGM_EXPORTER: (
        'level=info msg="Starting dcgm-exporter"',
        'level=fatal msg="the libdcgm.so library was not found. Install Data Center GPU Manager (DCGM)."',
    ),
}
INSTALLER = (
    "========== NVIDIA Software Installer ==========",
    "Starting installation of NVIDIA driver version {version} for Linux kernel version {kernel}",
)
SHUTDOWN = (
    "Stopping NVIDIA persistence daemon...",
    "Unloading NVIDIA driver kernel modules...",
    "Unmounting NVIDIA driver rootfs...",
)
NO_HEADERS = (
    "Checking NVIDIA driver packages...",
    "Updating the package cache...",
    "Resolving Linux kernel version...",
    "Could not resolve Linux kernel version",
)
NO_LOAD = (
    "Installing NVIDIA driver kernel modules...",
    "Loading NVIDIA driver kernel modules...",
    "+ modprobe nvidia",
    "modprobe: ERROR: could not insert 'nvidia': Unknown symbol in module, or unknown parameter (see dmesg)",
)
NOUVEAU = (
    'level=info msg="Unloading nouveau driver"',
    'level=error msg="failed to unload nouveau driver: device or resource busy"',
)
IN_USE = (
    "Unloading NVIDIA driver kernel modules...",
    "Could not unload NVIDIA driver kernel modules, driver is in use",
)


def driver_words(lines: Sequence[str], *, version: str, kernel: str) -> list[str]:
    """A run of the driver container that failed: its last words are those of its own shutdown."""
    opened = [line.format(version=version, kernel=kernel) for line in INSTALLER]
    return [*opened, *SHUTDOWN, *lines, *SHUTDOWN]
