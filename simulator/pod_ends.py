"""What answers behind a pod: its containers' logs and its ports. The actors fill it in; without them pods are mute."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Pod = dict[str, Any]


class Pace(StrEnum):
    AT_ONCE = "at once"
    DRIP = "drip"  # a byte a second
    NEVER = "never"  # not even the status


@dataclass(frozen=True, slots=True)
class Served:
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200
    pace: Pace = Pace.AT_ONCE


LogReader = Callable[[Pod, str, bool], list[str] | None]
"""(pod, container, previous) -> lines, oldest first, each opened by an RFC 3339 time; None: no such log."""
PortReader = Callable[[Pod, str], Served | None]
"""(pod, path) -> what a GET on that port answers; None: nobody listens."""


@dataclass(slots=True)
class PodEnds:
    read_log: LogReader = lambda _pod, _container, _previous: []
    ports: dict[int, PortReader] = field(default_factory=dict)
