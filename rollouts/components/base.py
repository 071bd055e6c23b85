"""The interface of components: how a change is written, held, released and read back. Pure.

docs/design/0005-components.md lists the present and the planned ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from gpu.driver_hold import NodeLabel
from rollouts.checks import Check
from rollouts.components.terms import HoldWords
from rollouts.components.throttle import Throttle


class Unit(StrEnum):
    """The unit that changes as a whole."""

    NODE = "node"
    POOL = "pool"
    CLUSTER = "cluster"


class Phase(StrEnum):
    """The progress of one node's change, whichever controller carries it out."""

    UNKNOWN = "unknown"  # not evaluated
    QUEUED = "queued"  # waits in the operator's queue
    AT_WORK = "at-work"  # a hold no longer stops the change
    FAILED = "failed"
    DONE = "done"  # the node's version is the object's version


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
class ReleaseAct:
    """The way in which a node is released; `LEVERS` has the code that does it."""

    pod_verbs: ClassVar[tuple[str, ...]] = ()  # verbs on pods in the operator's namespace that it needs


@dataclass(frozen=True)
class RemoveLabel(ReleaseAct):
    """The lever by label: removing the hold label releases a node, and the label recalls it until it begins."""


def version_in(component: "Component", spec: Mapping[str, Any]) -> str:
    """Returns the version in an object's spec; empty if it names none."""
    found: Any = {"spec": spec}
    for name in component.path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else ""


class Component(Protocol):
    """A component, bound to the name of the object that it writes."""

    key: ClassVar[str]  # of the changed component; objects of several kinds may change one component
    kind: ClassVar[str]  # kind of the object that sets the version
    unit: ClassVar[Unit]
    path: ClassVar[tuple[str, ...]]  # of the version, in the object
    operand: ClassVar[str]  # operand whose DaemonSets and pods change; the object owns them
    hold: ClassVar[NodeLabel | None]  # a node with it does not begin to change. None: none does by itself
    release: ClassVar[ReleaseAct]  # act that releases a node
    room: ClassVar[Throttle | None]  # limit of the operator. None: only the stage's budget
    says: ClassVar[HoldWords]

    @property
    def name(self) -> str: ...

    def patch(self, old: str, new: str) -> FieldPatch: ...

    def command(self, version: str) -> str:
        """Returns the shell command that writes a version without Quarterdeck."""
        ...

    def template(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the parts of the object's spec that shape its pods, without the field that a plan writes."""
        ...

    def phase(self, state: str, *, has_pod: bool = True, is_in_sync: bool = False) -> Phase: ...

    def is_released(self, *, has_label: bool, has_pod: bool, is_in_sync: bool) -> bool:
        """Returns whether the release is seen to be done."""
        ...

    def has_changed(self, *, wanted: str, loaded: str, is_in_sync: bool) -> bool:
        """Returns whether the node has changed. `loaded` is the version that the node reports."""
        ...

    def no_rollback(self, version: str) -> str:
        """Returns why a rollback to this version is impossible; empty means it is possible."""
        ...

    def preflight(self, facts: Any) -> Iterable[Check]:
        """Yields the blockers of a start."""
        ...

    def warnings(self, facts: Any) -> Iterable[Check]:
        """Yields the warnings that an approver must see."""
        ...
