"""What the engine asks of every component: how its change is written, held, let go and read back. Pure.

docs/design/0005-components.md has the table of those that are here and of those to come.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from rollouts.checks import Check
from rollouts.components.terms import HoldWords
from rollouts.components.throttle import Throttle


class Unit(StrEnum):
    """What changes as one."""

    NODE = "node"
    POOL = "pool"
    CLUSTER = "cluster"


class Phase(StrEnum):
    """How far the change of one node is, whoever carries it out."""

    UNKNOWN = "unknown"  # nobody has judged it
    QUEUED = "queued"  # it is to change, and will once it may
    AT_WORK = "at-work"  # no hold stops it any more
    FAILED = "failed"
    DONE = "done"  # as the object says


BEGUN = frozenset({Phase.AT_WORK, Phase.FAILED})
THROUGH = frozenset({Phase.UNKNOWN, Phase.DONE})  # nobody is at work on it, and nobody is about to be


@dataclass(frozen=True)
class FieldPatch:
    kind: str
    name: str
    path: tuple[str, ...]
    old: str
    new: str


@dataclass(frozen=True)
class NodeLabel:
    key: str
    value: str

    def is_on(self, labels: Mapping[str, str]) -> bool:
        return labels.get(self.key) == self.value


@dataclass(frozen=True)
class ReleaseAct:
    """How a node is released; `LEVERS` has who carries it out."""

    pod_verbs: ClassVar[tuple[str, ...]] = ()  # what it takes of rights on pods in the operator's namespace


@dataclass(frozen=True)
class RemoveLabel(ReleaseAct):
    """A node goes once its hold is off. Until it has begun the hold can be put on again."""


def version_in(component: "Component", spec: Mapping[str, Any]) -> str:
    """What an object asks for, by its whole spec. Blank: it names none."""
    found: Any = {"spec": spec}
    for name in component.path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else ""


class Component(Protocol):
    """One way of changing something. Made with the name of the object that it writes."""

    key: ClassVar[str]  # of what is changed; one may be changed by objects of several kinds
    kind: ClassVar[str]  # of the object that says how it should be
    unit: ClassVar[Unit]
    path: ClassVar[tuple[str, ...]]  # of the version, in the object
    operand: ClassVar[str]  # whose DaemonSets and pods change, of those that the object owns
    hold: ClassVar[NodeLabel | None]  # a node with it does not begin to change. None: none does by itself
    release: ClassVar[ReleaseAct]  # what lets a node go
    room: ClassVar[Throttle | None]  # of whoever carries the change out. None: a stage's budget alone
    says: ClassVar[HoldWords]

    @property
    def name(self) -> str: ...

    def patch(self, old: str, new: str) -> FieldPatch:
        """What is written, forward and back."""
        ...

    def command(self, version: str) -> str:
        """What writes a version without us, for a shell."""
        ...

    def template(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Those parts of the object's spec that say what is made of it, without the field that a plan writes."""
        ...

    def phase(self, state: str, *, has_pod: bool = True, is_in_sync: bool = False) -> Phase:
        """`state`: what whoever carries the change out says of the node; the others say how its pod is."""
        ...

    def is_let_go(self, *, has_label: bool, has_pod: bool, is_in_sync: bool) -> bool:
        """Whether the release is seen to be done."""
        ...

    def has_changed(self, *, wanted: str, loaded: str, is_in_sync: bool) -> bool:
        """`loaded`: what the node itself names; `is_in_sync`: its pod is of the newest template."""
        ...

    def no_rollback(self, version: str) -> str:
        """Why nothing could be rolled back to what is there now. Blank: it could."""
        ...

    def preflight(self, facts: Any) -> Iterable[Check]:
        """What stands against starting."""
        ...

    def warnings(self, facts: Any) -> Iterable[Check]:
        """What an approver must see."""
        ...
