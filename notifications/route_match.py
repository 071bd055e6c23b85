"""The choice of the first route that matches an event. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

PLAN = "plan"  # the kind of every event about a plan
OPERATION, CASE = "operation", "case"  # likewise
TRAFFIC = "traffic"  # the kind of every call of the traffic hook: only routes that name it match


@dataclass(frozen=True)
class EventProperties:
    """The properties of an event that routes match."""

    cluster: str
    severity: str
    kind: str  # the rule of a finding, PLAN, OPERATION, CASE or TRAFFIC
    pools: Sequence[str] = ()  # names
    workload_classes: Sequence[str] = ()


class Matcher(Protocol):
    @property
    def places(self) -> Sequence[str]: ...
    @property
    def severities(self) -> Sequence[str]: ...
    @property
    def kinds(self) -> Sequence[str]: ...
    @property
    def workload_classes(self) -> Sequence[str]: ...


M = TypeVar("M", bound=Matcher)


def matches(route: Matcher, place: EventProperties) -> bool:
    if place.kind == TRAFFIC and not route.kinds:
        return False
    names = [place.cluster, *(f"{place.cluster}/{pool}" for pool in place.pools)]
    return (
        _has(route.places, names)
        and _has(route.severities, [place.severity])
        and _has(route.kinds, [place.kind])
        and _has(route.workload_classes, place.workload_classes)
    )


def first_match(routes: Iterable[M], place: EventProperties) -> M | None:
    """Returns the route that decides. None: it is a call of the traffic hook, and no route names traffic."""
    return next((route for route in routes if matches(route, place)), None)


def _has(wanted: Sequence[str], given: Iterable[str]) -> bool:
    """Returns whether any is wanted. An empty list wants everything."""
    return not wanted or not set(wanted).isdisjoint(given)
