from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rollouts.models import Plan, PlanEvent

MOST = 300
ENGINE = ("engine", "quarterdeck")


@dataclass
class Group:
    title: str = ""  # blank: a single event
    events: list[PlanEvent] = field(default_factory=list)  # the newest first

    @property
    def newest(self) -> PlanEvent:
        return self.events[0]

    @property
    def oldest(self) -> PlanEvent:
        return self.events[-1]


def history_of(plan: Plan, who: str) -> dict[str, Any]:
    """Returns the history with two queries. `who` is empty for all, `people`, or a name."""
    events = plan.events.select_related("stage", "target__wave")
    people = sorted(set(plan.events.order_by().values_list("actor", flat=True).distinct()) - {""})
    if who == "people":
        events = events.exclude(actor__in=ENGINE)
    elif who:
        events = events.filter(actor=who)
    newest = list(events[: MOST + 1])
    groups = list(_grouped(newest[:MOST]))
    return {"plan": plan, "groups": groups, "has_older": len(newest) > MOST, "who": who, "actors": people}


def _grouped(events: Iterable[PlanEvent]) -> Iterable[Group]:
    by_wave: dict[int, Group] = {}
    found: list[Group] = []
    for event in events:
        wave = event.target.wave if event.target else None
        if wave is None:
            found.append(Group(events=[event]))
        elif wave.pk in by_wave:
            by_wave[wave.pk].events.append(event)
        else:
            title = f"{event.stage.name}, wave {wave.number}" if event.stage else f"Wave {wave.number}"
            by_wave[wave.pk] = Group(title, [event])
            found.append(by_wave[wave.pk])
    return found
