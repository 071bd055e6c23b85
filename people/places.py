"""Where roles can be given: the fleet, and what the apps above register here; we import none of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from people.models.user import ScopeKind


@dataclass(frozen=True)
class Place:
    scope: str
    key: int  # of the cluster or pool; 0 for the fleet
    name: str  # as a command and a page spell it: fleet, eu-1, eu-1/h200
    cluster_id: int | None = None  # the cluster that it is, or is in

    @property
    def words(self) -> str:
        """As a sentence calls it."""
        return "the fleet" if self.scope == ScopeKind.FLEET else f"{self.scope} {self.name}"


FLEET = Place(ScopeKind.FLEET, 0, "fleet")
_sources: list[Callable[[], Iterable[Place]]] = []


def register(source: Callable[[], Iterable[Place]]) -> None:
    _sources.append(source)


def every_place() -> list[Place]:
    """As many queries as the registered sources cost."""
    return [FLEET, *(place for source in _sources for place in source())]


def named(name: str) -> Place | None:
    return next((place for place in every_place() if place.name == name), None)
