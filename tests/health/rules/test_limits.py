"""Limits of rules: whose they are is in the sentence, and what a person may not set says why."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.rules import RULES
from health.rules.base import Severity
from health.rules.gpus import GPU_RULES
from health.rules.gpus.base import GpuFacts
from health.rules.gpus.ecc_corrected import EccCorrected
from health.rules.gpus.hot import Hot
from health.rules.gpus.nvlink_errors import NvlinkErrors
from health.rules.limits import A_POOL, Comparing, Limits, Scale, strictest
from health.telemetry.snapshot_memory import Growth
from tests.make import NOON
from tests.reports import told

MINUTE = timedelta(minutes=1)
COMPARING = [rule for rule in (*GPU_RULES, *RULES) if isinstance(rule, Comparing)]
CELSIUS = Scale("°C", 40, 110)
COOL = Limits(75, 80, 3 * MINUTE, MINUTE, whose=A_POOL)


def gpu(celsius: float) -> GpuFacts:
    return GpuFacts("gpu-1", "GPU 3 of gpu-1", now={"temperature_celsius": celsius}, evaluated_at=NOON)


@pytest.mark.parametrize("rule", COMPARING, ids=lambda rule: rule.key)
def test_every_rules_own_limits_fit_its_own_scale(rule):
    assert rule.scale.problems(rule.limits) == []
    assert rule.after == rule.limits.warn_after


def test_a_sentence_names_the_limit_in_force_and_whose_it_is():
    assert told(Hot().evaluate(gpu(84))) == (
        "GPU 3 of gpu-1 is too hot\n"
        "It has 83 °C or more. The GPU slows down before it is damaged.\n"
        "Temperature: 84 °C\n"
        "Limit for a warning: 83 °C\n"
        "Limit for critical: 85 °C\n"
        "Must last: 300 s\n"
        "Limits set by: Quarterdeck"
    )
    pools = told(Hot(COOL).evaluate(gpu(84)))
    assert "It has 80 °C or more." in pools
    assert pools.endswith("Must last: 60 s\nLimits set by: a pool")


@pytest.mark.parametrize(
    ("celsius", "severity"),
    [(74.9, None), (75, Severity.WARNING), (79.9, Severity.WARNING), (80, Severity.CRITICAL)],
)
def test_a_pools_limits_replace_the_rules_own(celsius, severity):
    wrong = Hot(COOL).evaluate(gpu(celsius))

    assert (wrong.severity if wrong else None) == severity


def test_what_is_critical_may_be_told_sooner():
    assert Hot(COOL).evaluate(gpu(76)).opens_after == 3 * MINUTE
    assert Hot(COOL).evaluate(gpu(90)).opens_after == MINUTE


def test_without_a_critical_limit_nothing_is_critical():
    assert Hot(replace(COOL, critical=None)).evaluate(gpu(109)).severity == Severity.WARNING


def test_a_counter_can_be_critical_where_a_pool_says_so():
    grown = {"ecc_corrected": Growth(600, 0), "nvlink_replays": Growth(600, 0)}
    sick = GpuFacts("gpu-1", "GPU 3 of gpu-1", grown=grown)
    strict = Limits(100, 500, MINUTE, MINUTE, whose=A_POOL)

    assert EccCorrected().evaluate(sick).severity == Severity.WARNING
    assert EccCorrected(strict).evaluate(sick).severity == Severity.CRITICAL
    assert NvlinkErrors(strict).evaluate(sick).severity == Severity.CRITICAL


@pytest.mark.parametrize(
    ("limits", "field", "says"),
    [
        (replace(COOL, warn=39), "warn", "From 40 to 110 °C."),
        (replace(COOL, warn=float("nan")), "warn", "From 40 to 110 °C."),
        (replace(COOL, critical=float("inf")), "critical", "From 40 to 110 °C."),
        (replace(COOL, critical=75), "critical", "The critical limit must be above the warning limit."),
        (
            replace(COOL, critical_after=4 * MINUTE),
            "critical_after_s",
            "The critical time must not be longer than the warning time",
        ),
        (replace(COOL, critical=None, critical_after=timedelta(days=1)), "critical_after_s", "must not be longer than"),
        (replace(COOL, warn_after=timedelta(days=2)), "warn_after_s", "From 0 s to 1 d."),
        (replace(COOL, warn_after=timedelta(seconds=-1)), "warn_after_s", "From 0 s to 1 d."),
    ],
)
def test_limits_that_make_no_sense_say_why(limits, field, says):
    problems = dict(CELSIUS.problems(limits))

    assert says in problems[field]


def test_a_rule_of_which_nothing_is_critical_takes_no_critical_limit():
    assert CELSIUS.problems(COOL) == []
    assert dict(replace(CELSIUS, may_be_critical=False).problems(COOL))["critical"].startswith(
        "This rule has no critical severity"
    )


@given(warn=st.floats(), critical=st.none() | st.floats(), seconds=st.integers(-10, 100_000))
def test_whatever_passes_is_in_order(warn, critical, seconds):
    limits = Limits(warn, critical, timedelta(seconds=seconds))

    if not CELSIUS.problems(limits):
        assert 40 <= warn <= 110
        assert critical is None or warn < critical <= 110
        assert 0 <= seconds <= 86_400


def limits_of_pools() -> st.SearchStrategy[list[Limits]]:
    numbers = st.tuples(st.integers(40, 100), st.none() | st.integers(1, 20), st.integers(0, 900), st.integers(0, 900))
    one = numbers.map(
        lambda of: Limits(
            of[0], of[1] and of[0] + of[1], timedelta(seconds=max(of[2:])), timedelta(seconds=min(of[2:]))
        )
    )
    return st.lists(one.map(lambda each: replace(each, whose=A_POOL)), min_size=1, max_size=4)


@given(several=limits_of_pools(), celsius=st.integers(40, 130))
def test_of_several_limits_none_takes_away_what_another_would_tell(several, celsius):
    together = Hot(strictest(several)).evaluate(gpu(celsius))

    assert not CELSIUS.problems(replace(strictest(several), critical=None))
    for each in several:
        if alone := Hot(each).evaluate(gpu(celsius)):
            assert not together.severity.is_less_than(alone.severity)
            assert strictest(several).warn_after <= each.warn_after
            if alone.severity == Severity.CRITICAL:
                assert together.opens_after <= alone.opens_after


@given(several=limits_of_pools())
def test_one_pools_own_limits_are_what_they_are(several):
    assert strictest(several[:1]) == several[0]
    assert strictest([several[0], several[0]]) == several[0]


def test_a_sentence_has_the_number_of_one_and_the_time_of_another():
    slow, soon = Limits(70, None, 9 * MINUTE, whose=A_POOL), Limits(80, 90, MINUTE, MINUTE, whose=A_POOL)

    warned, wrong = (Hot(strictest([slow, soon])).evaluate(gpu(celsius)) for celsius in (72, 95))

    assert (warned.severity, wrong.severity) == (Severity.WARNING, Severity.CRITICAL)
    assert "It has 70 °C or more." in told(warned)
    assert "It has 90 °C or more." in told(wrong)
    assert told(wrong).endswith("Must last: 60 s\nLimits set by: a pool")
    assert wrong.facts["limits_of"] == "a pool"
