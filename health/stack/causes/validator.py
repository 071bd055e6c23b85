"""Which of the validator's init containers does not come to an end, and what that means. Pure.

gpu-operator, assets/state-operator-validation and cmd/nvidia-validator/main.go: driver-validation runs nvidia-smi on
the driver, toolkit-validation runs it in a container that the runtime prepared, cuda-validation and plugin-validation
start a pod each (nvidia-cuda-validator, nvidia-device-plugin-validator), the latter after the node offers a GPU.
They try again for ever (gpu-operator #2909), so that a pod that is only Init:2/4 may be stuck.

After nvidia-smi driver-validation loads the driver's modules, makes its device nodes and links them under /dev/char:
"error creating symlink creator: failed to load NVIDIA kernel modules: failed to load module nvidia-modeset" (#671), "…
nvidia-uvm" (#1923, a vGPU host driver), "failed to create NVIDIA device nodes: … failed to determine major" (#1015).
Drivers from 550.40 on are called nvidia and no longer nvidia-frontend in /proc/devices, which toolkits before 1.14.6
do not know (nvidia-container-toolkit #324, #352). The links are for runc with systemd's cgroups (#430).

It takes a nvidia-smi that prints its table and then ends with an error for no driver: "No pre-installed driver detected
on the host: exit status 14" (#2596). What it ends with: nvidia-smi(1), "RETURN VALUE".
"""

import re
from dataclasses import replace

from gpu.operands import TESTS
from health.stack.causes.base import Cause, CauseRule, Saying, Signs, Weight, words

WITHOUT_LINKS = (
    "set DISABLE_DEV_CHAR_SYMLINK_CREATION=true in the ClusterPolicy's spec.validator.driver.env: the links are only "
    "for containers that systemd's cgroups would take their GPU from"
)
NO_UVM = Saying(
    "dev_char_uvm",
    words(r"failed to load module (?P<module>nvidia-uvm)\b.*not found"),
    "nvidia-smi runs, but the driver on this node has no module {module}, without which nothing computes. NVIDIA's "
    "vGPU host driver comes so, and it is no guest driver.",
    "If the GPUs are for virtual machines: kubectl label node {node} nvidia.com/gpu.workload.config=vm-vgpu "
    "--overwrite, with sandboxWorkloads.enabled. If they are for containers: install the data center driver instead.",
)
NO_MODULE = Saying(
    "dev_char_module",
    words(r"failed to load module (?P<module>[\w-]+)"),
    "nvidia-smi runs; making links under /dev/char then fails, as the module {module} does not load on this node.",
    f"Look why modprobe {{module}} fails there (dmesg). Or {WITHOUT_LINKS}.",
)
NO_MAJOR = Saying(
    "dev_char_major",
    words("failed to determine major", r"no (device )?major (number )?(was )?found", "missing required device"),
    "nvidia-smi runs; making links under /dev/char then fails, as the driver's devices are not found in /proc/devices.",
    "Take an operator that knows this driver: from 550.40 on it is called nvidia there, no longer nvidia-frontend. Or "
    f"{WITHOUT_LINKS}.",
)
NO_LINKS = Saying(
    "dev_char",
    words("error creating symlink creator", "error creating symlinks", "failed to create symlinks under /dev/char"),
    "nvidia-smi runs; making links under /dev/char for the driver's devices then fails.",
    f"What it says names the step. Where the links are not needed, {WITHOUT_LINKS}.",
)
SMI_ENDED = re.compile(
    r"(?:driver detected on the host|validat\w+ .{0,40}driver.{0,60}|nvidia-smi.{0,60}): .{0,60}"
    r"exit status (?P<code>\d+)",
    re.IGNORECASE,
)
INFOROM = re.compile(r"inforom is corrupted at gpu (?P<gpu>[0-9a-f:.]+)", re.IGNORECASE)
HOST_DRIVER = re.compile(r"no pre-installed driver detected on the host", re.IGNORECASE)
SEEN_BY_SMI = "The driver is there: the validator takes the error for a missing driver. "
SMI_CODES: dict[str, tuple[str, str, str]] = {
    "14": (
        "smi_inforom",
        "the infoROM of {gpu} is corrupted",
        "Reset the GPU or reboot the node. If the warning stays, the vendor repairs the infoROM or replaces the board.",
    ),
    "15": (
        "smi_gpu_lost",
        "{gpu} fell off the bus",
        "Look in the kernel's log for Xid 79. Drain the node and reboot it.",
    ),
    "8": ("smi_power", "a power cable of {gpu} is missing", "Look at the board's power cables."),
    "10": (
        "smi_interrupt",
        "the kernel sees a trouble with the interrupts of {gpu}",
        "Look in the kernel's log for NVRM lines; drain the node and reboot it.",
    ),
}


def smi_ended(signs: Signs) -> Cause | None:
    """nvidia-smi ran on a driver that is there, and ended with a code that names what is wrong with a GPU."""
    lines = list(signs.everything_said())
    ended = next((found for line in lines if (found := SMI_ENDED.search(line)) and found["code"] in SMI_CODES), None)
    corrupted = next((found for line in lines if (found := INFOROM.search(line))), None)
    code = ended["code"] if ended else "14" if corrupted and NOT_SAID.pattern.search(" ".join(lines)) else ""
    if not code:
        return None
    key, wrong, action = SMI_CODES[code]
    gpu = f"GPU {corrupted['gpu']}" if corrupted and code == "14" else "a GPU"
    told = corrupted if corrupted and code == "14" else ended
    return Cause(
        key,
        Weight.WRONG,
        f"nvidia-smi runs and ends with exit status {code}: {wrong.format(gpu=gpu)}.",
        SEEN_BY_SMI + action,
        told.string.strip() if told else "",
    )


NOT_SAID = Saying(
    "driver_ctr_not_ready",
    words(r"\.driver-ctr-ready"),
    "It waits for the driver's container to say that it is ready, in /run/nvidia/validations/.driver-ctr-ready.",
    "Look at the driver pod of this node: its log, and what its startup probe answers.",
    is_normal_at_first=True,
)
MEANINGS: dict[str, tuple[str, str]] = {
    "driver-validation": (
        "nvidia-smi does not run on this node's driver",
        "Look at the driver pod: nvidia-smi in it, and its log.",
    ),
    "toolkit-validation": (
        "a container that was started with the NVIDIA runtime does not see the driver",
        "Look at the toolkit pod, and at the container runtime's configuration that it wrote.",
    ),
    "cuda-validation": (
        "the CUDA test (pod nvidia-cuda-validator) does not succeed",
        "Look at that pod's log. With nvidia-smi working: a GPU, the fabric manager, or a driver older than its CUDA.",
    ),
    "plugin-validation": (
        "the node offers no GPU, or the test pod (nvidia-device-plugin-validator) gets none",
        "Look at the device plugin, the node's allocatable, and whether other pods hold every GPU.",
    ),
    "mofed-validation": (
        "the network driver (MOFED) is not ready",
        "Look at the network operator's driver on the node.",
    ),
    "vfio-pci-validation": (
        "the GPUs are not bound to vfio-pci",
        "Look at the VFIO manager on the node.",
    ),
    "vgpu-manager-validation": (
        "the vGPU manager does not run",
        "Look at the vGPU manager pod on the node.",
    ),
    "vgpu-devices-validation": (
        "there are no vGPU devices",
        "Look at the vGPU device manager and the node's nvidia.com/vgpu.config.",
    ),
    "cc-manager-validation": (
        "the confidential computing mode is not set",
        "Look at the confidential computing manager on the node.",
    ),
}


def host_driver_not_seen(signs: Signs) -> Cause | None:
    """There is no driver pod to look at."""
    cause = NOT_SAID(signs)
    if cause is None or not signs.has_host_driver:
        return None
    said = next((line for line in signs.everything_said() if HOST_DRIVER.search(line)), cause.said)
    return replace(
        cause,
        key="host_driver_not_seen",
        sentence="The validator does not find the driver of the host, and waits for a driver pod that nobody makes.",
        action="Run nvidia-smi on the node: it must end with 0. Then look at the driver's root (hostPaths.rootFS).",
        said=said.strip(),
    )


def stuck_validation(signs: Signs) -> Cause | None:
    """Not of a test itself, whose container has the name of the step that waits for it."""
    pod = signs.pod
    if pod is None or pod.container not in MEANINGS or signs.operand in TESTS:
        return None
    meaning, action = MEANINGS[pod.container]
    if pod.container == "driver-validation" and signs.has_host_driver:
        action = "Run nvidia-smi on the node: the driver is the host's, and no driver pod is expected here."
    key, said = pod.container.replace("-", "_"), pod.telling
    if not pod.is_overdue and not pod.reason:
        return Cause(key, Weight.WAITING, f"Its init container {pod.container} is at work.", "", said)
    sentence = f"Its init container {pod.container} does not come to an end: {meaning}."
    return Cause(key, Weight.WRONG, sentence, action, said)


def held_by_validator(signs: Signs) -> Cause | None:
    """The other operands' toolkit-validation only waits for a file that the validator writes after that step."""
    if not signs.is_held_by_validator:
        return None
    return Cause(
        "waits_for_validator",
        Weight.WAITING,
        "It waits for the validator, which has not yet seen a container with the NVIDIA runtime work on this node.",
    )


RULES: tuple[CauseRule, ...] = (
    held_by_validator,
    NO_UVM,
    NO_MODULE,
    NO_MAJOR,
    NO_LINKS,
    smi_ended,
    host_driver_not_seen,
    NOT_SAID,
    stuck_validation,
)
