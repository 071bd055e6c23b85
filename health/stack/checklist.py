"""The checklist of a GPU node: from the hardware on its bus to GPUs that pods can get. Pure.

In the order in which the stack comes up; the first "no" is usually the cause of those after it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fleet.models import Node
from gpu.labels import DEPLOY_PREFIX, pci_devices
from gpu.operands import (
    AMD_DRA,
    AMD_PLUGIN,
    DEVICE_PLUGIN,
    DRA_DRIVER,
    DRIVER,
    DRIVER_INSTALLER,
    GAUDI_PLUGIN,
    GFD,
    INTEL_DRA,
    INTEL_PLUGIN,
    KMM,
    NFD,
    VALIDATOR,
)  # fmt: skip
from health.stack.causes import Cause, Weight
from health.stack.node_operands import OperandOnNode
from health.stack.node_rows import NodeStack
from wording.lists import names
from wording.numbers import count

NFD_PREFIX = "feature.node.kubernetes.io/"
DRIVERS = (DRIVER, DRIVER_INSTALLER, KMM)
PLUGINS = (DEVICE_PLUGIN, AMD_PLUGIN, INTEL_PLUGIN, GAUDI_PLUGIN)
DRA_PLUGINS = (DRA_DRIVER, AMD_DRA, INTEL_DRA)


class ChecklistAnswer(StrEnum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ChecklistItem:
    key: str
    title: str
    answer: ChecklistAnswer
    sentence: str  # the evidence, the cause, or why it is unknown
    steps: tuple[str, ...] = ()  # to make it a yes
    at: datetime | None = None  # time of the evidence; None: that of the whole checklist


FoundAnswer = tuple[ChecklistAnswer, str, Sequence[str]]


def checklist_of(node: Node, stack: NodeStack) -> list[ChecklistItem]:
    """Returns the answers, in the order in which the stack comes up."""
    items = []
    for key, (title, check) in CHECKS.items():
        answer, sentence, steps = check(node, stack)
        items.append(ChecklistItem(key, title, answer, sentence, tuple(steps)))
    return items


def has_checklist(node: Node) -> bool:
    """Returns whether the node has GPUs, or its bus shows one."""
    return node.is_gpu_node or next(pci_devices(node.labels), None) is not None


def _answer_yes(sentence: str) -> FoundAnswer:
    return ChecklistAnswer.YES, sentence, ()


def _answer_no(sentence: str, *steps: str) -> FoundAnswer:
    return ChecklistAnswer.NO, sentence, steps


def _unknown(sentence: str, *steps: str) -> FoundAnswer:
    return ChecklistAnswer.UNKNOWN, sentence, steps


def _answer_of_cause(cause: Cause) -> FoundAnswer:
    """Returns the answer that a cause of an operand gives."""
    answer = ChecklistAnswer.UNKNOWN if cause.weight is Weight.UNKNOWN else ChecklistAnswer.NO
    return answer, cause.sentence, cause.steps


def _hardware(node: Node, _: NodeStack) -> FoundAnswer:
    if found := next(pci_devices(node.labels), None):
        return _answer_yes(f"Node Feature Discovery sees a GPU on the PCI bus ({found.string}).")
    if node.physical_gpus:
        return _answer_yes(f"The node has registered {count(node.physical_gpus, 'GPU')}.")
    if any(key.startswith(NFD_PREFIX) for key in node.labels):
        return _answer_no(
            "Node Feature Discovery runs here and sees no GPU on the PCI bus.",
            "Run lspci -d 10de: on the node.",
            "If it lists no GPU, power-cycle the node and look at firmware, passthrough and seating.",
        )
    return _unknown("Node Feature Discovery has not labelled this node.", "Deploy Node Feature Discovery on the node.")


def _labels(node: Node, stack: NodeStack) -> FoundAnswer:
    if node.gpu_product:
        return _answer_yes(f"The labels name {node.gpu_product}.")
    rows = [row for row in stack.operands if row.operand in (NFD, GFD)]
    if cause := _first_fault(rows):
        return _answer_of_cause(cause)
    if not rows:
        return _answer_no(
            "No label names the product, and no pod of feature discovery is here.", "Deploy feature discovery."
        )
    return _answer_no("No label names the product.", "Read the log of GPU feature discovery on the node.")


def _check_skip_labels(node: Node, stack: NodeStack) -> FoundAnswer:
    by_dra = {f"{DEPLOY_PREFIX}{DEVICE_PLUGIN}"} if any(row.operand in DRA_PLUGINS for row in stack.operands) else set()
    off = sorted(
        key
        for key, value in node.labels.items()
        if key.startswith(DEPLOY_PREFIX) and value == "false" and key not in by_dra
    )
    if not off:
        return _answer_yes("No label turns off an operand.")
    steps = [f"kubectl label node {node.name} {key}-" for key in off[:5]]
    return _answer_no(f"Turned off by {names([f'{key}=false' for key in off])}.", *steps)


def _taints(node: Node, stack: NodeStack) -> FoundAnswer:
    if cause := next((row.cause for row in stack.operands if row.cause and row.cause.key == "tainted"), None):
        return _answer_of_cause(cause)
    if not node.taints:
        return _answer_yes("The node has no taints.")
    if not stack.operands:
        return _unknown("No operand of the GPU stack was seen, so nothing was compared with the node's taints.")
    return _answer_yes(f"Every operand that was seen tolerates {count(len(node.taints), 'taint')}.")


def _scheduled(_: Node, stack: NodeStack) -> FoundAnswer:
    wanted = [row for row in stack.operands if row.is_wanted]
    missing = [row for row in wanted if not row.pod]
    if missing:
        answer, sentence, steps = _answer_of_cause(missing[0].cause) if missing[0].cause else _answer_no("")
        return answer, f"No pod here: {names([row.title for row in missing])}. {sentence}".strip(), steps
    if not wanted:
        return _unknown("No operand of the GPU stack should run here, or no operand was seen.")
    return _answer_yes(f"{count(len(wanted), 'operand')} of {len(wanted)} have a pod here.")


def _driver_pod(node: Node, stack: NodeStack) -> FoundAnswer:
    found = _pod_of(DRIVERS, stack)
    if found is not None:
        return found
    version = node.reported_driver
    return (
        _answer_yes(f"No driver pod is needed: the host has driver {version}.")
        if version
        else _unknown("No driver pod was seen.")
    )


def _plugin_pod(_: Node, stack: NodeStack) -> FoundAnswer:
    return _pod_of(PLUGINS, stack) or _pod_of(DRA_PLUGINS, stack) or _unknown("No device plugin was seen.")


def _pod_of(operands: Sequence[str], stack: NodeStack) -> FoundAnswer | None:
    """Returns the answer for the pod of one of these operands. None: none is here or wanted."""
    rows = [row for row in stack.operands if row.operand in operands]
    if not rows:
        return None
    if silent := next((row for row in rows if row.is_silent), None):
        return _unknown(f"The node does not report. Last seen: {silent.pod}, {silent.status or 'ready'}.")
    if ready := next((row for row in rows if row.is_ready), None):
        is_wrong = ready.cause is not None and ready.cause.weight is Weight.WRONG
        return _answer_of_cause(ready.cause) if ready.cause and is_wrong else _answer_yes(f"{ready.pod} is ready.")
    chosen = next((row.cause for row in rows if row.cause and row.cause.weight is Weight.CHOSEN), None)
    cause = _first_fault(rows)
    if cause is None and chosen is not None:
        return _answer_yes(f"No pod should run here. {chosen.sentence}")
    return _answer_of_cause(cause) if cause else _answer_no(f"{rows[0].pod} is not ready.")


def _first_fault(rows: Iterable[OperandOnNode]) -> Cause | None:
    """Returns the first cause that is not somebody's choice."""
    return next((row.cause for row in rows if row.cause and row.cause.weight is not Weight.CHOSEN), None)


def _module(node: Node, stack: NodeStack) -> FoundAnswer:
    if node.reported_driver:
        return _answer_yes(f"The node reports driver {node.reported_driver}.")
    if any(row.operand == VALIDATOR and row.is_ready for row in stack.operands):
        return _answer_yes("The validator has used the driver.")
    if cause := _first_fault(row for row in stack.operands if row.operand in DRIVERS):
        return _answer_of_cause(cause)
    return _unknown(
        "Nothing reports a driver version.",
        "Run nvidia-smi and lsmod | grep nvidia on the node.",
        "After a driver was installed on the host: reboot the node.",
    )


def _runtime_class(_: Node, stack: NodeStack) -> FoundAnswer:
    missing = next(
        (row.cause for row in stack.operands if row.cause and "RuntimeClass" in _cause_text(row.cause)), None
    )
    if missing is not None:
        return _answer_of_cause(missing)
    if stack.runtime_classes:
        return _answer_yes(f"A pod of the stack runs here with {names(sorted(stack.runtime_classes))}.")
    return _unknown(
        "Quarterdeck does not read RuntimeClasses, and no pod of the stack here names one.",
        "Run kubectl get runtimeclass nvidia.",
    )


def _cause_text(cause: Cause) -> str:
    return f"{cause.sentence} {cause.quote}"


def _allocatable(node: Node, stack: NodeStack) -> FoundAnswer:
    amounts = {name: amount for name, amount in node.allocatable.items() if amount}
    if amounts:
        listed = names([f"{name}: {amount}" for name, amount in sorted(amounts.items())])
        missing = f" Missing: {node.missing_in_words}." if node.missing_in_words else ""
        return _answer_yes(f"{listed}.{missing}")
    if any(row.operand in DRA_PLUGINS and row.is_ready for row in stack.operands):
        return _unknown("DRA offers the GPUs. Allocatable does not count them.")
    if cause := _first_fault(row for row in stack.operands if row.operand in PLUGINS):
        return _answer_of_cause(cause)
    if any(node.capacity.values()):
        return _answer_no(
            f"The node has {names(sorted(node.capacity))} in its capacity, but all devices are unhealthy.",
            "Read the log of the device plugin and the findings of the node's GPUs.",
        )
    return _answer_no("The node offers no GPU.", "Read the first “no” above.")


CHECKS: dict[str, tuple[str, Callable[[Node, NodeStack], FoundAnswer]]] = {
    "hardware": ("Hardware visible", _hardware),
    "labels": ("Vendor and product labels", _labels),
    "not-skipped": ("Not labelled to skip operands", _check_skip_labels),
    "taints": ("No taint blocks an operand", _taints),
    "scheduled": ("Operands scheduled", _scheduled),
    "driver-pod": ("Driver pod", _driver_pod),
    "module": ("Driver loaded", _module),
    "runtime-class": ("RuntimeClass", _runtime_class),
    "plugin-pod": ("Device plugin pod", _plugin_pod),
    "allocatable": ("Allocatable above 0", _allocatable),
}
