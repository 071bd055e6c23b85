"""What the MIG manager says about a node by its label. Pure.

nvidia.com/mig.config.state is pending, rebooting, success or failed (mig-parted, pkg/mig/reconfigure/reconfigure.go).
In its log: "In use by another client" and "… is currently in use by one or more other processes" of nvidia-smi's reset,
"Resetting GPU … is not supported." of the same (gpu-operator #1606, a virtual machine), "Error getting GPU instance
profile info for '1g.6gb': ERROR_NOT_SUPPORTED" (mig-parted #157), "… not present in the configuration file" and "unable
to select" (cmd/nvidia-mig-parted); "error opening bar0 MMIO resource: unknown endianness" of pkg/mig/mode and go-nvlib
(mig-parted #199).
"""

from gpu.operands import MIG_MANAGER
from health.stack.causes.base import Cause, CauseRule, Saying, Signs, Weight, words
from kube.log_lines import telling

OF_MIG = frozenset({MIG_MANAGER})
ASSERTED = words("assertion failure: selected configuration not currently")  # of every run that changes a layout

IN_USE = Saying(
    "mig_in_use",
    words("in use by another client", "in use by one or more other processes", "error (clearing|resetting).*in use"),
    "The MIG configuration cannot be applied: something on the node still uses a GPU, so that it cannot be reset.",
    "Find what does (nvidia-smi, DCGM on the host, a pod that requested none): drain the node, or name the host's "
    "services in the MIG manager's gpuClientsConfig. Then set nvidia.com/mig.config to another value and back.",
    OF_MIG,
)
UNKNOWN_CONFIG = Saying(
    "mig_unknown_config",
    words("mig.?config.*not (present|found)", "unable to (validate|select|find).*(mig|config)",
          "requested configuration.*not present"),
    "The MIG configuration that this node picks is not in the file that the MIG manager reads.",
    "Compare nvidia.com/mig.config of the node with the names in the ConfigMap that migManager.config names.",
    OF_MIG,
)  # fmt: skip
NOT_SUPPORTED = Saying(
    "mig_not_possible",
    words("insufficient resources", "unsupported mig profile", "profile.*not[_ ]supported", "not mig.?capable",
          "invalid mig device"),
    "The GPUs of this node cannot be cut as that MIG configuration wants.",
    "Choose one that fits the product: nvidia-smi mig -lgip lists its profiles.",
    OF_MIG,
)  # fmt: skip
NEEDS_REBOOT = Saying(
    "mig_needs_reboot",
    words("reset (capability )?is not (supported|available)", r"resetting gpu \S+ is not supported",
          "gpu reset.*(fail|not supported)", "reboot.*required", "mig mode change.*pending", "enable-pending"),
    "MIG mode is to change, and the GPUs of this node cannot be reset, as in many virtual machines: the change takes "
    "effect with a reboot only.",
    "Drain and reboot the node, or let the MIG manager do so (env WITH_REBOOT=true).",
    OF_MIG,
)  # fmt: skip
NO_REGISTERS = Saying(
    "mig_no_registers",
    words("error opening bar0 mmio", "unknown endianness for mmio"),
    "The MIG manager cannot read a GPU over PCI: the GPU does not answer it, or not yet.",
    "Look at nvidia-smi on the node. Where it lists all GPUs, set nvidia.com/mig.config to another value and back; "
    "else look for Xid 79 in the kernel's log, drain the node and reboot it.",
    OF_MIG,
)


def failed(signs: Signs) -> Cause | None:
    if signs.operand != MIG_MANAGER or signs.mig_state != "failed":
        return None
    pod = signs.pod
    said = (telling([line for line in pod.log if not ASSERTED.search(line)]) or pod.last_words) if pod else ""
    if known := next((cause for rule in RULES if (cause := rule(signs))), None):
        return known
    return Cause(
        "mig_failed",
        Weight.WRONG,
        f"It could not apply the MIG configuration {signs.mig_config or '(none named)'}: mig.config.state is failed.",
        "Look at its log for the step that failed. Most often a GPU was in use and could not be reset: free it, then "
        "set the label nvidia.com/mig.config to another value and back.",
        said,
    )


def changing(signs: Signs) -> Cause | None:
    if signs.operand != MIG_MANAGER or signs.mig_state not in ("pending", "rebooting"):
        return None
    doing = "is applying" if signs.mig_state == "pending" else "reboots the node to apply"
    return Cause(
        "mig_changing",
        Weight.WAITING,
        f"It {doing} the MIG configuration {signs.mig_config or '(none named)'}.",
        "The device plugin, GFD and DCGM pods are paused until it is done.",
    )


RULES: tuple[CauseRule, ...] = (IN_USE, NEEDS_REBOOT, UNKNOWN_CONFIG, NOT_SUPPORTED, NO_REGISTERS)
WHEN_READY: tuple[CauseRule, ...] = (failed, changing)
