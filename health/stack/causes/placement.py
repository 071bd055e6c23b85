"""Why no pod of an operand is meant to be on a node. Pure.

The operator writes `nvidia.com/gpu.deploy.<operand>=true` on every GPU node and its DaemonSets select by it; with
`nvidia.com/gpu.deploy.operands=false` it removes them all (gpu-operator, controllers/state_manager.go). The driver
manager sets them to paused-for-driver-upgrade while it replaces a driver, the MIG manager to
paused-for-mig-change, and gpu.deploy.driver to pre-installed where it finds a driver on the host
(k8s-driver-manager, cmd/driver-manager/main.go).
"""

from collections.abc import Mapping

from gpu import labels as keys
from gpu.operands import DEVICE_PLUGIN, DRIVER, MIG_MANAGER
from health.stack.causes.affinity import takes
from health.stack.causes.base import Cause, CauseRule, Signs, Weight

DEVICE_PLUGIN_GATE = f"{keys.DEPLOY_PREFIX}device-plugin"  # also of the control daemon of MPS
OPERANDS = f"{keys.DEPLOY_PREFIX}operands"
WORKLOAD = "nvidia.com/gpu.workload.config"  # container, vm-passthrough, vm-vgpu
PAUSED = "paused-for-"  # -driver-upgrade, -mig-change


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a DaemonSet's node selector takes a node. An empty one takes every node."""
    return not differing(selector, labels)


def differing(selector: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, str]:
    """What the node says instead of what is asked, by label. Blank: it says nothing."""
    return {key: labels.get(key, "") for key, value in selector.items() if labels.get(key) != value}


def opted_out(signs: Signs) -> Cause | None:
    if signs.labels.get(OPERANDS) != "false" or not _is_gated(signs):
        return None
    return Cause(
        "opted_out",
        Weight.CHOSEN,
        f"The node is opted out of the GPU stack: it carries {OPERANDS}=false.",
        f"To bring the stack back: kubectl label node {signs.node} {OPERANDS}-",
    )


def pre_installed(signs: Signs) -> Cause | None:
    if signs.operand != DRIVER or signs.labels.get(keys.DEPLOY_DRIVER) != keys.PRE_INSTALLED:
        return None
    return Cause(
        "pre_installed",
        Weight.CHOSEN,
        "The driver is pre-installed on the host: it is observed, never managed.",
        "It changes with the node's image, not with a plan.",
    )


def switched_off(signs: Signs) -> Cause | None:
    off = [key for key, value in differing(signs.selector, signs.labels).items() if value == "false"]
    gate = next((key for key in off if key.startswith(keys.DEPLOY_PREFIX)), "")
    if not gate:
        return None
    off_here = f"It is switched off on this node: {gate}=false."
    if signs.has_dra and gate == DEVICE_PLUGIN_GATE:
        beside = "A DRA driver offers the GPUs here: beside it a device plugin would give each of them away once more."
        return Cause("switched_off", Weight.CHOSEN, off_here, beside)
    back = f"To bring it back: kubectl label node {signs.node} {gate}=true --overwrite"
    return Cause("switched_off", Weight.CHOSEN, off_here, back)


def paused(signs: Signs) -> Cause | None:
    stopped = {key: value for key, value in differing(signs.selector, signs.labels).items() if PAUSED in value}
    if not stopped:
        return None
    key, value = next(iter(stopped.items()))
    work = "the driver is replaced" if value.endswith(keys.PAUSED) else "the MIG layout changes"
    return Cause(
        "paused",
        Weight.WAITING,
        f"Paused while {work}: {key}={value}.",
        f"If nothing is being changed on this node, that work was interrupted: kubectl label node {signs.node} "
        f"{key}=true --overwrite",
    )


def label_empty(signs: Signs) -> Cause | None:
    """gpu-operator #491: a label that is there and says nothing lets nothing in. Without MIG, MIG manager's may be."""
    gates = [key for key in differing(signs.selector, signs.labels) if key.startswith(keys.DEPLOY_PREFIX)]
    gate = next((key for key in gates if signs.labels.get(key) == ""), "")
    if not gate or signs.operand == MIG_MANAGER:
        return None
    return Cause(
        "label_empty",
        Weight.WRONG,
        f"The label that lets it in is empty: {gate}.",
        f"The operator writes true there. To bring it back: kubectl label node {signs.node} {gate}=true --overwrite",
    )


def not_labelled(signs: Signs) -> Cause | None:
    """A GPU node that the operator has given no deploy label at all. Without one gpu.present is people's own."""
    if not signs.has_operator:
        return None
    if not _is_gated(signs) or not signs.is_gpu_node or signs.labels.get(keys.GPU_PRESENT) not in ("true", "false"):
        return None
    if any(key.startswith(keys.DEPLOY_PREFIX) for key in signs.labels):
        return None
    if signs.labels[keys.GPU_PRESENT] == "false":
        return Cause(
            "taken_for_none",
            Weight.WRONG,
            f"The operator takes this node for one without GPUs: {keys.GPU_PRESENT}=false.",
            "It goes by the PCI labels of node feature discovery: look at its worker on this node. Then: kubectl label "
            f"node {signs.node} {keys.GPU_PRESENT}-",
        )
    return Cause(
        "not_labelled",
        Weight.WRONG,
        f"The operator has not labelled this GPU node: it carries no {keys.DEPLOY_PREFIX}* label.",
        "Look at the log of the gpu-operator pod: it labels nodes only while it reconciles.",
    )


def for_machines(signs: Signs) -> Cause | None:
    """gpu-operator, controllers/state_manager.go: such a node gets the operands of virtual machines instead."""
    workload = signs.labels.get(WORKLOAD, "")
    if signs.operand != DRIVER or not workload.startswith("vm-"):
        return None
    does = "the vGPU manager stands in for it" if workload == "vm-vgpu" else "the GPUs are bound to vfio-pci"
    return Cause(
        "for_machines",
        Weight.CHOSEN,
        f"No driver is meant to run here: the GPUs are for virtual machines ({WORKLOAD}={workload}), and {does}.",
        f"To give them to containers: kubectl label node {signs.node} {WORKLOAD}=container --overwrite",
    )


def no_driver_selects(signs: Signs) -> Cause | None:
    """A driver is wanted, and there are DaemonSets of it, but each for other nodes."""
    if signs.operand != DRIVER or signs.has_daemon_set or not signs.others_have_one:
        return None
    if signs.labels.get(keys.DEPLOY_DRIVER) != "true":
        return None
    return Cause(
        "no_driver_selects",
        Weight.WRONG,
        f"No driver DaemonSet selects this node, with {signs.os_image or 'its system'} and kernel "
        f"{signs.kernel or 'not known'}.",
        "Compare the nodeSelector of every NVIDIADriver with the node's labels; precompiled drivers exist per kernel.",
    )


def no_driver_made(signs: Signs) -> Cause | None:
    """A driver is asked for here, and the operator has made no DaemonSet for it."""
    if signs.operand != DRIVER or signs.has_daemon_set or signs.others_have_one or not signs.driver_asked_by:
        return None
    if not signs.is_gpu_node or signs.labels.get(keys.DEPLOY_DRIVER) != "true":
        return None
    return Cause(
        "no_driver_made",
        Weight.WRONG,
        f"{signs.driver_asked_by} asks for a driver here, and the operator has made no DaemonSet of it.",
        "Look whether the gpu-operator pod runs, and at its log: it makes the DaemonSet when it reconciles.",
    )


def no_driver_managed(signs: Signs) -> Cause | None:
    """The operator runs no driver (driver.enabled: false), or nobody does and the node says that it has one."""
    if signs.operand != DRIVER or signs.has_daemon_set or signs.others_have_one or not signs.is_gpu_node:
        return None
    if not signs.runs_version and not signs.is_driver_off:
        return None
    return Cause(
        "no_driver_managed",
        Weight.CHOSEN,
        "No operator runs a driver in this cluster: it is installed on the host, observed, never managed.",
        "It changes with the node's image, not with a plan.",
    )


def no_plugin_selects(signs: Signs) -> Cause | None:
    """There are DaemonSets of the device plugin, each for other nodes, and nobody offers this one's GPUs.

    Its own chart goes by labels of node feature discovery, which it does not install by itself (nvkind #20).
    """
    if signs.operand != DEVICE_PLUGIN or signs.has_daemon_set or not signs.others_have_one or not signs.is_gpu_node:
        return None
    if signs.gpus_allocatable or signs.labels.get(WORKLOAD, "").startswith("vm-"):
        return None
    return Cause(
        "no_plugin_selects",
        Weight.WRONG,
        "No device plugin's DaemonSet selects this node, so that nothing offers its GPUs.",
        "Compare nodeSelector and affinity of the DaemonSet with the node's labels. The plugin's own chart asks for "
        "feature.node.kubernetes.io/pci-10de.present=true or nvidia.com/gpu.present=true.",
    )


def is_selected(signs: Signs) -> bool:
    """Whether its DaemonSet wants a pod on the node, taints aside."""
    chosen = signs.has_daemon_set and selects(signs.selector, signs.labels)
    return chosen and takes(signs.affinity, signs.labels, signs.node)


def _is_gated(signs: Signs) -> bool:
    return any(key.startswith(keys.DEPLOY_PREFIX) for key in signs.selector) or not signs.has_daemon_set


RULES: tuple[CauseRule, ...] = (
    opted_out,
    pre_installed,
    switched_off,
    paused,
    label_empty,
    not_labelled,
    for_machines,
    no_driver_selects,
    no_driver_made,
    no_driver_managed,
)
