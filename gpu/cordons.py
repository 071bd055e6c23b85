"""The owner of a cordon, from the field manager that the API server recorded and NVSentinel's label.

Nobody records who removes a cordon. A field manager is a client, not a person: `kubectl` may be anybody.
"""

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from gpu.labels import (
    AUTOSCALER_GOING,
    CORDONED_BY,
    KURED_NEEDED,
    KURED_REBOOTS,
    OURS,
    SENTINEL_CORDON,
    SENTINEL_STATE,
    WAS_CORDONED,
)

NVSENTINEL, NVSENTINEL_CORDONS = "NVSentinel", "NVSentinel"  # NVSentinel's value in its label
SENTINEL_CORDON_MARKS = ("/cordon-by", "/cordon-reason", "/cordon-timestamp")
SENTINEL_EVENT = "quarantineHealthEvent"
SENTINEL_CORDONED = "quarantineHealthEventIsCordoned"
SENTINEL_PRE_EXISTING = "quarantineHealthEventCordonPreExisting"  # the node was cordoned before
SENTINEL_TAINTED = "quarantineHealthEventAppliedTaints"  # JSON
SENTINEL_VALIDATES = "nvsentinel.nvidia.com/validation-session"
SENTINEL_WORKS = frozenset({"draining", "remediating"})
OPERATORS = frozenset({"gpu-operator", "k8s-driver-manager", "driver-manager"})  # field managers
AUTOSCALER, KURED = "cluster-autoscaler", "kured"
AT_REST = ("", "upgrade-done")


def whose_cordon(manager: str, labels: Mapping[str, str]) -> str:
    """Returns a clause that follows *Cordoned*. `manager` is blank when the API server reports none."""
    by_label = f"the label {SENTINEL_CORDON} says {labels[SENTINEL_CORDON]}" if labels.get(SENTINEL_CORDON) else ""
    if manager:
        return f" by {manager}, as the API server has it{f'; {by_label}' if by_label else ''}"
    return f": {by_label}" if by_label else "; the API server does not show who set it"


def whose_other_cordon(annotations: Mapping[str, str], manager: str, labels: Mapping[str, str]) -> str:
    """Returns a clause that follows *Cordoned*, for a cordon without the mark of who asks."""
    if owner := annotations.get(CORDONED_BY):
        return f" by {owner}"
    return " without Quarterdeck's mark: somebody removed it" if manager == OURS else whose_cordon(manager, labels)


@dataclass(frozen=True)
class CordonedNode:
    name: str
    manager: str  # the field manager that set it; blank: not reported
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: Collection[str]  # taint keys
    reporters: Collection[str] = ()  # reporters of its faulty conditions
    upgrade_state: str = ""
    is_ready: bool | None = True


@dataclass(frozen=True)
class StaleCordon:
    """A cordon whose reason no longer exists."""

    by: str
    reason: str  # a clause: evidence that the reason no longer exists
    command: str  # removes the cordon and its marks


def sentinel_keeps(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Returns the mark by which NVSentinel keeps a cordoned node out of service. Blank: it does not.

    Its label alone is no evidence: it stays after a manual uncordon (NVIDIA/NVSentinel #1872).
    """
    if SENTINEL_VALIDATES in annotations:
        return SENTINEL_VALIDATES
    is_its = any(key.endswith("/cordon-by") and value == NVSENTINEL_CORDONS for key, value in labels.items())
    has_event = annotations.get(SENTINEL_EVENT, "") not in ("", "[]", "{}")
    return SENTINEL_EVENT if has_event and (is_its or SENTINEL_PRE_EXISTING in annotations) else ""


def sentinel_holds(labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
    """Returns whether NVSentinel has the node in its hands.

    Its label `cordon-by` is no evidence: it counts only beside the event (lifecycle R1), which is enough.
    """
    return SENTINEL_EVENT in annotations or bool(labels.get(SENTINEL_STATE))


def is_in_breakfix(annotations: Mapping[str, str], *, is_unschedulable: bool) -> bool:
    """Returns whether an uncordon cancels NVSentinel's break-fix: it counts the cordon as its own, and has an event.

    NVIDIA/NVSentinel, fault-quarantine/pkg/informer/node_informer.go (detectAndHandleManualUncordon), read 2026-11-30.
    """
    return is_unschedulable and SENTINEL_CORDONED in annotations and sentinel_events(annotations) != []


def sentinel_events(annotations: Mapping[str, str]) -> list[str]:
    """Returns NVSentinel's open events as canonical JSON, sorted: NVSentinel writes them in any order.

    What cannot be read is one event. Earlier versions wrote a single object (healthEventsAnnotation in its source).
    """
    text = annotations.get(SENTINEL_EVENT, "")
    try:
        events = json.loads(text) if text else []
    except ValueError:
        return [text]
    listed = events if isinstance(events, list) else [events] if events else []
    return sorted(json.dumps(event, sort_keys=True) for event in listed)


def event_title(event: str) -> str:
    """Returns "SysLogsXIDError (79)" for an event of `sentinel_events`."""
    with suppress(ValueError):
        read = json.loads(event)
        if isinstance(read, dict) and isinstance(check := read.get("checkName"), str) and check:
            codes = read.get("errorCode")
            listed = [str(code) for code in codes[:5]] if isinstance(codes, list) else []
            return f"{check[:60]} ({', '.join(listed)[:60]})" if listed else check[:60]
    return "an event that cannot be read"


def stale_cordon(node: CordonedNode) -> StaleCordon | None:
    """Returns the stale cordon. None: its reason still exists, or its owner is unknown."""
    if WAS_CORDONED in node.annotations or CORDONED_BY in node.annotations:
        return None  # must stay cordoned, or belongs to a plan, which has its own findings
    return next((cordon for detect in DETECTORS if (cordon := detect(node)) is not None), None)


def _nvsentinels(node: CordonedNode) -> StaleCordon | None:
    """Detects NVSentinel's cordon that outlived all faults (NVIDIA/NVSentinel #458, #363, #1872). Its prefix is
    configurable."""
    marks = [key for key in node.labels if key.endswith(SENTINEL_CORDON_MARKS)]
    is_its = any(key.endswith("cordon-by") and node.labels[key] == NVSENTINEL_CORDONS for key in marks)
    is_at_work = node.labels.get(SENTINEL_STATE, "") in SENTINEL_WORKS or any(
        key in node.annotations for key in (SENTINEL_PRE_EXISTING, SENTINEL_VALIDATES)
    )
    if not is_its or is_at_work or NVSENTINEL in node.reporters:
        return None
    events = node.annotations.get(SENTINEL_EVENT, "")
    reason = "none of its conditions reports a fault"
    if events and events not in ("[]", "{}"):
        reason += f", although its annotation {SENTINEL_EVENT} still has an event"
    removals = " ".join(f"{key}-" for key in sorted(marks))
    return StaleCordon(NVSENTINEL, reason, f"kubectl uncordon {node.name}; kubectl label node {node.name} {removals}")


def _operators(node: CordonedNode) -> StaleCordon | None:
    if node.manager not in OPERATORS or node.upgrade_state not in AT_REST:
        return None
    state = f"the upgrade state is {node.upgrade_state}" if node.upgrade_state else "the node has no upgrade state"
    return StaleCordon("the GPU operator", state, f"kubectl uncordon {node.name}")


def _autoscalers(node: CordonedNode) -> StaleCordon | None:
    if node.manager != AUTOSCALER or not set(AUTOSCALER_GOING).isdisjoint(node.taints):
        return None
    reason = "its taint ToBeDeletedByClusterAutoscaler was removed"
    return StaleCordon("the Cluster Autoscaler", reason, f"kubectl uncordon {node.name}")


def _kureds(node: CordonedNode) -> StaleCordon | None:
    """Detects kured's cordon. Its annotations exist only with --annotate-nodes."""
    is_done = KURED_NEEDED in node.annotations and KURED_REBOOTS not in node.annotations
    if node.manager != KURED or not is_done or not node.is_ready:
        return None
    reason = f"its annotation {KURED_REBOOTS} was removed and the node is ready"
    return StaleCordon("kured", reason, f"kubectl uncordon {node.name}")


DETECTORS = (_nvsentinels, _operators, _autoscalers, _kureds)
