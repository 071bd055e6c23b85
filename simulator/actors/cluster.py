"""All that actors ask of an API server. In-process it is the store, elsewhere HTTP; nothing else is leaned on."""

from typing import Any, Literal, Protocol

from simulator.actors.objects import Obj
from simulator.kinds import Kind

How = Literal["json", "merge", "strategic"]


class Stream(Protocol):
    """Changes of one kind: ("ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK", object)."""

    is_closed: bool

    def take(self, timeout_s: float | None = 0) -> list[tuple[str, Obj]]:
        """What is ready; waits up to `timeout_s` (None: without end) for the first."""
        ...

    def close(self) -> None: ...


class Cluster(Protocol):
    """Every call raises `simulator.refusals.Refused` when the server says no."""

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj: ...

    def list(self, kind: Kind) -> tuple[list[Obj], str]: ...

    def watch(self, kind: Kind, *, since: str) -> Stream: ...

    def create(self, kind: Kind, obj: Obj, namespace: str = "") -> Obj: ...

    def seed(self, kind: Kind, obj: Obj, namespace: str = "") -> Obj:
        """Create an object that is meant to have been there before: its status, and where it can be its age, count."""
        ...

    def patch(
        self,
        kind: Kind,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        how: How = "merge",
        subresource: str = "",
        manager: str = "",
    ) -> Obj: ...

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        grace_s: int | None = None,
        uid: str | None = None,
    ) -> None: ...

    def evict(self, name: str, namespace: str, *, uid: str | None = None) -> None: ...

    def bind(self, name: str, namespace: str, node_name: str) -> None: ...
