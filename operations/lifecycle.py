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
    RUNNING = "running"  # a step is in progress; its reason names the condition it waits for
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
    NodeProgress.RUNNING: frozenset(
        {NodeProgress.DONE, NodeProgress.FAILED, NodeProgress.CANCELLED, NodeProgress.PENDING}  # pending: it yields
    ),
    NodeProgress.DONE: frozenset(),
    NodeProgress.FAILED: frozenset({NodeProgress.PENDING}),  # a person retries it
    NodeProgress.CANCELLED: frozenset(),
}
NEW_NODE = "is_new_node"  # option of an operation on a node that was never in service; people cannot set it
AT_ONCE_MOST = 5  # nodes with a disruptive step at the same time, by default
IN_PROGRESS = frozenset({OperationState.PROPOSED, OperationState.RUNNING, OperationState.PAUSED})
UNFINISHED = frozenset({NodeProgress.PENDING, NodeProgress.RUNNING})
