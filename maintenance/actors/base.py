"""An actor: somebody or something that repairs a node when it is asked. Pure."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from maintenance.lifecycle import RepairAnswer, RepairKind


@dataclass(frozen=True)
class RepairTask:
    """A repair, as an actor is asked for it. Everything stays the same if it is asked again."""

    request: str  # its id
    case: int
    kind: RepairKind
    cluster: str
    node: str
    node_uid: str
    fault: str
    task: str  # in the words of whoever asks
    asked_by: str
    asked_at: datetime
    deadline: datetime
    answer_to: str  # address of the answer by REST; blank: Quarterdeck does not know its own address


@dataclass(frozen=True)
class ActorReport:
    sentence: str
    answer: RepairAnswer | None = None  # None: none yet
    is_accepted: bool = False  # the actor confirmed that it has the request


@dataclass(frozen=True)
class ActorPlace:
    """The facts that decide who may be asked for the repair of a node."""

    is_operated: bool  # Quarterdeck may change the cluster
    has_receiver: bool  # of webhooks, for the node's pool or cluster


class RepairActor(ABC):
    key: ClassVar[str]
    title: ClassVar[str]
    kinds: ClassVar[frozenset[RepairKind]]  # of repairs that it can be asked for
    waiting: ClassVar[str]  # one sentence while it works
    is_asked: ClassVar[bool] = True  # a worker sends it the request; else it reads the case

    def why_not(self, place: ActorPlace) -> str:
        """Returns why it cannot be asked. Blank: it can."""
        return "" if place.is_operated else "Quarterdeck may not change this cluster."


class HttpActor(RepairActor):
    """An actor that gets one signed request. It is never repeated: nobody knows what an unclear one has started."""

    @abstractmethod
    def body(self, task: RepairTask) -> Mapping[str, object]: ...

    def outcome(self, status: int, words: str) -> ActorReport:
        """Returns what an HTTP status means. 2xx: it has the request. 4xx: it has not. Everything else is unclear."""
        if 200 <= status < 300:
            return ActorReport(f"The receiver has the request ({status}).", is_accepted=True)
        quoted = f": {words}" if words else "."
        if 400 <= status < 500 and status != 408:
            return ActorReport(f"The receiver refused the request ({status}){quoted}", RepairAnswer.REFUSED)
        return ActorReport(f"{UNCLEAR} The receiver answered {status}{quoted}")


UNCLEAR = "It is unclear whether the receiver has the request. It is not sent again."
