"""The places where roles can be given: the fleet, and those that apps above register. This module imports none of
them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from people.models.user import ScopeKind


@dataclass(frozen=True)
class Place:
    scope: str
    key: int  # of the cluster or pool; 0 for the fleet
    name: str  # as in commands and pages: fleet, eu-1, eu-1/h200
    cluster_id: int | None = None  # the cluster itself, or the pool's cluster

    @property
    def words(self) -> str:
        """Returns the place's name in a sentence."""
        return "the fleet" if self.scope == ScopeKind.FLEET else f"{self.scope} {self.name}"


FLEET = Place(ScopeKind.FLEET, 0, "fleet")
_sources: list[Callable[[], Iterable[Place]]] = []


def register(source: Callable[[], Iterable[Place]]) -> None:
    _sources.append(source)


def all_places() -> list[Place]:
    """Returns all places. Costs the queries of the registered sources."""
    return [FLEET, *(place for source in _sources for place in source())]
