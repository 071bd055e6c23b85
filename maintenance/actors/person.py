"""A person: reads the task on the case, repairs the node, and answers there."""

from typing import ClassVar

from maintenance.actors.base import ActorPlace, RepairActor
from maintenance.lifecycle import RepairKind


class Person(RepairActor):
    key: ClassVar[str] = "person"
    title: ClassVar[str] = "A person"
    kinds: ClassVar[frozenset[RepairKind]] = frozenset(RepairKind)
    waiting: ClassVar[str] = "A person repairs the node and answers in this case."
    is_asked: ClassVar[bool] = False

    def why_not(self, place: ActorPlace) -> str:
        return ""
