"""Why a driver does not come up, told from what its containers say. Pure.

The lines are those of NVIDIA's own scripts and programs:
- gpu-driver-container, ubuntu22.04/nvidia-driver: "Could not resolve Linux kernel version", "Could not unload NVIDIA
  driver kernel modules, driver is in use", "An instance of the NVIDIA driver is already running, aborting", "cannot
  find match for compatible vgpu driver …", `cp /drivers/gridd.conf`, "nvidia-peermem module is not loaded";
- k8s-driver-manager, cmd/driver-manager/{main,messages}.go: "failed to unload nouveau driver", "failed to uninstall
  nvidia driver components", "Cleanup could not automatically proceed on node …", "failed to unbind vfio-pci driver",
  "pod(s) still hold GPU resource claims", "driver is pre-installed on host";
- apt and dnf, where packages or repositories are not there; a precompiled driver's packages: siderolabs/talos #8402;
- nvidia-installer, as people met it in gpu-operator's issues: kernel headers #85, #526, #583 ("/lib/modules/…/build: No
  such file or directory"), nouveau #15, not signed #266, #1142, #1726, compiling #15, #210, not loadable #1390, "No
  devices were found" #641, #649, #653.
"""

from fleet.operands import DRIVER, DRIVER_INSTALLER
from fleet.stack.causes.base import Rule, Saying, words

OF_DRIVER = frozenset({DRIVER, DRIVER_INSTALLER, "vgpu-manager"})

PACKAGES_UNREACHABLE = Saying(
    "packages_unreachable",
    words("temporary failure resolving", "could not resolve host", r"^e: failed to fetch", "cannot download repomd"),
    "The node cannot reach the package repositories of {os}: kernel headers come from there.",
    "Look at the node's network and proxy; in a closed network, give the driver a mirror with repoConfig, or use "
    "precompiled drivers.",
    OF_DRIVER,
)
NO_PRECOMPILED = Saying(
    "no_precompiled",
    words(r"(unable to locate|find any) package .*linux-(objects|signatures|modules)-nvidia"),
    "There are no precompiled modules for kernel {kernel} where the driver's image looks for them.",
    "Boot a kernel that the image was built for, or let the driver be compiled on the node (usePrecompiled: false). "
    "Where NVIDIA builds nothing for {os}, the driver comes with the node's image (driver.enabled: false).",
    OF_DRIVER,
)
KERNEL_HEADERS = Saying(
    "kernel_headers",
    words(
        "could not resolve linux kernel version",
        "could not locate linux kernel version string",
        r"unable to locate package linux-(headers|image|modules)",
        r"(unable to find a match|no match for argument|no package).*kernel-(headers|devel|core|modules)",
        r"/lib/modules/\S+/build: no such file",
        "kernel headers? .*not found",
    ),
    "There are no headers for kernel {kernel} where the driver looks for them, so that it cannot be compiled.",
    "Boot a kernel whose headers are still in the repositories, point repoConfig at one that has them, or use a "
    "precompiled driver.",
    OF_DRIVER,
)
NOUVEAU = Saying(
    "nouveau",
    words("failed to unload nouveau", r"nouveau kernel driver is (currently )?in use"),
    "The nouveau driver holds the GPUs and cannot be unloaded.",
    "Blacklist nouveau on the node (options nouveau modeset=0), rebuild its initramfs and reboot it.",
    OF_DRIVER,
)
DRIVER_IN_USE = Saying(
    "driver_in_use",
    words(
        "could not unload nvidia driver kernel modules",
        r"module nvidia\w* is in use",
        "failed to uninstall nvidia driver components",
        "failed to cleanup nvidia driver",
        "cleanup could not automatically proceed on node",
        "cannot proceed until all gpu pods are drained",
        r"pod\(s\) still hold gpu resource claims",
    ),
    "The old driver is in use and cannot be unloaded: something on the node still holds a GPU.",
    "Find what does: pods that use GPUs without requesting them (a runtime class, a DaemonSet), or a program on the "
    "host. Drain the node, then: kubectl label node {node} nvidia.com/gpu-driver-upgrade-state=upgrade-required "
    "--overwrite",
    OF_DRIVER,
)
NOT_SIGNED = Saying(
    "not_signed",
    words(
        "key was rejected by service",
        "required key not available",
        "loading of unsigned module is rejected",
        "not signed by a key that is trusted",
        "kernel module load error: operation not permitted",
    ),
    "The kernel refuses the driver's module: secure boot is on, and the module is not signed by a key it trusts.",
    "Use a precompiled driver that the system's vendor signed, enrol the key (MOK), or switch secure boot off.",
    OF_DRIVER,
)
NOT_COMPILED = Saying(
    "not_compiled",
    words(
        "unable to build the nvidia kernel module",
        r"\*\*\* .*\berror \d+",
        r"\.[ch]:\d+:(\d+:)? (fatal )?error: ",
        "error: failed to (compile|build)",
    ),
    "The driver does not compile against kernel {kernel}.",
    "Look in the driver's release notes whether it knows this kernel; take a newer driver, an older kernel, or the "
    "other kernelModuleType.",
    OF_DRIVER,
)
VFIO = Saying(
    "vfio",
    words("failed to unbind vfio-pci driver", "unable to unbind vfio-pci driver"),
    "The GPUs are bound to vfio-pci, as for passing them through to virtual machines, and cannot be taken back.",
    "Stop the virtual machines that have them; nvidia.com/gpu.workload.config says what the node is meant for.",
    OF_DRIVER,
)
NO_VGPU_DRIVER = Saying(
    "no_vgpu_driver",
    words("cannot find match for compatible vgpu driver"),
    "No driver in the image fits the vGPU manager of the host.",
    "Put a guest driver of the host's branch into the driver image and its vgpuDriverCatalog.yaml.",
    OF_DRIVER,
)
VGPU_LICENCE = Saying(
    "vgpu_licence",
    words(r"/drivers/(gridd\.conf|clientconfigtoken)\S*'?: no such file"),
    "The vGPU licence configuration is missing: the driver cannot get a licence.",
    "Look at licensingConfig: its Secret or ConfigMap needs gridd.conf and, for NLS, client_configuration_token.tok.",
    OF_DRIVER,
)
RDMA = Saying(
    "rdma",
    words("nvidia-peermem module is not loaded", "failed to load nvidia-peermem", "failed to wait for mofed driver",
          "waiting for mellanox ofed"),
    "GPUDirect RDMA waits for the network driver (MOFED), which is not ready on this node.",
    "Look at the network operator's driver on the node, or at rdma.useHostMofed.",
    OF_DRIVER,
)  # fmt: skip
NO_DEVICES = Saying(
    "no_devices",
    words("no devices were found", "no nvidia gpu device is present"),
    "The driver is loaded and finds no GPU: none of them initialises.",
    "Look in the kernel's log for NVRM and Xid lines (dmesg): a GPU that fell off the bus, a missing firmware, or a "
    "kernelModuleType that the GPU does not support. A reboot tells a hung GPU from a dead one.",
    OF_DRIVER,
)
CANNOT_TALK = Saying(
    "driver_not_loaded",
    words("couldn't communicate with the nvidia driver", "driver/library version mismatch"),
    "nvidia-smi cannot talk to the driver: its module is not loaded, or of another version.",
    "Delete the driver pod of this node, so that it installs again; if that does not help, reboot the node.",
    OF_DRIVER,
    is_normal_at_first=True,  # what its startup probe answers until it is compiled and loaded
)
NOT_LOADABLE = Saying(
    "not_loadable",
    words(
        "unable to load the kernel module 'nvidia",
        r"could not insert '?nvidia",
        r"modprobe: fatal: module nvidia\S* not found",
        r"insmod: \S+ could not",
    ),
    "The driver's module does not load into kernel {kernel}.",
    "The kernel's log says why (dmesg, NVRM lines): another driver on the GPUs, a module for another kernel, or GPUs "
    "that this driver does not support.",
    OF_DRIVER,
)
TWO_DRIVERS = Saying(
    "two_drivers",
    words("an instance of the nvidia driver is already running"),
    "Another driver container runs on this node already.",
    "Two driver DaemonSets select the node, or an old container did not end: look at the driver pods on it.",
    OF_DRIVER,
)
HOST_DRIVER = Saying(
    "host_driver",
    words("driver is pre-installed on host"),
    "A driver is installed on the host: the operator leaves the node alone.",
    "Nothing, if that is meant. Else remove the host's driver and the label nvidia.com/gpu.deploy.driver.",
    OF_DRIVER,
)

# The particular before the general: an installer that fails names its last step, whatever the cause.
RULES: tuple[Rule, ...] = (
    HOST_DRIVER,
    TWO_DRIVERS,
    NOUVEAU,
    DRIVER_IN_USE,
    NOT_SIGNED,
    VFIO,
    NO_VGPU_DRIVER,
    VGPU_LICENCE,
    PACKAGES_UNREACHABLE,
    NO_PRECOMPILED,
    KERNEL_HEADERS,
    NOT_COMPILED,
    NO_DEVICES,
    RDMA,
    CANNOT_TALK,
    NOT_LOADABLE,
)
