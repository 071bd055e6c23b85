"""Faults that others report as node conditions: the kubelet, node-problem-detector, NVSentinel, a cloud.

Without such a detector nobody reads the kernel's log, and Xids that DCGM does not export go unnoticed.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.conditions import (
    AFTER_A_BOOT,
    DCGM_LOST,
    DETECTOR,
    EKS,
    GKE,
    IMEX_UNHEALTHY,
    NEBIUS,
    NETWORK,
    NO_SUBNET_MANAGER,
    NVSENTINEL,
    RUNS_OUT,
    USUAL_DURING_UPGRADE,
    is_applications,
)
from gpu.xids import XIDS
from health.rules.base import NODE, NODES, RANKS, NodeCondition, NodeFacts, Severity, Wrong
from health.rules.gpus.xid import DO
from wording.instants import to_the_minute
from wording.lists import names
from wording.numbers import either

SENTENCE_CHARS = 460  # of all messages together; Evidence has them whole
SHOWN = 4
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


@dataclass(frozen=True)
class NodeConditions:
    key: ClassVar[str] = "node-conditions"
    title: ClassVar[str] = "Bad conditions"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=1)

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        bad = sorted(
            (each for each in node.conditions if not (node.is_changing and _is_usual_during_upgrade(each))),
            key=lambda each: RANKS[each.severity.value],
        )
        if not bad:
            return None
        by = {each.reporter for each in bad}
        start = f"{' and '.join(sorted(by))} {either(len(by), 'says', 'say')} of {node.name}: "
        return Wrong(
            bad[0].severity,
            f"{start}{_messages(bad, SENTENCE_CHARS - len(start))}.",
            _action(bad),
            {each.type: each.message for each in bad},
            why=" ".join(sorted(f"{each.title} {each.recommended_action} {each.xids or ''}".strip() for each in bad)),
            probable_cause=_probable_cause(bad, node),
        )


def _is_usual_during_upgrade(condition: NodeCondition) -> bool:
    return condition.type in USUAL_DURING_UPGRADE or condition.message.startswith(DCGM_LOST)


def _messages(bad: Sequence[NodeCondition], most: int) -> str:
    """Returns each condition's message. Long ones are cut in the middle, since the action is at the end."""
    shown = bad[:SHOWN]
    each_most = most // len(shown) - max(len(each.title) for each in shown) - len(" (); ")
    parts = [f"{each.title} ({_fit(each.message, each_most)})" if each.message else each.title for each in shown]
    more = len(bad) - len(shown)
    return "; ".join(parts) + (f"; {more} more" if more else "")


def _fit(text: str, most: int) -> str:
    text = text.rstrip(".; ")
    if len(text) <= most:
        return text
    half = max((most - 3) // 2, 20)
    return f"{text[:half]} … {text[-half:]}"


def _probable_cause(bad: Sequence[NodeCondition], node: NodeFacts) -> str:
    types = {each.type for each in bad}
    if not AFTER_A_BOOT.isdisjoint(types):
        boot = f"it booted at {to_the_minute(node.booted_at)}, and" if node.booted_at else "after a boot"
        return f"The kubelet or its container runtime starts again and again: {boot} the two may race."
    if RUNS_OUT.issuperset(types):
        return "The machine runs out of a resource."
    parts = []
    if any(IMEX_UNHEALTHY in each.message for each in bad):
        parts.append(
            "IMEX does not run while no ComputeDomain is active, and DCGM's watch of NVLink reports that. It is no "
            "fault of the NVLink hardware."
        )
    if any(NO_SUBNET_MANAGER in each.message for each in bad):
        parts.append(
            "/dev/infiniband/issm* is for a subnet manager alone, and some providers make none: programs use RDMA "
            "without. It is no fault of the network card."
        )
    if any(each.message.startswith(DCGM_LOST) for each in bad):
        parts.append(
            "The agent lost DCGM's host engine: that says nothing of a GPU. It keeps the condition when DCGM is back."
        )
    xids = sorted({xid for each in bad if each.severity is Severity.NOTE for xid in each.xids if is_applications(xid)})
    if xids:
        parts.append(f"An application failed: no GPU is blamed for Xid {names([str(xid) for xid in xids])}.")
    return " ".join(parts)


def _action(bad: Sequence[NodeCondition]) -> str:
    """Returns the actions against each fault, the first to do first."""
    faults = [each for each in bad if each.severity is not Severity.NOTE]
    types, by = {each.type for each in bad}, {each.reporter for each in faults}
    rest = types - AFTER_A_BOOT
    by_detector = {each.reporter for each in bad if each.type in rest}
    asked = {
        "Read both logs (journalctl -u kubelet -u containerd) and restart the runtime first.": rest != types,
        **dict.fromkeys(_recommended(bad), True),
        **dict.fromkeys(_of_xids(faults), True),
        "Follow NVSentinel's actions: if its quarantine is enabled, it cordons the node itself.": NVSENTINEL in by,
        "Look at the pod dcgm-server on it. Where that runs, delete the agent's pod on it: the condition is written "
        "anew.": any(each.message.startswith(DCGM_LOST) for each in bad),
        "GKE's condition stays until the node's machine is started again.": any(each.reporter == GKE for each in bad),
        "With auto repair on EKS reboots or replaces the node by itself.": EKS in by,
        "Nebius cordons, drains and restarts the node by itself.": NEBIUS in by,
        "Find the processes that use up the resource before pods are evicted.": bool(rest & RUNS_OUT),
        "Look at the pods of the cluster's network plugin on it.": NETWORK in rest,
        "Look at the node's kernel log and events.": _needs_the_log(by_detector),
        "The hardware needs no action.": not faults,
    }
    return " ".join(sentence for sentence, is_asked in asked.items() if is_asked)


def _needs_the_log(by: Collection[str]) -> bool:
    """Returns whether a detector reports without details. The kubelet and repair controllers do not count."""
    return DETECTOR in by or bool(set(by) - {DETECTOR, NVSENTINEL, EKS, GKE, NEBIUS, "kubelet"})


def _recommended(bad: Sequence[NodeCondition]) -> list[str]:
    """Returns the recommendation of each reporter's message."""
    found: dict[str, dict[str, None]] = {}
    for each in bad:
        if each.recommended_action:
            found.setdefault(each.reporter, {})[each.recommended_action] = None
    return [f"{by} recommends {'; '.join(map(_recommends, those))}." for by, those in found.items()]


def _recommends(actions: str) -> str:
    return ", ".join(f"{one} ({RECOMMENDED[one]})" if one in RECOMMENDED else one for one in actions.split(", "))


def _of_xids(faults: Sequence[NodeCondition]) -> list[str]:
    """Returns the actions of the Xids that a condition names without an action."""
    xids = dict.fromkeys(xid for each in faults if not each.recommended_action for xid in each.xids)
    known = [XIDS[xid] for xid in xids if xid in XIDS and not is_applications(xid)]
    return [f"Xid {each.number}: {DO[each.action]}" for each in known if each.action in DO][:SHOWN]
