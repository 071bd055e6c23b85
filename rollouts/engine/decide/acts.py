"""What a round may decide to do. Values only: `rollouts.engine.act` carries them out."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from rollouts.gates.base import Judgement
from rollouts.lifecycle import PLAN_FINAL, PlanState, StageState, TargetState


@dataclass(frozen=True)
class PlaceHolds:
    """Put our label on nodes (name by uid), and read it back."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class LiftHolds:
    """Take our label off nodes that nothing changes then."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class HandOver:
    """Take our label off nodes that then change to somebody else's version: a person has decided so (hazard Z38)."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class FreeStrays:
    """Take our label off nodes that the driver object no longer selects, and the operator's queue mark with it."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class WriteVersion:
    """Set the version field of the driver object, if it still has the one we expect."""

    old: str
    new: str


@dataclass(frozen=True)
class ReleaseWave:
    stage_index: int
    targets: tuple[str, ...]  # names, in order
    reason: str


@dataclass(frozen=True)
class ClearUpgradeState:
    """Remove the upgrade state of nodes that never changed, so that the operator judges them afresh."""

    nodes: Mapping[str, str]
    failed: frozenset[str] = frozenset()  # uids of those that are failed again instead: the operator brings them back


@dataclass(frozen=True)
class RequeueFailed:
    """Set failed nodes to upgrade-required: they leave upgrade-failed in no other way and keep the operator's slot."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class OpenRollbackStage:
    """Make the targets of the rollback stage: every node that is not as it was."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class FinishRelease:
    """Targets whose release is recorded and whose label is not seen to be gone: done again until it is."""

    stage_index: int
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Recall:
    """Hold targets again that were let go and have not begun."""

    stage_index: int
    targets: tuple[str, ...]


@dataclass(frozen=True)
class PutBack:
    """Make the labels and annotations by which neighbours leave nodes alone what they were before."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class OptOutAgain:
    """Of nodes that were let go: write what keeps neighbours off, where nobody has read it back."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class CordonAgain:
    """Of nodes that take no pods until their test Job has completed: cordon them where they are not."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class Uncordon:
    """Nodes that our cordon is to go from. One that the operator is at work on waits until that is through."""

    nodes: Mapping[str, str]
    undriven: frozenset[str] = frozenset()  # uids of those for which nobody is at work, whatever their label says


@dataclass(frozen=True)
class MakeProofs:
    """A test Job on each of these nodes, as the gate of their stage asks for it."""

    stage_index: int
    nodes: Mapping[str, str]


@dataclass(frozen=True)
class FollowProofs:
    """Look at the test Jobs that may be there; delete those that are told, and those that nobody wants any more."""

    unwanted: frozenset[int] = frozenset()  # keys of their rows


Act = (
    PlaceHolds
    | LiftHolds
    | HandOver
    | FreeStrays
    | WriteVersion
    | ReleaseWave
    | FinishRelease
    | Recall
    | ClearUpgradeState
    | RequeueFailed
    | OpenRollbackStage
    | PutBack
    | OptOutAgain
    | CordonAgain
    | Uncordon
    | MakeProofs
    | FollowProofs
)


@dataclass(frozen=True)
class MoveTarget:
    stage_index: int
    uid: str  # of its node: one that was made again is another target of the same name
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


AS_BEFORE = ""  # a round that only takes note of what was seen says nothing new


@dataclass(frozen=True)
class Decision:
    waiting_for: str  # one sentence: why nothing more happens, or what is being done; AS_BEFORE: what was said last
    acts: tuple[Act, ...] = ()
    moves: tuple[Move, ...] = ()
    judgements: Mapping[int, Mapping[str, Judgement]] = field(default_factory=dict)  # stage → gate → answer
    pause_reason: str = ""  # ask a person: put a pause in force
    void_reason: str = ""  # what was approved is not what is there: every approval of a stage to come is void
    look_again_in: timedelta = timedelta(seconds=5)
    given_back: frozenset[str] = frozenset()  # uids of nodes that are out no more, by the ledger
    served: frozenset[str] = frozenset()  # uids of changed nodes on which tenants' pods are Ready for the first time

    @property
    def is_for_good(self) -> bool:
        """Whether it says something of nodes that nothing later corrects: that must not rest on rows."""
        takes_out = any(isinstance(move, MoveTarget) and move.to is TargetState.EXCLUDED for move in self.moves)
        frees = any(isinstance(act, FreeStrays | HandOver) for act in self.acts)
        return self.ends or takes_out or frees

    @property
    def ends(self) -> bool:
        return any(isinstance(move, MovePlan) and move.to in PLAN_FINAL for move in self.moves)

    def ending_with(self, said: str) -> "Decision":
        """With one more sentence in what the plan says at its end."""
        moves = tuple(
            replace(move, reason=f"{move.reason} {said}") if isinstance(move, MovePlan) else move for move in self.moves
        )
        return replace(self, waiting_for=f"{self.waiting_for} {said}", moves=moves)
