"""What apps above this one say is wrong in a cluster: each registers its source when it is ready."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from fleet.models import Cluster
from health.rules.base import Wrong


@dataclass(frozen=True)
class Said:
    """Something wrong with what is not a node: `subject` is unique within its rule and cluster."""

    subject: str
    title: str
    after: timedelta
    wrong: Wrong


@dataclass(frozen=True)
class Source:
    rule: str  # a key that no rule of this app has
    say: Callable[[Cluster], Iterable[Said]]


SOURCES: dict[str, Source] = {}


def register(source: Source) -> None:
    """Call it in `AppConfig.ready`; again for the same rule does no harm."""
    SOURCES[source.rule] = source
