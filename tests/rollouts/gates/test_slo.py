from datetime import timedelta

import pytest

from rollouts.gates.base import Answer
from rollouts.gates.options import BadGate, read_gates
from rollouts.gates.slo import Slo
from tests.make import NOON
from tests.rollouts.make import a_held_target, a_service_level, a_target, evidence, values_of

SINCE = NOON - timedelta(minutes=10)


def answer(*targets, gate=None, windows=(), **level):
    """`windows` are the values of earlier windows."""
    earlier = tuple(a_service_level(**level | {"value": value}) for value in windows)
    its = targets or (a_target(state_since=SINCE),)
    shown = evidence(*its, service_level=a_service_level(**level), service_windows=earlier)
    return (gate or Slo()).evaluate(shown, now=NOON)


def test_passes_with_value_baseline_samples_and_age():
    result = answer()

    assert (result.answer, result.title) == (Answer.PASS, "vLLM: time to first token, p99 is within its limits")
    shown = values_of(result)
    assert (shown["Value"], shown["Baseline (past)"], shown["Samples"]) == (0.4, 0.4, 500)
    assert shown["Newest sample"] == (NOON - timedelta(seconds=20)).isoformat()


def test_one_worse_window_may_be_chance_and_keeps_the_stage_waiting():
    assert answer(value=0.48).answer is Answer.PASS

    result = answer(value=0.5, windows=[0.5])

    assert (result.answer, result.cause, result.nodes) == (Answer.WAIT, "unproved", ("node-1",))
    assert result.summary == "The value is 0.5 s: 25 % worse than the baseline of 0.4. Worse windows: 1 of 1."
    shown = values_of(result)
    assert (shown["Windows compared (n)"], shown["Change"], shown["Fails after further worse windows"]) == (1, 25, 1)


def test_fails_once_the_windows_exclude_chance():
    result = answer(value=0.5, windows=[0.5, 0.5])

    assert (result.answer, result.nodes) == (Answer.FAIL, ("node-1",))
    assert result.summary == "The value is 0.5 s: 25 % worse than the baseline of 0.4. Worse windows: 2 of 2."
    assert answer(value=0.4, windows=[0.5, 0.5]).answer is Answer.PASS  # it has recovered


def test_only_whole_windows_that_can_be_compared_count():
    gate, level = Slo(), a_service_level()

    assert gate.is_window(level, None)
    assert gate.is_window(level, NOON - timedelta(minutes=5))
    assert not gate.is_window(level, NOON - timedelta(minutes=4))
    assert not gate.is_window(a_service_level(samples=3), None)
    assert not Slo(at_most=1, at_most_worse_percent=0).is_window(level, None)


def test_fewer_tokens_are_worse_and_more_are_not():
    tokens = Slo(indicator="vllm-tokens", at_most_worse_percent=10)

    assert answer(gate=tokens, value=85, baseline=100, windows=[85, 85]).answer is Answer.FAIL
    assert answer(gate=tokens, value=150, baseline=100).answer is Answer.PASS


def test_an_absolute_limit_needs_no_baseline():
    limited = Slo(at_most=0.5, at_most_worse_percent=0)

    assert answer(gate=limited, baseline=None, baseline_samples=0).answer is Answer.PASS
    assert answer(gate=limited, value=0.6).summary == "The value is 0.6 s. The limit is at most 0.5."


@pytest.mark.parametrize(
    ("level", "cause"),
    [
        ({"trouble": "It does not answer.", "cause": "source-silent"}, "source-silent"),
        ({"value": None}, "no-value"),
        ({"newest_at": None}, "old-samples"),
        ({"newest_at": NOON - timedelta(minutes=3)}, "old-samples"),
        ({"samples": 19}, "few-samples"),
        ({"baseline": None, "baseline_samples": 0}, "few-baseline-samples"),
        ({"baseline_samples": 3, "value": 9.0}, "few-baseline-samples"),
        ({"baseline": 0.0}, "zero-baseline"),
    ],
)
def test_what_proves_nothing_waits_with_its_cause(level, cause):
    result = answer(**level)

    assert (result.answer, result.cause) == (Answer.WAIT, cause)
    assert result.steps


def test_a_baseline_of_zero_is_met_by_zero():
    assert answer(value=0.0, baseline=0.0).answer is Answer.PASS


@pytest.mark.parametrize("minutes", [-3, 3])
def test_a_measurement_of_another_time_counts_for_nothing(minutes: int):
    shown = evidence(a_target(state_since=SINCE), service_level=a_service_level(value=9.0))

    assert Slo().evaluate(shown, now=NOON + timedelta(minutes=minutes)).cause == "not-asked"


def test_waits_for_the_window_of_a_node_that_changed_just_now():
    result = answer(a_target(state_since=SINCE), a_target("node-2", state_since=NOON - timedelta(minutes=1)))

    assert (result.answer, result.cause, result.nodes) == (Answer.WAIT, "window", ("node-2",))


def test_fails_by_the_measured_nodes_before_the_others_have_changed():
    assert answer(a_target(state_since=SINCE), a_held_target("node-2"), value=9.0, windows=[9, 9]).answer is Answer.FAIL
    assert answer(a_target(state_since=SINCE), a_held_target("node-2")).cause == "to-come"


def test_waits_for_a_node_that_the_last_measurement_leaves_out():
    result = answer(a_target(state_since=SINCE), a_target("node-2", state_since=SINCE))

    assert (result.cause, result.nodes) == ("not-asked", ("node-2",))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"indicator": "vllm"}, "indicator is one of vllm-ttft-p99"),
        ({"expression": "up"}, "slo: expression: Write up"),
        ({"samples": "up"}, "samples is only allowed with your own expression"),
        ({"at_most_worse_percent": 0}, "a limit is needed"),
        ({"at_most": 1, "at_least": 2}, "at_most is less than at_least, so no number can pass"),
        ({"at_most": float("nan")}, "must be a number"),
        ({"at_most": float("inf")}, "must be a finite number"),
        ({"baseline": "yesterday"}, "baseline is past or peers"),
        ({"window_s": 10}, "window_s is from 1 min"),
        ({"max_age_s": 0}, "max_age_s must be more than 0"),
        ({"expression": "x" * 1001}, "at most 1000 characters"),
    ],
)
def test_options_that_measure_nothing_are_refused(options, said):
    with pytest.raises(BadGate) as refusal:
        read_gates({"slo": options})

    assert said in str(refusal.value)


@pytest.mark.parametrize(("window_s", "past"), [(60, 360), (300, 1800), (1200, 3600), (86400, 86400)])
def test_the_past_is_six_windows_but_at_most_an_hour_or_one_window(window_s: int, past: int):
    assert Slo(window=timedelta(seconds=window_s)).past_window == timedelta(seconds=past)
