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
- kubectl drain, as the driver manager runs it: "cannot delete Pods with local storage (use …" #367.
- OpenShift's: "broken driver toolkit detected, using entitlement-based fallback" (#970).
- the firmware: "/sys/module/firmware_class/parameters/path: Read-only file system" (#761), "Direct firmware load for
  nvidia/550.54.10/gsp_ga10x.bin failed" (#1278).
- the fabric manager on NVSwitch: "fabric manager NVIDIA GPU driver interface version … don't match with driver version"
  (gpu-driver-container #735, gpu-operator #544), "Unknown option: …/fabricmanager.cfg" (#1595), NVLink5 without
  ib_umad (#2781); the script ends where it does not start since gpu-driver-container #908.
- apt and dnf, where a mirror has dropped a version (404: gpu-operator #1244) or is not trusted.
- the sidecars nvidia-fs-ctr and nvidia-gdrcopy-ctr, whose images for other systems than Ubuntu lack the program that
  the operator calls: "exec: nvidia-gds-driver: not found" (gpu-operator #2416, #2911).
- Google's installer: "failed to verify GPU driver installation" (container-engine-accelerators #237), "ln:
  /root/home/kubernetes/bin/nvidia: cannot overwrite directory" (#132).
- nvidia-container-cli, where the driver's own container is started with the NVIDIA runtime (gpu-operator #130, #133).
- the kernel's words that the script repeats: "requires use of the NVIDIA open kernel modules", "RmInitAdapter failed",
  "Lockdown: … unsigned module loading is restricted".
"""

from gpu.operands import DRIVER, DRIVER_INSTALLER
from health.stack.causes.base import CauseRule, Saying, words

OF_DRIVER = frozenset({DRIVER, DRIVER_INSTALLER, "vgpu-manager"})

FABRIC_VERSION = Saying(
    "fabric_version",
    words(
        r"driver interface version (?P<fabric>[\d.]+) \S+( not)? match with( the)? driver version (?P<driver>[\d.]+)"
    ),
    "The fabric manager of the image is of version {fabric}, the driver of {driver}: it does not start, and GPUs on "
    "NVSwitch cannot be used.",
    "Take another build or version of the driver image, in which both are of one version. On the host: install the "
    "fabric manager of exactly the driver's version.",
    OF_DRIVER,
)
FABRIC = Saying(
    "fabric_no_start",
    words(r"unknown option: \S*fabricmanager\.cfg", r"nv-fabricmanager\S* .*failed", "nvswitch.*failed with error",
          "fabric ?manager.{0,60}(failed|not (start|running)|exited|abort|invalid value)",
          "failed to start.{0,20}fabric"),
    "The fabric manager does not start on this node: GPUs on NVSwitch cannot be used without it.",
    "Look at its lines in the driver's log. HGX B200 and newer need ib_umad and mlx5_ib on the host "
    "(linux-modules-extra); else it must be of exactly the driver's version.",
    OF_DRIVER,
)  # fmt: skip
OPEN_MODULES = Saying(
    "open_modules",
    words("requires use of the nvidia open kernel modules", "installed in this system requires.*open"),
    "The GPUs of this node run with NVIDIA's open kernel modules only, and the driver loads the proprietary ones.",
    "Set kernelModuleType: open (or auto) in the NVIDIADriver, or in the ClusterPolicy's spec.driver.",
    OF_DRIVER,
)
CLOSED_MODULES = Saying(
    "closed_modules",
    words("not supported by open nvidia", "does not include the required gpu system processor"),
    "The GPUs of this node do not run with NVIDIA's open kernel modules.",
    "Set kernelModuleType: proprietary in the NVIDIADriver, or in the ClusterPolicy's spec.driver.",
    OF_DRIVER,
)
GPU_TOO_OLD = Saying(
    "gpu_not_supported",
    words(r"supported through the nvidia [\d.x]+ legacy", r"is not supported by the nvidia [\d.]+ driver",
          "will ignore this gpu"),
    "This driver does not support the GPUs of this node.",
    "Take the last branch that does: V100, P100 and older end with R580.",
    OF_DRIVER,
)  # fmt: skip
COMPILER = Saying(
    "compiler",
    words(r"unrecognized command.?line option", r"\b(gcc|cc)(-\d+)?: (not found|command not found|no such file)",
          "unable to find the development tool", "compiler version check failed", "compiler.*does not match"),
    "Kernel {kernel} was built with another compiler than the one in the driver's image, so that the driver does not "
    "compile.",
    "Take a driver image for this kernel's system (the tag ends with it) or a newer build of it, or a precompiled "
    "driver.",
    OF_DRIVER,
)  # fmt: skip
LOADED_ALREADY = Saying(
    "host_module_loaded",
    words("appears to (already )?be (already )?loaded in your kernel", "a different version of the driver is.*loaded"),
    "A driver that this container did not load is in the kernel already: the host has one of its own.",
    "Either leave it to the host (driver.enabled: false, or nvidia.com/gpu.deploy.driver=pre-installed), or remove it "
    "from the host and reboot.",
    OF_DRIVER,
)
ENTITLEMENT = Saying(
    "rhel_entitlement",
    words("entitlement may be improperly deployed", "no (enabled )?repositories available", "no enabled repos"),
    "The packages of Red Hat that the driver is compiled with cannot be had: the node or its pods have no entitlement.",
    "On OpenShift: look at the Driver Toolkit's image stream of this release. On RHEL: register the node, so that "
    "/etc/pki/entitlement and the repositories reach the container (repoConfig).",
    OF_DRIVER,
)
NO_TOOLKIT = Saying(
    "driver_toolkit_broken",
    words("broken driver toolkit detected"),
    "OpenShift's Driver Toolkit does not fit this node's kernel, and the driver tries to compile with an entitlement.",
    "Look at the image stream driver-toolkit in the namespace openshift: it needs the tag of this node's RHCOS. Update "
    "the operator, or the cluster to a release that has it.",
    OF_DRIVER,
    is_normal_at_first=True,
)
EVICTION = Saying(
    "eviction_blocked",
    words("violate the pod's disruption budget", "error when evicting", "cannot evict pod"),
    "The driver manager cannot evict the pods that use GPUs on this node: a PodDisruptionBudget allows none to go.",
    "Look which budget it is, and let one more pod of it become ready elsewhere first.",
    OF_DRIVER,
)
FIRMWARE = Saying(
    "gsp_firmware",
    words("firmware_class/parameters/path: read-only", r"direct firmware load for nvidia/\S*gsp\S* failed"),
    "The kernel does not find the GPU's firmware (GSP), without which it does not start.",
    "The driver's container tells the kernel where it is in /sys/module/firmware_class/parameters/path, which must not "
    "be read-only; or boot with firmware_class.path=/run/nvidia/driver/lib/firmware.",
    OF_DRIVER,
)
NOT_DRAINED = Saying(
    "drain_refused",
    words("cannot delete pods (with local storage|that declare no controller|not managed by)",
          "cannot delete (pods with|daemonset-managed|pods not)"),
    "The driver manager may not drain this node: pods on it have local storage, or nobody who makes them again.",
    "What it says names them: delete them by hand, or allow it in upgradePolicy.drain (deleteEmptyDir, force), which "
    "loses their data.",
    OF_DRIVER,
)  # fmt: skip
PACKAGES_GONE = Saying(
    "packages_gone",
    words(r"^e: failed to fetch .*\b404\b", r"404 +not found \[ip", "status code: 404 for"),
    "The package repository answers and no longer has a version that the driver's image asks for (404): the image's "
    "list of packages is older than the repository.",
    "Take a newer build or version of the driver image. A mirror in repoConfig must keep the versions that its lists "
    "name.",
    OF_DRIVER,
)
PACKAGES_UNTRUSTED = Saying(
    "packages_untrusted",
    words("certificate verification failed", "ssl certificate problem", "certificate is not trusted"),
    "The driver's container does not trust the certificate of the package repositories, or of a proxy before them.",
    "Give it the authority that signed the certificate: certConfig of the driver names a ConfigMap with it.",
    OF_DRIVER,
)
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
        r"no provider of '?kernel-\S*devel",
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
        "unsigned module loading is restricted",
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
OTHER_DRIVER = Saying(
    "other_driver",
    words("another driver was loaded and obtained ownership", "unloading the conflicting kernel module"),
    "Another driver of the kernel has the GPUs: nouveau, vfio-pci, or an older one of NVIDIA's.",
    "lspci -k -d 10de: on the node names it. Blacklist it, rebuild the initramfs and reboot; where the GPUs are for "
    "virtual machines, nvidia.com/gpu.workload.config of the node must say so.",
    OF_DRIVER,
)
NO_KERNEL_MODULE = Saying(
    "kernel_module_missing",
    words(r"modprobe: fatal: module (?!nvidia)(?P<module>[\w-]+) not found"),
    "Kernel {kernel} has no module {module}, which the driver loads before its own.",
    "Install the rest of the kernel's modules on the node (linux-modules-extra, kernel-modules), or boot a kernel that "
    "has it.",
    OF_DRIVER,
)
NO_PERSISTENCE = Saying(
    "persistenced",
    words("nvidia-persistenced failed to initialize"),
    "The persistence daemon does not start: the driver is loaded, and opens no GPU.",
    "Look at NVRM and Xid lines in the kernel's log (dmesg) on the node.",
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
    words(r"/drivers/(gridd\.conf|clientconfigtoken)\S*'?: no such file", "failed to acquire license",
          "valid grid license not found", "unlicensed \\((un)?restricted"),
    "The driver gets no vGPU licence: its configuration is missing, or the licence server does not answer.",
    "Look at licensingConfig: its Secret or ConfigMap needs gridd.conf and, for NLS, client_configuration_token.tok; "
    "and whether the node reaches the licence server.",
    OF_DRIVER,
)  # fmt: skip
RDMA = Saying(
    "rdma",
    words("nvidia-peermem module is not loaded", "failed to load nvidia-peermem",
          r"could not insert '?nvidia[_-]peermem", "failed to wait for mofed driver",
          "waiting for mellanox ofed"),
    "GPUDirect RDMA waits for the network driver (MOFED), which is not ready on this node.",
    "Look at the network operator's driver on the node, or at rdma.useHostMofed.",
    OF_DRIVER,
)  # fmt: skip
NO_DEVICES = Saying(
    "no_devices",
    words("no devices were found", "no nvidia gpu device is present", "rminitadapter failed"),
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
NO_STORAGE_DRIVER = Saying(
    "gds_not_in_image",
    words(r"exec: \"?(?P<program>nvidia-(gds|gdrcopy)-driver)\"?: (executable file )?not found"),
    "Its image has no {program} for this system: such images are built for Ubuntu and OpenShift.",
    "Switch gds and gdrcopy off in the ClusterPolicy where {os} is not one of these: the driver pod does not become "
    "ready before all its containers are.",
    OF_DRIVER,
)
NOT_VERIFIED = Saying(
    "driver_not_verified",
    words("failed to verify gpu driver installation"),
    "The driver was installed, and nvidia-smi does not run on it.",
    "Look at NVRM lines in the kernel's log (dmesg): a driver that does not know the GPU, or modules for another "
    "kernel. A newer node image brings a driver that fits its kernel.",
    OF_DRIVER,
)
LEFT_OVER = Saying(
    "installer_leftover",
    words(r"ln: '?(?P<path>/[^':]+)'?: cannot overwrite directory"),
    "A folder is where the installer makes a link: {path}, left by an earlier installation.",
    "On the node: remove that folder (/root in the path is the node's /). Then delete this pod.",
    OF_DRIVER,
)
NVIDIA_RUNTIME = Saying(
    "driver_in_nvidia_runtime",
    words(r"nvidia-container-cli\S*: "),
    "The driver's container is started with the NVIDIA runtime, which needs the driver that it is to install.",
    "Make runc the default runtime of {runtime} on this node, and restart it. Then delete this pod: the pods that need "
    "the NVIDIA runtime ask for it by their runtime class.",
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
RULES: tuple[CauseRule, ...] = (
    HOST_DRIVER,
    NVIDIA_RUNTIME,
    TWO_DRIVERS,
    NOUVEAU,
    NOT_DRAINED,
    EVICTION,
    DRIVER_IN_USE,
    LOADED_ALREADY,
    NOT_SIGNED,
    OPEN_MODULES,
    CLOSED_MODULES,
    GPU_TOO_OLD,
    OTHER_DRIVER,
    NO_KERNEL_MODULE,
    VFIO,
    NO_VGPU_DRIVER,
    VGPU_LICENCE,
    NO_TOOLKIT,
    ENTITLEMENT,
    NO_STORAGE_DRIVER,
    LEFT_OVER,
    PACKAGES_GONE,
    PACKAGES_UNTRUSTED,
    PACKAGES_UNREACHABLE,
    NO_PRECOMPILED,
    KERNEL_HEADERS,
    COMPILER,
    NOT_COMPILED,
    FABRIC_VERSION,
    FABRIC,
    FIRMWARE,
    NO_DEVICES,
    RDMA,
    NOT_VERIFIED,
    NO_PERSISTENCE,
    CANNOT_TALK,
    NOT_LOADABLE,
)
