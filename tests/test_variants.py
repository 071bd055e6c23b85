"""Which variants and examples of a test run each day, and with which values."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.profiles import FEWEST, multiply_examples
from tests.variants import nightly_but_first


def test_the_first_variant_runs_each_day_and_the_others_nightly():
    first, *others = nightly_but_first(["a", "b", "c"])

    assert first == "a"
    assert [(one.values, [mark.name for mark in one.marks]) for one in others] == [
        (("b",), ["nightly"]),
        (("c",), ["nightly"]),
    ]


def test_a_tuple_is_one_value():
    first, second = nightly_but_first([(1, 2), (3, 4)])

    assert first == (1, 2)
    assert second.values == ((3, 4),)


@pytest.mark.parametrize("position", [0, 1])
def test_a_param_with_marks_of_its_own_is_refused(position: int):
    variants = ["a", "b"]
    variants[position] = pytest.param("c", marks=pytest.mark.rounds)

    with pytest.raises(TypeError, match="takes values"):
        nightly_but_first(variants)


@pytest.mark.parametrize(("usual", "by_day"), [(50, 20), (5, FEWEST), (2, 2)])
def test_a_share_of_the_examples_runs_each_day_and_never_none(usual: int, by_day: int):
    @settings(max_examples=usual)
    @given(st.integers())
    def test(number: int) -> None: ...

    multiply_examples([SimpleNamespace(obj=test)] * 2, 0.4)

    assert test._hypothesis_internal_use_settings.max_examples == by_day
