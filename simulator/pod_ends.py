"""What answers behind a pod: its containers' logs and its ports. The actors fill it in; without them pods are mute."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Pod = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Served:
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200


LogReader = Callable[[Pod, str, bool], list[str] | None]
"""(pod, container, previous) -> lines, oldest first, each opened by an RFC 3339 time; None: no such log."""
PortReader = Callable[[Pod, str], Served]
"""(pod, path) -> what a GET on that port answers."""


@dataclass(slots=True)
class PodEnds:
    read_log: LogReader = lambda _pod, _container, _previous: []
    ports: dict[int, PortReader] = field(default_factory=dict)
