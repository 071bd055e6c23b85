"""An actor: somebody or something that repairs a node when it is asked. Pure."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from maintenance.lifecycle import RepairAnswer, RepairKind


@dataclass(frozen=True)
class RepairTask:
    """A repair, as an actor is asked for it. Everything stays the same if it is asked again."""

    request: str  # id of the request
    case: int
    kind: RepairKind
    cluster: str
    node: str
    node_uid: str
    fault: str
    task: str  # name of the task, for people
    asked_by: str
    asked_at: datetime
    deadline: datetime
    answer_to: str  # address of the answer by REST; blank: Quarterdeck does not know its own address
    gpu_uuids: tuple[str, ...] = ()  # of the fault; without one, of all GPUs of the node


@dataclass(frozen=True)
class ActorReport:
    sentence: str
    answer: RepairAnswer | None = None  # None: none yet
    is_accepted: bool = False  # the actor confirmed that it has the request
    is_withdrawn: bool = False  # the request of an ended repair is over, or was removed


@dataclass(frozen=True)
class ActorPlace:
    """The facts that decide who may be asked for the repair of a node."""

    is_operated: bool  # Quarterdeck may change the cluster
    has_receiver: bool  # of webhooks, for the node's pool or cluster
    kinds: Mapping[str, str] = field(default_factory=dict)  # why a kind of object cannot be made, blank: it can


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
            return ActorReport("", is_accepted=True)
        quoted = f": {words}" if words else "."
        if 400 <= status < 500 and status != 408:
            return ActorReport(f"The receiver refused the request ({status}){quoted}", RepairAnswer.REFUSED)
        return ActorReport(f"{UNCLEAR} The receiver answered {status}{quoted}")


@dataclass(frozen=True)
class ObjectCondition:
    status: str = ""  # True, False, Unknown; blank: there is no such condition
    reason: str = ""
    message: str = ""

    @property
    def is_true(self) -> bool:
        return self.status == "True"

    @property
    def words(self) -> str:
        return ": ".join(filter(None, (self.reason, self.message)))


@dataclass(frozen=True)
class ObjectStatus:
    conditions: Mapping[str, ObjectCondition]
    is_completed: bool  # has a completion time

    def condition(self, name: str) -> ObjectCondition:
        return self.conditions.get(name, ObjectCondition())


class ClusterActor(RepairActor):
    """A controller in the cluster, known by a kind that the API server serves. Groups move: discovery finds them."""

    object_kind: ClassVar[str]
    group_suffix: ClassVar[str]  # of the API group

    def why_not(self, place: ActorPlace) -> str:
        unknown = f"Quarterdeck has not looked for {self.object_kind} in this cluster yet."
        return super().why_not(place) or place.kinds.get(self.object_kind, unknown)


class ObjectActor(ClusterActor):
    """A controller that is asked by an object of its own, and answers in its status."""

    def why_not_this(self, task: RepairTask) -> str:
        """Returns why this task cannot be an object. Blank: it can."""
        return ""

    @abstractmethod
    def spec(self, task: RepairTask) -> Mapping[str, object]: ...

    @abstractmethod
    def report(self, status: ObjectStatus) -> ActorReport: ...


class AnnotationActor(ClusterActor):
    """A controller that is asked by an annotation on the object of the host, and removes it. It is asked once."""

    annotation: ClassVar[str]

    @abstractmethod
    def host_of(self, provider_id: str) -> tuple[str, str] | None:
        """Returns namespace and name of the object. None: the node has none."""

    @abstractmethod
    def value(self, task: RepairTask) -> str: ...


UNCLEAR = "It is unclear whether the receiver has the request. It is not sent again."
