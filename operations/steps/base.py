"""A step: one kind of act on a node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar

from fleet.models import Cluster, Node
from kube import client
from kube.structs import NodeSeen
from operations import node_writer
from operations.external_owner import external_owners
from operations.models import Operation, OperationNode
from operations.restraints import Veto
from operations.steps.nodes_in_progress import NodesInProgress
from operations.steps.options import StepOption

# In the progress of a failed node: the failure is no surprise, so it does not count towards the pause of the operation.
IS_EXPECTED = "is_expected"
HELD = "Held by another"  # before the sentence about the controller that works on a node
QUIET_AT_ONCE_MOST = 200  # nodes without a disruptive step, such as cordons, in one round


class StepOutcome(StrEnum):
    DONE = "done"  # read back from the cluster
    WAIT = "wait"  # run it again
    YIELD = "yield"  # nothing is written, and another controller has the node: it is pending again, and free meanwhile
    FAILED = "failed"  # it cannot be done; a person decides


@dataclass(frozen=True)
class StepResult:
    outcome: StepOutcome
    reason: str  # one sentence
    progress: dict[str, Any] = field(default_factory=dict)
    again_after: timedelta = timedelta(seconds=5)


def done_result(reason: str, **progress: Any) -> StepResult:
    return StepResult(StepOutcome.DONE, reason, progress)


def wait(reason: str, *, again_after: timedelta = timedelta(seconds=5), **progress: Any) -> StepResult:
    return StepResult(StepOutcome.WAIT, reason, progress, again_after)


def yielded(reason: str) -> StepResult:
    return StepResult(StepOutcome.YIELD, reason)


def failed(reason: str, **progress: Any) -> StepResult:
    return StepResult(StepOutcome.FAILED, reason, progress)


def waits_for(operation_id: int) -> str:
    """Returns the reason of a node that waits for the end of another operation there."""
    return f"Operation {operation_id} is in progress on the node."


@dataclass(frozen=True)
class NodeWork:
    """The access of one step to one node during one round."""

    operation: Operation
    node: OperationNode
    connection: client.Connection
    clock: Callable[[], datetime]
    # Call it before each write. It raises `LostRace` if the operation was paused or cancelled, a stop or a freeze is in
    # force, or another worker has the turn, and `Vetoed` for a veto.
    guard: Callable[[], None]
    beside: NodesInProgress  # the nodes of this round, this one among them: they share its evictions

    def read_node(self) -> NodeSeen:
        """Returns the node as the API server shows it.

        :raises NotWritten: when another node has its name; the round records that the step failed
        """
        return node_writer.read_node(self.connection, self.node.node_uid, self.node.node_name)

    def change_node(self, wanted: Callable[[NodeSeen], client.Patch]) -> NodeSeen:
        """Patches the node under the guard, and returns it as it is then.

        :raises NotWritten: as `node_writer.change_node` does; the round records that the step failed
        """
        return node_writer.change_node(
            self.connection, self.node.node_uid, self.node.node_name, wanted, before_write=self.guard
        )


class NodeStep(ABC):
    """One kind of act. `run` is safe to repeat, and returns DONE only for what was read back."""

    key: ClassVar[str]
    options: ClassVar[Sequence[StepOption]] = ()  # that it takes from whoever asks for it
    effect: ClassVar[str] = "Running pods stay."  # of the preview, after the nodes and GPUs
    needs_seen: ClassVar[bool] = False  # a start names the impact that the asker saw
    evicts: ClassVar[bool] = False  # pods leave the node
    needs_place: ClassVar[bool] = False  # waits for a free place in the budgets of the node's failure domains
    is_dry_run: ClassVar[bool] = False  # it writes nothing, so the asker confirms no number of nodes
    at_once: ClassVar[int] = QUIET_AT_ONCE_MOST  # nodes of an operation, if it needs no place
    takes_node: ClassVar[bool] = True  # the node is its own in the ledger while it runs
    needs_approval: ClassVar[str] = ""  # why another person approves it, whatever the number of nodes; blank: nobody
    waits_for_freeze: ClassVar[bool] = False  # a freeze of the node's cluster or pool holds it back
    outlasts_freeze: ClassVar[bool] = False  # a freeze holds back its start alone; it looks for one before it does harm
    # By these, apps above forbid its writes to a node. A veto fails the step, since a person has to lift it, or another
    # operation on the node. What ends by itself is waited for: a stop, a freeze, a place in the ledger.
    vetoes: ClassVar[Sequence[Veto]] = ()
    waits_for_stop: ClassVar[bool] = True  # the stop of the fleet holds it back
    waits_for_others: ClassVar[bool] = False  # it does not begin while another controller works on the node
    acts_on: ClassVar[str] = ""  # the controller whose work it changes, so that it does not wait for that one
    minds_owner: ClassVar[bool] = True  # the preview names another controller that holds a node
    progress: ClassVar[str] = ""  # the fields of its progress, for REST
    template: ClassVar[str] = ""  # block of a node's progress on the operation's page; blank: the common one

    def effect_on(self, nodes: Sequence[Node]) -> str:
        """Returns the effect, with all that must not change between the preview and the start."""
        return self.effect

    def intend(self, operation: Operation, node: OperationNode, *, now: datetime) -> None:  # noqa: B027
        """Records what the step will write. It runs in the transaction that starts the step."""

    def why_not_begin(self, nodes: Collection[OperationNode], *, now: datetime) -> dict[str, str]:
        """Returns why the step does not begin on nodes now, so that they stay free, by UID. Two queries."""
        if not self.waits_for_others:
            return {}
        owners = external_owners(list(Node.objects.filter(uid__in=[node.node_uid for node in nodes])), now=now)
        return {uid: f"{HELD}: {owner.sentence}" for uid, owner in owners.items() if owner.name != self.acts_on}

    def why_not_offered(self, nodes: Sequence[Node]) -> dict[str, str]:
        """Returns why the pages of nodes do not offer operations that end with the step, by UID. One query at most."""
        return {}

    def suggest(self, nodes: Sequence[Node]) -> dict[str, Any]:
        """Returns options as they are usual for the nodes."""
        return {}

    def complete(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
        """Returns the options of an operation with defaults.

        :raises BadOperation: when an option is missing or invalid
        """
        return dict(options)

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        """Returns warnings of the preview, each with its remedy."""
        return ()

    def warnings_by_options(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> Iterable[str]:
        """Returns warnings of the preview that depend on the options so far."""
        return ()

    def duration(self, cluster: Cluster, nodes: Sequence[Node], *, now: datetime) -> str:
        """Returns how long it took before, for the preview. Blank: unknown."""
        return ""

    def named_pod(self, options: Mapping[str, Any]) -> str | None:
        """Returns the UID of the only pod that it ends. None: it names none."""
        return None

    def left_behind(self) -> Sequence[int]:
        """Returns the keys of operations that left something in their cluster."""
        return ()

    def clean_up(  # noqa: B027
        self, operation: Operation, connection: client.Connection, *, clock: Callable[[], datetime]
    ) -> None:
        """Removes what the step of an ended node left in the cluster. Safe to repeat.

        :raises ClusterError: when the cluster does not answer
        """

    @abstractmethod
    def run(self, work: NodeWork) -> StepResult:
        """Tries the step once.

        :raises ClusterError: when the cluster does not answer; the step is repeated
        :raises LostRace: when the guard forbids the next write
        :raises NotWritten: when the node cannot be read or written; the step has failed
        """
