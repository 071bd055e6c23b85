"""Faults that others report as node conditions: the kubelet, node-problem-detector, NVSentinel, a cloud.

Without such a detector nobody reads the kernel's log, and Xids that DCGM does not export go unnoticed.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar

from gpu.conditions import (
    AFTER_A_BOOT,
    DCGM_LOST,
    DETECTOR,
    EKS,
    GKE,
    LINKS_DOWN,
    NEBIUS,
    NETWORK,
    NO_SUBNET_MANAGER,
    NVSENTINEL,
    ROW_REMAP,
    RUNS_OUT,
    USUAL_DURING_UPGRADE,
    addresses_in,
    are_links_down,
    is_applications,
    is_of_imex,
    is_without_failure,
    names_stuck_pods,
)
from gpu.dcgm_errors import DcgmSeverity, dcgm_error_in
from gpu.health_labels import AUTOPILOT
from gpu.kernel_lines import KernelLine, kernel_line_in
from gpu.xids import ACTIONS, XIDS, verdict_of
from health.rules.base import NODE, NODES, RANKS, NodeCondition, NodeFacts, Problem, Severity
from kube.log_lines import message_of
from wording.instants import to_the_minute
from wording.lists import names
from wording.reports import LONGEST_SUMMARY, EvidenceItem, first_items, fit

SHOWN = 4
RECOVERY = 154  # "GPU recovery action changed": its text names the action
REMAP = ("Reset the GPU once no pod uses it. The remapped row takes effect then.",)  # Xid 63 alone asks for no drain
LOOKED_UP = ("Find it in NVIDIA's catalog, docs.nvidia.com/deploy/xid-errors. Drain the node if programs fail.",)
# NVSentinel's RecommendedAction, data-models/protobufs/health_event.proto.
RECOMMENDED = {
    "NONE": "do nothing",
    "COMPONENT_RESET": "reset the GPU",
    "CONTACT_SUPPORT": "contact support",
    "RUN_FIELDDIAG": "run NVIDIA's field diagnostics",
    "RUN_DCGMEUD": "run DCGM's EUD diagnostics",
    "RESTART_APP": "restart the application",
    "RESTART_VM": "restart the virtual machine",
    "RESTART_BM": "reboot the node",
    "NODE_REBOOT": "reboot the node",
    "REPLACE_VM": "replace the node",
}
# Checks for a condition that names a part of the node, in lower case.
OF_PARTS = {
    "fabricmanager": "Check Fabric Manager on the node: systemctl status nvidia-fabricmanager",
    "deviceplugin": "Check the device plugin on the node. Some images run it as a service, not as a pod.",
    "persistenced": "Check the service on the node: systemctl status nvidia-persistenced",
    "license": "Check the license on the node: nvidia-smi -q, and its license server.",
    "dcgm": "Check DCGM's host engine on the node: systemctl status nvidia-dcgm, or its pod.",
}


OF_IMEX = (
    "One machine alone, or no ComputeDomain: repair nothing. Turn this check of the reporter off, or update it.",
    "Multi-node NVLink: check the IMEX pods of the job's ComputeDomain on this node.",
)
OF_PCIE = (
    "Check whether NVLink bridges connect the boards: nvidia-smi topo -m then shows NV. Without them, links stay down.",
    "Without bridges: turn this check of the reporter off. With bridges: check their seat, then reset the GPUs.",
)

# By the kubelet's condition: cause and step. kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction.
OF_PRESSURES = {
    "MemoryPressure": (
        "Memory of the node is nearly used up.",
        "Find what uses the memory before pods are evicted: kubectl describe node NODE, and ps on the node.",
    ),
    "DiskPressure": (
        "A disk of the node is nearly full.",
        "Find what fills it: du -x below /var/lib and /var/log. Images, logs, core files and emptyDir volumes do.",
    ),
    "PIDPressure": (
        "The node has nearly no process IDs left.",
        "Find the pod with the most processes or threads (ps -eLf on the node), and set a limit of PIDs.",
    ),
}
# NVSentinel removes an entry by its full name, and the message of a condition is cut (NVSentinel #1299).
OF_STUCK_PODS = (
    "Check whether the named pods still exist. If none does, set the condition to False, and restart nothing for it.",
)
CLEAR_BY_HAND = (
    "Set the condition to False (kubectl edit node --subresource=status) or update NVSentinel. "
    "If nothing else is wrong, uncordon the node."
)
# flashinfer #3869: one program's bad write ended the channels of all its GPUs until the reboot.
RESET_AFTER_FAULTS = (
    "If new programs fail, too, drain the node and reset its GPUs or reboot it. Then change the program that failed."
)

# Causes that a text of a reporter tells.
OF_MESSAGES: tuple[tuple[Callable[[str], bool], str], ...] = (
    (
        is_of_imex,
        (
            "IMEX does not run while no ComputeDomain is active, and never on machines without multi-node NVLink. "
            "DCGM's watch reports that. The NVLink hardware has no fault."
        ),
    ),
    (
        lambda message: NO_SUBNET_MANAGER in message,
        (
            "Only a subnet manager needs /dev/infiniband/issm*, and some providers omit it. RDMA works without it. "
            "The network card has no fault."
        ),
    ),
    (
        is_without_failure,
        "The check found no failure. NVSentinel keeps the condition, since it expects another spelling.",
    ),
    (
        names_stuck_pods,
        "A deleted pod did not end. Of a pod that has gone, NVSentinel keeps the condition if it cut the name.",
    ),
    (
        lambda message: message.startswith(DCGM_LOST),
        "The agent lost DCGM's host engine. That is no GPU fault. The condition stays when DCGM is back.",
    ),
)


@dataclass(frozen=True)
class NodeConditions:
    key: ClassVar[str] = "node-conditions"
    title: ClassVar[str] = "Bad conditions"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=1)
    steps: ClassVar[tuple[str, ...]] = (
        "Read each condition's message, its reporter and its recommended action (Evidence).",
        "NVSentinel: follow its remediation. If its quarantine is enabled, it cordons the node.",
        "EKS, Nebius: check first whether the cloud repairs or replaces the node itself.",
        "Kubelet or runtime restarts: read journalctl -u kubelet -u containerd. Restart the runtime first.",
        "Pressure: find what uses memory, disk or PIDs, before the kubelet evicts pods.",
        "Otherwise read the kernel log and the node's events: kubectl describe node NODE",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        bad = sorted(
            (
                _without_repair(each, node)
                for each in node.conditions
                if not (node.is_changing and _is_usual_during_upgrade(each))
            ),
            key=lambda each: RANKS[each.severity.value],
        )
        if not bad:
            return None
        reporters = " and ".join(sorted({each.reporter for each in bad}))
        types = names([each.title for each in bad], most=1)
        return Problem(
            severity=bad[0].severity,
            title=fit("{} on {}", types, node.name),
            summary=fit("Reported by {}: {}", reporters, _condition_text(bad[0], reporters), longest=LONGEST_SUMMARY),
            evidence=first_items(EvidenceItem(each.title, each.message or each.status) for each in bad),
            causes=tuple(_probable_causes(bad, node)),
            steps=tuple(_steps(bad, node)),
            facts={each.type: each.message for each in bad},
            identity=" ".join(
                sorted(f"{each.title} {each.recommended_action} {each.xids or ''}".strip() for each in bad)
            ),
        )


def _without_repair(condition: NodeCondition, node: NodeFacts) -> NodeCondition:
    """Returns the condition. What it recommends is left out where most likely nothing is to be repaired."""
    if names_stuck_pods(condition.message):
        return replace(condition, recommended_action="")
    if condition.severity is Severity.NOTE or not _checks_before_repair(condition, node):
        return condition
    return replace(condition, severity=Severity.WARNING, recommended_action="")


def _checks_before_repair(condition: NodeCondition, node: NodeFacts) -> tuple[str, ...]:
    """Returns the steps for a condition that this kind of machine has without a fault. Empty: it is of no such kind."""
    if is_of_imex(condition.message):
        return OF_IMEX
    return OF_PCIE if are_links_down(condition.message) and "pcie" in node.gpu_product.lower() else ()


def _condition_text(condition: NodeCondition, reporters: str) -> str:
    """Returns the message. Of a longer one, its Xids or the line that tells most."""
    message = condition.message or condition.title
    room = LONGEST_SUMMARY - len(f"Reported by {reporters}: ")
    if len(message) <= room:
        return message
    if not condition.xids:
        told = kernel_line_in(message)
        telling = (line for line in message.splitlines() if not line.endswith(":") and kernel_line_in(line) is told)
        return next((message_of(line, room) for line in telling), message) if told else message
    action = f". Recommended action: {condition.recommended_action}" if condition.recommended_action else ""
    return f"{names([_named_xid(xid) for xid in condition.xids], most=SHOWN)}{action}"


def _named_xid(xid: int) -> str:
    title = XIDS[xid].title if xid in XIDS else ""
    return f"Xid {xid} ({title})" if title else f"Xid {xid}"


def _is_usual_during_upgrade(condition: NodeCondition) -> bool:
    return condition.type in USUAL_DURING_UPGRADE or condition.message.startswith(DCGM_LOST)


def _probable_causes(bad: Sequence[NodeCondition], node: NodeFacts) -> Iterator[str]:
    types = {each.type for each in bad}
    if not AFTER_A_BOOT.isdisjoint(types):
        booted = f" The node booted at {to_the_minute(node.booted_at)}." if node.booted_at else ""
        yield f"The kubelet and its container runtime may race after a boot.{booted}"
        return
    if RUNS_OUT.issuperset(types):
        yield from (text for kind, (text, _) in OF_PRESSURES.items() if kind in types)
        return
    yield from (text for tells, text in OF_MESSAGES if any(tells(each.message) for each in bad))
    said = (dcgm_error_in(each.message) for each in bad if not each.xids)  # an Xid tells more than its code
    errors = {error.number: error for error in said if error}
    yield from (f"DCGM's code {number} is {error.name}. {error.text}" for number, error in errors.items())
    if any(are_links_down(each.message) for each in bad) or any(error.name == LINKS_DOWN for error in errors.values()):
        yield (
            "An NVLink or its bridge may be broken. Links are also down for a short time after a boot, and always on "
            "PCIe boards without a bridge."
        )
    xids = sorted({xid for each in bad if each.severity is Severity.NOTE for xid in each.xids if is_applications(xid)})
    if xids:
        yield f"An application failed with Xid {names([str(xid) for xid in xids])}. No GPU is at fault."
    faults = dict.fromkeys(xid for each in bad if each.severity is not Severity.NOTE for xid in each.xids)
    yield from (f"{_named_xid(xid)}." for xid in faults if xid in XIDS and XIDS[xid].title)
    broken = [each for each in bad if not _checks_before_repair(each, node)]
    yield from dict.fromkeys(line.cause for line in _kernel_lines(broken))
    if any(_has_no_routes(each) for each in bad):
        yield "A new node has no routes for its pods in the first minutes. That says nothing about its GPUs."


def _steps(bad: Sequence[NodeCondition], node: NodeFacts) -> Iterator[str]:
    """Yields the steps against each fault, the first to do first."""
    faults = [each for each in bad if each.severity is not Severity.NOTE]
    checks = {step for each in faults for step in _checks_before_repair(each, node)}
    broken = [each for each in faults if not _checks_before_repair(each, node)]
    types, by = {each.type for each in bad}, {each.reporter for each in broken}
    rest = types - AFTER_A_BOOT
    by_detector = {each.reporter for each in bad if each.type in rest}
    asked = {
        "Read both logs (journalctl -u kubelet -u containerd), and restart the runtime first.": rest != types,
        **{step: any(names_stuck_pods(each.message) for each in bad) for step in OF_STUCK_PODS},
        **dict.fromkeys(_recommended(bad), True),
        **dict.fromkeys(_xid_steps(faults), True),
        **dict.fromkeys(_recovery_steps(faults), True),
        **dict.fromkeys(_dcgm_steps(broken), True),
        **dict.fromkeys((line.step for line in _kernel_lines(broken)), True),
        **{step: step in checks for step in (*OF_IMEX, *OF_PCIE)},
        **{step: any(_names_part(each, part) for each in faults) for part, step in OF_PARTS.items()},
        "Follow NVSentinel's actions: if its quarantine is enabled, it cordons the node itself.": NVSENTINEL in by,
        "Check the pod dcgm-server on the node. If it runs, delete the agent's pod: the condition is written again.": (
            any(each.message.startswith(DCGM_LOST) for each in bad)
        ),
        "Restart the node's machine. GKE's condition stays until then.": any(each.reporter == GKE for each in bad),
        "Wait if auto repair is enabled on EKS: it reboots or replaces the node.": EKS in by,
        "Run DCGM's diagnostics of level 3. The label stays at EVICT until they pass, also after a repair.": (
            AUTOPILOT in by
        ),
        "Wait for Nebius: it cordons, drains and restarts the node.": NEBIUS in by,
        **{step: kind in rest for kind, (_, step) in OF_PRESSURES.items()},
        "Wait some minutes. If it stays, check the cloud controller manager and the cloud's route table.": (
            any(map(_has_no_routes, bad))
        ),
        "Check the pods of the cluster's network plugin on the node.": (
            any(each.type == NETWORK and not _has_no_routes(each) for each in bad)
        ),
        "Read the node's kernel log and events: kubectl describe node NODE": _needs_the_log(by_detector),
        CLEAR_BY_HAND: not faults and any(is_without_failure(each.message) for each in bad),
        RESET_AFTER_FAULTS: _is_on_several_gpus(bad),
        "The hardware needs no action.": not faults,
    }
    yield from (step for step, is_asked in asked.items() if is_asked)


def _kernel_lines(bad: Sequence[NodeCondition]) -> Iterator[KernelLine]:
    """Yields the known lines of conditions that no Xid and no part explains."""
    for each in bad:
        is_explained = each.xids or each.severity is Severity.NOTE or any(_names_part(each, part) for part in OF_PARTS)
        if not is_explained and (line := kernel_line_in(f"{each.type} {each.message}")):
            yield line


def _is_on_several_gpus(bad: Sequence[NodeCondition]) -> bool:
    """Returns whether faults of an application named several GPUs: it may have lost their channels."""
    notes = [each.message for each in bad if each.severity is Severity.NOTE and each.xids]
    return len({address for text in notes for address in addresses_in(text)}) > 1


def _has_no_routes(condition: NodeCondition) -> bool:
    """Returns whether a cloud has not set the node's routes yet.

    cloud-provider, controllers/route: NoRouteCreated; Azure/AgentBaker #8797: NodeInitialization.
    """
    return condition.type == NETWORK and ("NoRouteCreated" in condition.message or "routes" in condition.message)


def _names_part(condition: NodeCondition, part: str) -> bool:
    """Returns whether the type or the reason names the part. A reason that is a code of DCGM names a GPU fault.

    EKS names the part in the reason alone: AcceleratedHardwareReady=False, FabricManagerNotRunning.
    """
    reason = condition.message.partition(": ")[0] if part != "dcgm" else ""
    return part in f"{condition.type} {reason}".lower()


def _needs_the_log(by: Collection[str]) -> bool:
    """Returns whether a detector reports without details. The kubelet and repair controllers do not count."""
    return DETECTOR in by or bool(set(by) - {DETECTOR, NVSENTINEL, EKS, GKE, NEBIUS, AUTOPILOT, "kubelet"})


def _recommended(bad: Sequence[NodeCondition]) -> list[str]:
    """Returns the recommendation of each reporter's message."""
    found: dict[str, dict[str, None]] = {}
    for each in bad:
        if each.recommended_action:
            found.setdefault(each.reporter, {})[each.recommended_action] = None
    return [f"{by} recommends {'; '.join(map(_recommends, those))}." for by, those in found.items()]


def _recommends(actions: str) -> str:
    return ", ".join(f"{one} ({RECOMMENDED[one]})" if one in RECOMMENDED else one for one in actions.split(", "))


def _dcgm_steps(faults: Sequence[NodeCondition]) -> Iterator[str]:
    """Yields the steps for errors of DCGM that a condition names by number."""
    for error in (dcgm_error_in(each.message) for each in faults if not each.xids):
        if error and error.step:
            yield error.step
        elif error and error.severity is DcgmSeverity.RESET:
            yield "Drain the node, then reset the GPU or reboot the node."


def _recovery_steps(faults: Sequence[NodeCondition]) -> Iterator[str]:
    """Yields the steps for the recovery action that an Xid 154 names, where its reporter recommends nothing."""
    for verdict in (
        verdict_of(each.message) for each in faults if RECOVERY in each.xids and not each.recommended_action
    ):
        if verdict.action and (steps := ACTIONS[verdict.action].steps):
            yield f"Xid {RECOVERY} ({verdict.title}): {' '.join(steps)}"


def _xid_steps(faults: Sequence[NodeCondition]) -> list[str]:
    """Returns the steps for the Xids that a condition names without an action."""
    xids = dict.fromkeys(xid for each in faults if not each.recommended_action for xid in each.xids)
    known = [xid for xid in xids if xid in XIDS and not is_applications(xid)]
    steps = {xid: ACTIONS[XIDS[xid].action].steps or (REMAP if xid == ROW_REMAP else ()) for xid in known}
    steps |= {xid: LOOKED_UP for xid in xids if xid not in XIDS}
    return [f"Xid {xid}: {' '.join(its)}" for xid, its in steps.items() if its][:SHOWN]
