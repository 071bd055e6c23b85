"""Findings that come without the change halt nothing, and more of them than chance allows still do."""

import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from rollouts.gates.background import compare_with_past
from rollouts.gates.base import Answer, GateResult
from rollouts.gates.earlier_findings import EarlierFinding, EarlierFindings, FindingKind
from rollouts.gates.findings import NewFindings
from rollouts.gates.thermal import Thermal
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import a_baseline, a_finding_on_it, a_health, a_target, evidence

HOUR, DAYS = timedelta(hours=1), timedelta(days=14)
RELEASED, BEGINS = NOON - HOUR, NOON - DAYS
NODES = [f"peer-{number}" for number in range(50)]
HOT = {"key": "gpu-hot GPU-3", "rule": "gpu-hot", "severity": "warning"}


def before(events: int, *, severity: str = "warning", rule: str = "gpu-hot") -> EarlierFindings:
    """So many nodes had such a finding, halfway through the days before."""
    found = [EarlierFinding(name, rule, severity, NOON - DAYS / 2) for name in NODES[:events]]
    return EarlierFindings(dict.fromkeys(NODES, BEGINS), RELEASED, tuple(found))


def answer(ill: int, past: EarlierFindings | None, *, nodes: int = 5, gate: Any = None, **finding: Any) -> GateResult:
    found = a_finding_on_it("GPU 3 is too hot", **HOT | finding)
    targets = [
        a_target(
            f"node-{number}",
            state=TargetState.CHANGED,
            state_since=NOON - HOUR / 2,
            findings=[found] if number < ill else [],
            baseline=a_baseline(at=RELEASED, findings={}),
        )
        for number in range(nodes)
    ]
    return (gate or Thermal()).evaluate(evidence(*targets, health=a_health(past=past)), now=NOON)


def values(result: GateResult) -> dict[str, Any]:
    return {item.label: item.value for item in result.evidence}


@pytest.mark.parametrize(
    ("ill", "events", "expected"),
    [
        (1, 0, Answer.FAIL),  # nothing like it came before
        (1, 30, Answer.PASS),  # 0.9 in 1,000 node-hours before, 1 in 5 now
        (2, 30, Answer.FAIL),
        (1, 2, Answer.FAIL),
    ],
)
def test_a_finding_that_came_before_as_often_passes_and_more_of_them_fail(ill, events, expected):
    assert answer(ill, before(events)).answer is expected


def test_the_answer_says_effect_n_and_from_when_it_fails():
    shown = values(answer(1, before(40)))

    assert shown["As often before the change"] == "GPU 3 is too hot"
    assert shown["gpu-hot, warning: changed nodes"] == "1 of 5"
    assert shown["gpu-hot, warning: before"].startswith("40 in ")
    assert shown["gpu-hot, warning: effect"] > 1
    assert shown["gpu-hot, warning: fails from"] == "2 of 5 nodes"


def test_a_critical_finding_asks_a_person_where_a_warning_is_usual():
    past = before(20, severity="critical")

    result = answer(1, past, severity="critical")

    assert (result.answer, result.cause) == (Answer.WAIT, "unproved")
    assert answer(1, before(20)).answer is Answer.PASS


def test_warnings_before_make_no_critical_finding_usual():
    assert answer(1, before(50), severity="critical").answer is Answer.FAIL


def test_findings_of_another_rule_make_none_usual():
    assert answer(1, before(50, rule="gpu-throttled"), gate=NewFindings(severity="warning")).answer is Answer.FAIL


@pytest.mark.parametrize("rate", [0.0005, 0.005, 0.05])
def test_a_healthy_rollout_of_findings_that_come_by_themselves_hardly_ever_fails(rate):
    """However often the gate looks: of 200 rollouts of 10 nodes in eight hours."""
    dice = random.Random(f"seed {rate}")

    failed = sum(_is_proved_once(dice, rate) for _ in range(200))

    assert failed <= 10  # α


def _is_proved_once(dice: random.Random, rate: float) -> bool:
    past = EarlierFindings(dict.fromkeys(NODES, BEGINS), NOON, tuple(_earlier(dice, rate)))
    released = {f"node-{number}": NOON + number * HOUR / 4 for number in range(10)}
    comes = {name: at + dice.expovariate(rate) * HOUR for name, at in released.items()}
    looks = [NOON + number * HOUR / 12 for number in range(1, 96)]
    return any(_is_proved(comes, released, past, now) for now in looks)


def _earlier(dice: random.Random, rate: float):
    for name in NODES:
        first = dice.expovariate(rate) * HOUR
        if first < DAYS:
            yield EarlierFinding(name, "gpu-hot", "warning", BEGINS + first)


def _is_proved(
    comes: Mapping[str, datetime], released: Mapping[str, datetime], past: EarlierFindings, now: datetime
) -> bool:
    firsts = {name: at for name, at in comes.items() if at <= now}
    known = {name: at for name, at in released.items() if at < now}
    found = compare_with_past(FindingKind("gpu-hot", "warning"), firsts, known, past, tests=1, now=now)
    return bool(firsts) and found is not None and found.is_proved
