"""Whose a cordon is, as far as the cluster says it: the field manager that the API server kept, and NVSentinel's label.

Who takes a cordon off is kept nowhere. A field manager is a client, and no person: `kubectl` is whoever uses it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gpu.labels import (
    AUTOSCALER_GOING,
    CORDONED_BY,
    KURED_NEEDED,
    KURED_REBOOTS,
    SENTINEL_CORDON,
    SENTINEL_STATE,
    WAS_CORDONED,
)

NVSENTINEL, NVSENTINEL_CORDONS = "NVSentinel", "NVSentinel"  # what it calls itself in its label
SENTINEL_CORDON_MARKS = ("/cordon-by", "/cordon-reason", "/cordon-timestamp")
SENTINEL_EVENT = "quarantineHealthEvent"
SENTINEL_PRE_EXISTING = "quarantineHealthEventCordonPreExisting"  # somebody had cordoned it before
SENTINEL_VALIDATES = "nvsentinel.nvidia.com/validation-session"
SENTINEL_WORKS = frozenset({"draining", "remediating"})
OPERATORS = frozenset({"gpu-operator", "k8s-driver-manager", "driver-manager"})  # field managers
AUTOSCALER, KURED = "cluster-autoscaler", "kured"
AT_REST = ("", "upgrade-done")


def whose_cordon(manager: str, labels: Mapping[str, str]) -> str:
    """As a sentence goes on after *Cordoned*. `manager`: blank where the API server says none."""
    marked = f"the label {SENTINEL_CORDON} says {labels[SENTINEL_CORDON]}" if labels.get(SENTINEL_CORDON) else ""
    if manager:
        return f" by {manager}, as the API server has it{f'; {marked}' if marked else ''}"
    return f": {marked}" if marked else "; the API server does not say by whom"


@dataclass(frozen=True)
class CordonedNode:
    """What a cordoned node tells of its cordon."""

    name: str
    manager: str  # the field manager that set it; blank: the API server does not say
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: Collection[str]  # their keys
    reporters: Collection[str] = ()  # of its conditions that report a fault
    upgrade_state: str = ""
    is_ready: bool | None = True


@dataclass(frozen=True)
class StaleCordon:
    """A cordon whose reason is gone, as far as the cluster tells."""

    by: str
    reason: str  # why the reason is taken to be gone, in a clause
    command: str  # that takes it off, with the marks beside it


def stale_cordon(node: CordonedNode) -> StaleCordon | None:
    """None: its reason is there, or nothing tells whose the cordon is."""
    if WAS_CORDONED in node.annotations or CORDONED_BY in node.annotations:
        return None  # it is to stay cordoned, or a plan's, which has findings of its own
    return next((found for tell in TELLERS if (found := tell(node)) is not None), None)


def _nvsentinels(node: CordonedNode) -> StaleCordon | None:
    """NVIDIA/NVSentinel #458, #363, #1872: it stays cordoned though all conditions are well. Its prefix can be set."""
    marks = [key for key in node.labels if key.endswith(SENTINEL_CORDON_MARKS)]
    is_its = any(key.endswith("cordon-by") and node.labels[key] == NVSENTINEL_CORDONS for key in marks)
    is_at_work = node.labels.get(SENTINEL_STATE, "") in SENTINEL_WORKS or any(
        key in node.annotations for key in (SENTINEL_PRE_EXISTING, SENTINEL_VALIDATES)
    )
    if not is_its or is_at_work or NVSENTINEL in node.reporters:
        return None
    events = node.annotations.get(SENTINEL_EVENT, "")
    reason = "no condition of it reports a fault any more"
    if events and events not in ("[]", "{}"):
        reason += f", although its annotation {SENTINEL_EVENT} still has an event"
    gone = " ".join(f"{key}-" for key in sorted(marks))
    return StaleCordon(NVSENTINEL, reason, f"kubectl uncordon {node.name}; kubectl label node {node.name} {gone}")


def _operators(node: CordonedNode) -> StaleCordon | None:
    if node.manager not in OPERATORS or node.upgrade_state not in AT_REST:
        return None
    state = f"the upgrade state is {node.upgrade_state}" if node.upgrade_state else "the node has no upgrade state"
    return StaleCordon("the GPU operator", state, f"kubectl uncordon {node.name}")


def _autoscalers(node: CordonedNode) -> StaleCordon | None:
    if node.manager != AUTOSCALER or not set(AUTOSCALER_GOING).isdisjoint(node.taints):
        return None
    reason = "its taint ToBeDeletedByClusterAutoscaler is gone"
    return StaleCordon("the Cluster Autoscaler", reason, f"kubectl uncordon {node.name}")


def _kureds(node: CordonedNode) -> StaleCordon | None:
    """Its annotations are there only where they are switched on (--annotate-nodes)."""
    is_done = KURED_NEEDED in node.annotations and KURED_REBOOTS not in node.annotations
    if node.manager != KURED or not is_done or not node.is_ready:
        return None
    reason = f"its annotation {KURED_REBOOTS} is gone and the node is ready"
    return StaleCordon("kured", reason, f"kubectl uncordon {node.name}")


TELLERS = (_nvsentinels, _operators, _autoscalers, _kureds)
