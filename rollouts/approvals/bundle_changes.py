"""The differences between a bundle and what was shown, as sentences for pages and REST. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from rollouts.gates import GATES
from wording.lists import names
from wording.numbers import are

Content = Mapping[str, Any]
Stages = Mapping[int, str]  # index → name


def changes(shown: Content, now: Content, stages: Stages) -> list[str]:
    """Returns the differences; empty if there are none."""
    return [
        *_result_changes(shown["answers"], now["answers"], stages),
        *_target_changes(shown["targets"], now["targets"]),
        *_advisory_changes(shown.get("advisory", {}), now.get("advisory", {})),
        *_override_changes(shown.get("overrides", {}), now.get("overrides", {}), stages),
        *(["The plan itself has changed."] if shown["plan_hash"] != now["plan_hash"] else []),
    ]


def _result_changes(shown: Mapping[str, str], now: Mapping[str, str], stages: Stages) -> Iterator[str]:
    for place in sorted({*shown, *now}):
        before, after = shown.get(place), now.get(place)
        if before == after:
            continue
        gate = _gate_of(place, stages)
        if after is None:
            yield f"{gate} was {before} and no longer counts."
        else:
            yield f"{gate} was {before} and is now {after}." if before else f"{gate} had no result and is now {after}."


def _target_changes(shown: list[str], now: list[str]) -> Iterator[str]:
    before, after = set(shown), set(now)
    gone = [name for name in shown if name not in after]
    new = [name for name in now if name not in before]
    if gone:
        yield f"{names(gone)} {are(len(gone))} no longer among the nodes."
    if new:
        yield f"{names(new)} {are(len(new))} now among the nodes."
    if shown != now and not gone and not new:
        yield "The release order of the nodes has changed."


def _advisory_changes(shown: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for gate in sorted({*shown, *now}):
        if gate not in now:
            yield f"{_title_of_gate(gate)} is no longer advisory: it counts now."
        elif shown.get(gate) != now[gate]:
            yield f"{_title_of_gate(gate)} is now advisory and no longer counts: {now[gate]}"


def _override_changes(shown: Mapping[str, Any], now: Mapping[str, Any], stages: Stages) -> Iterator[str]:
    for place, override in sorted(now.items()):
        if shown.get(place) != override:
            yield f"{override['by']} overrode {_gate_of(place, stages)}: {override['reason']}"


def _gate_of(place: str, stages: Stages) -> str:
    index, _, gate = place.partition(":")
    return f"{_title_of_gate(gate)} of {stages.get(int(index), f'stage {int(index) + 1}')}"


def _title_of_gate(gate: str) -> str:
    return GATES[gate].title if gate in GATES else gate
