import math
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts.gates import GATES
from rollouts.gates.options import BadGate, read_gates, write_options
from rollouts.gates.soak import Soak
from rollouts.gates.workloads_ready import WorkloadsReady

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)
WRITTEN_NAMES = st.sampled_from([name for gate in GATES.values() for name in write_options(gate())]) | st.text()


def test_reads_what_a_plan_writes():
    gates = read_gates({"soak": {"duration_s": 600}, "workloads_ready": {"tolerate": 2}})

    assert gates == [WorkloadsReady(tolerate=2), Soak(timedelta(minutes=10))]


def test_the_order_is_the_tables_whatever_the_plans():
    gates = read_gates({key: {} for key in reversed(GATES)})

    assert [gate.key for gate in gates] == list(GATES)


@pytest.mark.parametrize("key", GATES)
def test_what_is_written_is_read_again(key: str):
    (gate,) = read_gates({key: {}})

    assert read_gates({key: write_options(gate)}) == [gate]


@given(st.integers(0, 10**6), st.integers(0, 100))
def test_numbers_survive_the_round_trip(timeout_s: int, tolerate: int):
    (gate,) = read_gates({"workloads_ready": {"timeout_s": timeout_s, "tolerate": tolerate}})

    assert write_options(gate) == {"timeout_s": timeout_s, "max_restarts": 2, "tolerate": tolerate}


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ({"telepathy": {}}, "telepathy"),
        ({"soak": {"length_s": 1}}, "length_s"),
        ({"soak": {"duration": 1}}, "duration_s"),
        ({"failure_budget": {"tolerate_s": 1}}, "tolerate_s"),
        ({"soak": {"duration_s": "long"}}, "number"),
        ({"soak": {"duration_s": -1}}, "of 0 or more"),
        ({"soak": {"duration_s": True}}, "number"),
        ({"soak": {"duration_s": 1e30}}, "duration_s"),
        ({"soak": {"duration_s": 10**30}}, "duration_s"),
        ({"soak": {"duration_s": math.inf}}, "duration_s"),
        ({"soak": {"duration_s": math.nan}}, "duration_s"),
        ({"failure_budget": {"tolerate": 0.5}}, "whole"),
        ({"soak": {"wait_timeout": 60}}, "wait_timeout_s"),
        ({"soak": {"wait_timeout_s": True}}, "number"),
        ({"soak": {"advisory": 1}}, "true or false"),
        ({"soak": {"advisory": "true"}}, "true or false"),
        ({"soak": {"advisory": True, "reason": "x" * 201}}, "200"),
        ({"soak": {"advisory": True, "reason": 1}}, "text"),
        ({"soak": {"advisory": True, "reason": "a\x00"}}, "cannot be stored"),
        ({"soak": {"advisory": True, "reason": "\ud800"}}, "cannot be stored"),
        ({"soak": {"reason": "Too slow."}}, "reason is only allowed for an advisory gate"),
        ({"soak": []}, "soak"),
        ({"soak": None}, "soak"),
    ],
    ids=str,
)
def test_names_what_cannot_be_read(written, named: str):
    with pytest.raises(BadGate, match=named):
        read_gates(written)


def test_an_approval_by_nobody_is_no_approval():
    with pytest.raises(BadGate, match="needed"):
        read_gates({"approval": {"needed": 0}})


def test_every_gate_may_be_advisory_with_a_reason_and_have_a_wait_timeout_of_its_own():
    written = {"advisory": True, "reason": "No tenants here.", "wait_timeout_s": 90.0}

    (gate,) = read_gates({"workloads_ready": written})

    assert (gate.advisory, gate.reason, gate.wait_timeout) == (True, "No tenants here.", timedelta(seconds=90))
    assert write_options(gate).items() >= written.items()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"advisory": True}, "an approval always counts and cannot be advisory"),
        ({"wait_timeout_s": 60}, "no wait timeout"),
    ],
    ids=str,
)
def test_an_approval_always_counts_and_waits_as_long_as_people_take(options, words: str):
    with pytest.raises(BadGate, match=words):
        read_gates({"approval": options})


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(list(GATES)), st.dictionaries(WRITTEN_NAMES, JSON, max_size=2) | JSON))
def test_whatever_is_written_is_gates_or_a_bad_gate(written):
    with suppress(BadGate):
        assert {gate.key for gate in read_gates(written)} == set(written)
