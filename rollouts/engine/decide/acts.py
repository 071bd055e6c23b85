"""The acts that a round may decide. They are values; `rollouts.engine.act` carries them out."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from rollouts.gates.base import GateResult
from rollouts.lifecycle import PLAN_FINAL, PlanState, StageState, TargetState


@dataclass(frozen=True)
class PlaceHolds:
    """Put the hold label on nodes (uid → name), and read it back."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class LiftHolds:
    """Remove the hold label from nodes that nothing changes afterwards."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class HandOver:
    """Remove the hold label from nodes that then change to a foreign version; a person has decided so (Z38)."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class ReleaseUnmanagedNodes:
    """Remove the hold label and the queue mark from nodes that the driver object no longer selects."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class WriteVersion:
    """Set the version field of the driver object, if it still has the expected value."""

    old: str
    new: str


@dataclass(frozen=True)
class ReleaseWave:
    stage_index: int
    targets: tuple[str, ...]  # names, in order
    reason: str


@dataclass(frozen=True)
class ClearUpgradeState:
    """Remove the upgrade state of nodes that never changed, so that the operator evaluates them again."""

    nodes: Mapping[str, str]
    failed: frozenset[str] = frozenset()  # UIDs of nodes that return to failed: the operator continues with them


@dataclass(frozen=True)
class RequeueFailed:
    """Set failed nodes to upgrade-required. They leave upgrade-failed in no other way, and occupy an operator slot."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class OpenRollbackStage:
    """Create targets of the rollback stage: every node that differs from before."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class FinishRelease:
    """Release recorded targets again until their label is seen to be gone."""

    stage_index: int
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Recall:
    """Hold released targets again that have not begun."""

    stage_index: int
    targets: tuple[str, ...]


@dataclass(frozen=True)
class PutBack:
    """Restore the labels and annotations that exclude nodes from external controllers."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class ExcludeAgain:
    """Write exclusions of released nodes that nobody has read back."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class CordonAffected:
    """Cordon the nodes that a halt by a gate has named, as the plan's author chose."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class CordonAgain:
    """Cordon nodes again that wait for their test Job."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class Uncordon:
    """Remove our cordon from nodes. A node that the operator works on waits until the operator has finished."""

    nodes: Mapping[str, str]
    undriven: frozenset[str] = frozenset()  # UIDs of nodes that no controller changes now, whatever their label is


@dataclass(frozen=True)
class CreateTestJobs:
    """Create a test Job on each node, as the gate of its stage requires."""

    stage_index: int
    nodes: Mapping[str, str]


@dataclass(frozen=True)
class TrackTestJobs:
    """Read test Jobs that may exist, and delete those that have a result or that nobody needs."""

    unwanted: frozenset[int] = frozenset()  # keys of their rows


Act = (
    PlaceHolds
    | LiftHolds
    | HandOver
    | ReleaseUnmanagedNodes
    | WriteVersion
    | ReleaseWave
    | FinishRelease
    | Recall
    | ClearUpgradeState
    | RequeueFailed
    | OpenRollbackStage
    | PutBack
    | ExcludeAgain
    | CordonAffected
    | CordonAgain
    | Uncordon
    | CreateTestJobs
    | TrackTestJobs
)


@dataclass(frozen=True)
class MoveTarget:
    stage_index: int
    uid: str  # UID of the node: a recreated node is another target with the same name
    name: str
    to: TargetState
    reason: str
    has_escaped: bool = False
    is_lost: bool = False


@dataclass(frozen=True)
class MoveStage:
    stage_index: int
    to: StageState
    reason: str


@dataclass(frozen=True)
class MovePlan:
    to: PlanState
    reason: str


Move = MoveTarget | MoveStage | MovePlan


AS_BEFORE = ""  # a round that only records observations keeps the last sentence


@dataclass(frozen=True)
class Decision:
    waiting_for: str  # one sentence: the reason for waiting, or the present act; AS_BEFORE: the last sentence
    acts: tuple[Act, ...] = ()
    moves: tuple[Move, ...] = ()
    results: Mapping[int, Mapping[str, GateResult]] = field(default_factory=dict)  # stage → gate → answer
    pause_reason: str = ""  # ask a person: put a pause in force
    void_reason: str = ""  # the approved content no longer matches: voids every approval of later stages
    look_again_in: timedelta = timedelta(seconds=5)
    given_back: frozenset[str] = frozenset()  # UIDs of nodes that are available again, by the ledger
    served: frozenset[str] = frozenset()  # uids of changed nodes on which tenants' pods are Ready for the first time

    @property
    def is_for_good(self) -> bool:
        """Returns whether the decision is final for some nodes; such a decision must not rest on rows alone."""
        takes_out = any(isinstance(move, MoveTarget) and move.to is TargetState.EXCLUDED for move in self.moves)
        frees = any(isinstance(act, ReleaseUnmanagedNodes | HandOver) for act in self.acts)
        return self.ends or takes_out or frees

    @property
    def ends(self) -> bool:
        return any(isinstance(move, MovePlan) and move.to in PLAN_FINAL for move in self.moves)

    @property
    def longest_reason(self) -> int:
        """Returns the characters of the longest text to which `ending_with` adds."""
        return max(map(len, (self.waiting_for, *(move.reason for move in self.moves if isinstance(move, MovePlan)))))

    def ending_with(self, said: str) -> "Decision":
        moves = tuple(
            replace(move, reason=f"{move.reason} {said}") if isinstance(move, MovePlan) else move for move in self.moves
        )
        return replace(self, waiting_for=f"{self.waiting_for} {said}", moves=moves)
