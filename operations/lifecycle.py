"""The states of operations and of their nodes."""

from collections.abc import Mapping
from enum import StrEnum


class OperationState(StrEnum):
    PROPOSED = "proposed"  # another person has to approve it; nothing is written
    RUNNING = "running"  # nodes are started as the ledger allows
    PAUSED = "paused"  # no node is started or evicted; a person or too many failures paused it
    FINISHED = "finished"  # every node has a result
    CANCELLED = "cancelled"  # a person ended it; nodes without a result were left as they are


class NodeProgress(StrEnum):
    PENDING = "pending"  # not started: nothing was written to the node
    RUNNING = "running"  # a step is in progress; its reason says what it waits for
    DONE = "done"  # every step is done, read back from the cluster
    FAILED = "failed"  # a step cannot be done; a person may retry it
    CANCELLED = "cancelled"  # the operation was cancelled first


OPERATION_MOVES: Mapping[OperationState, frozenset[OperationState]] = {
    OperationState.PROPOSED: frozenset({OperationState.RUNNING, OperationState.CANCELLED}),
    OperationState.RUNNING: frozenset({OperationState.PAUSED, OperationState.FINISHED, OperationState.CANCELLED}),
    OperationState.PAUSED: frozenset({OperationState.RUNNING, OperationState.CANCELLED}),
    OperationState.FINISHED: frozenset({OperationState.RUNNING}),  # failed nodes are retried
    OperationState.CANCELLED: frozenset(),
}
NODE_MOVES: Mapping[NodeProgress, frozenset[NodeProgress]] = {
    NodeProgress.PENDING: frozenset({NodeProgress.RUNNING, NodeProgress.FAILED, NodeProgress.CANCELLED}),
    NodeProgress.RUNNING: frozenset({NodeProgress.DONE, NodeProgress.FAILED, NodeProgress.CANCELLED}),
    NodeProgress.DONE: frozenset(),
    NodeProgress.FAILED: frozenset({NodeProgress.PENDING}),  # a person retries it
    NodeProgress.CANCELLED: frozenset(),
}
NEW_NODE = "is_new_node"  # option of an operation on a node that was never in service; people cannot set it
AT_ONCE_MOST = 5  # nodes with a disruptive step at the same time, unless the asker said otherwise
IN_PROGRESS = frozenset({OperationState.PROPOSED, OperationState.RUNNING, OperationState.PAUSED})
UNFINISHED = frozenset({NodeProgress.PENDING, NodeProgress.RUNNING})
# What a person may ask for: the steps in order. A drain keeps new pods off first.
KINDS: Mapping[str, tuple[str, ...]] = {
    "quarantine": ("cordon",),
    "drain": ("cordon", "drain"),
    "release": ("uncordon",),
    "accept-uncordon": ("disown",),
    "test": ("test_job",),
    "label": ("label",),
    "note": ("note",),
    "debug": ("debug_pod",),
    "try-drain": ("eviction_trial",),
    "delete-pod": ("delete_pod",),
    "start-maintenance": ("start_maintenance",),
    "end-maintenance": ("end_maintenance",),
}
LEAVING_STEPS = ("cordon", "start_maintenance")  # they take a node out of service
# Steps that decide whether pods start or run on a node: its case follows them. Every other step leaves the case alone.
# In maintenance by NVSentinel, NVSentinel decides about pods.
CASE_STEPS = frozenset({"cordon", "drain", "uncordon", "disown"})
CASE_KINDS = tuple(kind for kind, steps in KINDS.items() if not CASE_STEPS.isdisjoint(steps))
ENDING_KINDS = ("release", "accept-uncordon")  # they end quarantines
UNDOING_KINDS: Mapping[str, tuple[str, ...]] = {  # the kinds of operations that undo a kind
    "quarantine": ENDING_KINDS, "drain": ENDING_KINDS, "label": ("label",),
    "start-maintenance": ("end-maintenance",),
    "release": ("quarantine", "drain"), "accept-uncordon": ("quarantine", "drain"),
}  # fmt: skip
TITLES: Mapping[str, str] = {
    "quarantine": "Quarantine", "drain": "Drain", "release": "Release", "accept-uncordon": "Accept uncordon",
    "test": "Test", "label": "Label pool", "note": "Note", "debug": "Debug pod", "try-drain": "Try drain",
    "delete-pod": "Evict past budget", "start-maintenance": "Ask NVSentinel for maintenance",
    "end-maintenance": "End maintenance",
}  # fmt: skip
