"""The answers of an API server before a start, for the rules. Pure.

None means that the question was not asked because of an earlier answer. No answer is a separate value and never counts
as yes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class NoAnswer:
    reason: str  # a sentence
    is_for_good: bool = False  # a repeated question would give the same answer
    may_be_overridden: bool = False  # nobody could ask it without doing it


@dataclass(frozen=True)
class Tried:
    """The result of a dry-run patch."""

    refused: str = ""  # message of the component that refused; blank: accepted


class NamespaceState(StrEnum):
    THERE = "there"
    ABSENT = "absent"
    GOING = "going"  # being deleted: nothing can be created in it


@dataclass(frozen=True)
class ObjectFacts:
    uid: str  # blank: there is no such object
    version: str
    generation: int  # increases with every change of its spec


@dataclass(frozen=True)
class Right:
    """One verb on one kind, and whether we have it."""

    verb: str
    kind: str  # nodes, leases.coordination.k8s.io
    namespace: str = ""  # blank: in the whole cluster
    is_needed: bool = True  # False: the plan works without it
    is_allowed: bool | NoAnswer = False

    @property
    def where(self) -> str:
        return f" in {self.namespace}" if self.namespace else ""


@dataclass(frozen=True)
class PlanFacts:
    """The facts that the plan rests on, from rows."""

    cluster: str
    cluster_uid: str
    own_namespace: str
    object_title: str  # NVIDIADriver h100
    object_uid: str
    generation: int | None  # None: no row of the object
    from_version: str
    to_version: str
    command: str  # that shows the Lease
    is_written: bool = False  # the plan has written its version: the object asks for that one


@dataclass(frozen=True)
class LiveFacts:
    plan: PlanFacts
    silence: str = ""  # why nothing was answered at all; blank: something was
    cluster_uid: str | NoAnswer | None = None
    namespace: NamespaceState | NoAnswer | None = None
    lease: str | NoAnswer | None = None  # why it is not ours to take; blank: it is
    driver_object: ObjectFacts | NoAnswer | None = None
    rights: Sequence[Right] = ()
    version_patch: Tried | NoAnswer | None = None
    node_patches: Sequence[tuple[str, Tried | NoAnswer]] = ()  # by name of the node
