"""What a performance trace of Chromium says: how long its threads worked, and when marks were set. Pure.

By their CPU time, where the trace has it: what others on the machine take is not the page's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

MAIN = "CrRendererMain"
RASTER = ("RasterTask", "Rasterize", "ImageDecodeTask")
Event = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """In milliseconds by the trace's own clock."""

    at: float
    wall: float
    cpu: float


@dataclass(frozen=True)
class Trace:
    """Of one page."""

    script: list[Task]  # what the page's main thread worked: script, style, layout, painting
    raster: list[Task]
    marks: dict[str, list[float]]

    @classmethod
    def read(cls, events: Iterable[Event]) -> Self:
        every = [event for event in events if "ts" in event]
        names = {
            (event["pid"], event["tid"]): event["args"]["name"] for event in every if event.get("name") == "thread_name"
        }
        set_by_page = [event for event in every if "blink.user_timing" in event.get("cat", "")]
        marks: dict[str, list[float]] = {}
        for event in set_by_page:
            marks.setdefault(event["name"], []).append(event["ts"] / 1000)
        # The browser has several pages' threads: the one that set the marks is the map's.
        mine = {event["pid"] for event in set_by_page}
        whole = [event for event in every if event.get("ph") == "X" and event.get("pid") in mine]
        main = [event for event in whole if names.get((event["pid"], event["tid"])) == MAIN]
        raster = [event for event in whole if event["name"] in RASTER]
        return cls(outermost(main), outermost(raster), {name: sorted(at) for name, at in marks.items()})

    def cpu_ms(self, begin: float, end: float) -> float:
        """Of the main thread and of raster, added up, though they run beside each other."""
        return sum(task.cpu for task in self._between(begin, end))

    def wall_ms(self, begin: float, end: float) -> float:
        return sum(task.wall for task in self._between(begin, end))

    def _between(self, begin: float, end: float) -> list[Task]:
        return [task for task in (*self.script, *self.raster) if begin <= task.at + task.wall and task.at < end]


def outermost(events: Iterable[Event]) -> list[Task]:
    """Without what lies within another of the same thread."""
    found: list[Task] = []
    ends: dict[tuple[int, int], float] = {}
    for event in sorted(events, key=lambda event: (event["ts"], -event.get("dur", 0))):
        thread = event["pid"], event["tid"]
        if event["ts"] >= ends.get(thread, 0):
            wall = event.get("dur", 0) / 1000
            found.append(Task(event["ts"] / 1000, wall, event.get("tdur", event.get("dur", 0)) / 1000))
            ends[thread] = event["ts"] + event.get("dur", 0)
    return found
