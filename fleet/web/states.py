"""The glyph, word and sentence for states of nodes and pods. Pure: reads rows, makes no query."""

from dataclasses import dataclass
from datetime import datetime

from fleet.allocation.amounts import offers_of
from fleet.models import Node, Pod
from fleet.states.node import REBOOTING, TITLES, NodeState
from fleet.states.pod import PodState
from wording.instants import clock, to_the_minute
from wording.numbers import count

GLYPHS: dict[NodeState, str] = {
    NodeState.READY: "ok",
    NodeState.UNKNOWN: "unknown",
    NodeState.NOT_READY: "bad",
    NodeState.UPGRADE_FAILED: "bad",
    NodeState.GPUS_MISSING: "warn",
    NodeState.UPGRADING: "changing",
    NodeState.CORDONED: "cordoned",
    NodeState.HELD: "held",
    NodeState.RECONFIGURING: "changing",
    NodeState.HAS_FINDINGS: "warn",
}
# A critical finding ranks these as high as down.
NAMED_BY_THE_WORST = frozenset({NodeState.GPUS_MISSING, NodeState.HAS_FINDINGS})
POD_GLYPHS: dict[PodState, str] = {
    PodState.UNKNOWN: "unknown",
    PodState.TERMINATING: "changing",
    PodState.DONE: "ok",
    PodState.FAILED: "bad",
    PodState.FAILING: "bad",
    PodState.READY: "ok",
    PodState.NOT_READY: "warn",
    PodState.STARTING: "changing",
    PodState.PENDING: "waiting",
    PodState.REJECTED: "bad",
}
# The upgrade controller names a step by the next requirement (k8s-operator-libs, upgrade/consts.go).
STEPS: dict[str, str] = {
    "upgrade-done": "done",
    "upgrade-failed": "failed",
    "upgrade-required": "waits for its turn",
    "cordon-required": "cordoning",
    "wait-for-jobs-required": "waiting for jobs",
    "pod-deletion-required": "evicting GPU pods",
    "drain-required": "draining",
    "node-maintenance-required": "in maintenance",
    "post-maintenance-required": "after maintenance",
    "pod-restart-required": "restarting the driver",
    "validation-required": "validating",
    "uncordon-required": "uncordoning",
}


@dataclass(frozen=True)
class NodeStateOnPage:
    code: NodeState
    glyph: str
    word: str
    reason: str = ""
    since: datetime | None = None


def state_of(node: Node, *, is_live: bool = True) -> NodeStateOnPage:
    """Returns the state. `is_live` False: the node's last known state."""
    seen = _state_of(node)
    return seen if is_live else NodeStateOnPage(seen.code, "unseen", f"was {seen.word}", seen.reason)


def _state_of(node: Node) -> NodeStateOnPage:
    code = node.state
    return NodeStateOnPage(
        code, _glyph(node, code), _state_word(node, code), _reason(node, code), _state_since(node, code)
    )


def _glyph(node: Node, code: NodeState) -> str:
    return "bad" if node.critical and code in NAMED_BY_THE_WORST else GLYPHS[code]


def _state_since(node: Node, code: NodeState) -> datetime | None:
    if code is NodeState.RECONFIGURING:
        return node.mig_changing_since
    return node.ready_since if code in {NodeState.READY, NodeState.NOT_READY, NodeState.UNKNOWN} else None


def _state_word(node: Node, code: NodeState) -> str:
    if code is NodeState.UPGRADING:
        return step_of(node.upgrade_state)
    if code is NodeState.HAS_FINDINGS:
        return _findings(node)
    if code is NodeState.GPUS_MISSING:
        return _missing_text(node)
    return TITLES[code].lower()


def _findings(node: Node) -> str:
    if node.critical and node.critical == node.unresolved:
        return count(node.critical, "critical finding")
    return count(node.unresolved, "finding") + (f", {node.critical} critical" if node.critical else "")


def _missing_text(node: Node) -> str:
    critical = f", {count(node.critical, 'critical finding')}" if node.critical else ""
    return _units_missing(node) + critical


def _units_missing(node: Node) -> str:
    whole = next((offer for offer in offers_of(node, knows_pods=False) if not offer.unit), None)
    if whole and whole.missing == node.gpus_missing:  # whole ones only
        return f"{whole.missing} of {whole.expected} GPUs missing"
    return f"{node.missing_in_words} missing"


def _reason(node: Node, code: NodeState) -> str:
    if code is NodeState.NOT_READY:
        return node.not_ready_reason
    if code is NodeState.UNKNOWN:
        return node.not_ready_reason or "The kubelet stopped reporting, so the state of this node is unknown."
    if code is NodeState.UPGRADE_FAILED:
        return (
            "The operator gave up on this node's driver change. The node occupies an upgrade slot until it is "
            "relabelled."
        )
    if code is NodeState.GPUS_MISSING:
        return " ".join(node.unhealthy) or "No label, slice or kubelet identifies the GPU. A finding may."
    if code is NodeState.RECONFIGURING:
        return _reconfiguring(node)
    if code is NodeState.HELD:
        return "Ready, and held from the operator's upgrade controller."
    return "The node takes no new pods." if code is NodeState.CORDONED else ""


def _reconfiguring(node: Node) -> str:
    """Describes the MIG manager's work: action, layout, start."""
    doing = "reboots the node to change" if node.mig_config_state == REBOOTING else "is changing"
    since = f", seen since {to_the_minute(node.mig_changing_since)}" if node.mig_changing_since else ""
    layout = node.mig_config or "a layout that its label does not name"
    return f"The MIG manager {doing} its MIG layout to {layout}{since}: its GPUs are unavailable until then."


def step_of(upgrade_state: str) -> str:
    """Returns the operator's step as text for people, or its own word."""
    return STEPS.get(upgrade_state, upgrade_state)


@dataclass(frozen=True)
class PodWord:
    glyph: str
    word: str


def word_of(pod: Pod, *, now: datetime, as_of: datetime | None = None) -> PodWord:
    """Returns kubectl's word with our meaning. `as_of` is the last update unless live."""
    state = pod.state(now=now)
    word = _pod_word(pod.status or pod.phase or "not said", state, is_ready=pod.is_ready)
    return (
        PodWord(POD_GLYPHS[state], word)
        if as_of is None
        else PodWord("unseen", f"was {word}, as of {clock(as_of, now=now)}")
    )


def _pod_word(status: str, state: PodState, *, is_ready: bool) -> str:
    if state is PodState.UNKNOWN:
        return f"Unknown, last {status}"
    if status != "Running":
        return status
    if state is PodState.FAILING:
        return "Running, between two crashes" if is_ready else "Running, not ready"
    return "Running, not ready" if state is PodState.NOT_READY else status
