"""Findings from the apps above: each app registers its source at start."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from health.rules.base import Problem
from health.subjects import PAGES


@dataclass(frozen=True)
class FindingSource:
    """The interface through which an app above adds findings, like a rule does in this app."""

    key: str  # that no rule of this app has
    title: str
    after: timedelta  # how long the problem must last before a notification
    say: Callable[..., Iterable[tuple[str, Problem]]]  # of a cluster, `now`: each with a subject of its own there
    says: str = ""  # description for the list of rules
    page: Callable[[Mapping[str, Any]], str] | None = None  # the subject's address, from the facts
    steps: Sequence[str] = ()  # of its findings, unless a problem has its own
    about: str = "plans and what they hold"
    every: timedelta | None = None  # how often it is evaluated; None: in every round
    reads: Sequence[str] = ()  # the kinds that must be live for its evaluation


SOURCES: dict[str, FindingSource] = {}


def register(source: FindingSource) -> None:
    """Registers a source; call it in `AppConfig.ready`. Registering the same key twice is safe."""
    SOURCES[source.key] = source
    if source.page is not None:
        PAGES[source.key] = source.page
