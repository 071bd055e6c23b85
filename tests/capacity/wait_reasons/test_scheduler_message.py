"""The sentences of kube-scheduler 1.30 to 1.36, read into counts."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.wait_reasons.scheduler_message import LONGEST, REASONS, agreement, kind_of, read_message

TAIL = "preemption: 0/9 nodes are available: 5 No preemption victims found for incoming pod, 4 Preemption is not helpful for scheduling."  # noqa: E501


@pytest.mark.parametrize(
    ("message", "counts"),
    [
        ("0/9 nodes are available: 9 Insufficient nvidia.com/gpu.", {"resource:nvidia.com/gpu": 9}),
        (
            (
                "0/9 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {team: vision}, "
                f"3 node(s) were unschedulable, 4 node(s) didn't match Pod's node affinity/selector. {TAIL}"
            ),
            {"resource:cpu": 1, "taint": 2, "cordon": 3, "affinity": 4},
        ),
        (
            (
                f"0/9 nodes are available: 2 node(s) had untolerated taint(s), 10 Insufficient memory. "
                f"no new claims to deallocate, {TAIL}"
            ),
            {"taint": 2, "resource:memory": 10},
        ),
        ("0/9 nodes are available: 9 Too many pods.", {"resource:pods": 9}),
        ("0/9 nodes are available: 9 cannot allocate all claims.", {"claim": 9}),
        (
            "0/4 nodes are available: 4 node(s) didn't match pod topology spread constraints (missing required label).",
            {"spread": 4},
        ),
    ],
)
def test_counts(message, counts):
    found = read_message(message)

    assert found.counts == counts
    assert not found.unknown


def test_what_preemption_says_is_apart():
    found = read_message(f"0/9 nodes are available: 9 Insufficient nvidia.com/gpu. {TAIL}")

    assert found.nodes == 9
    assert found.finds_no_victims
    assert found.preemption == TAIL


def test_a_text_of_a_prefilter_has_no_counts():
    found = read_message('0/3 nodes are available: persistentvolumeclaim "x" not found. preemption: 0/3 nodes x.')

    assert (found.counts, found.text) == ({}, 'persistentvolumeclaim "x" not found')
    assert found.is_about_volumes
    assert agreement({}, found) is None


def test_a_text_before_the_counts_is_kept_with_them():
    found = read_message("0/3 nodes are available: waiting for x. 3 Insufficient nvidia.com/gpu.")

    assert (found.text, found.counts) == ("waiting for x", {"resource:nvidia.com/gpu": 3})


def test_another_sentence_is_text():
    found = read_message("no nodes available to schedule pods")

    assert (found.nodes, found.counts, found.text) == (None, {}, "no nodes available to schedule pods")
    assert read_message("  ") is None


def test_unknown_reasons_lower_the_agreement():
    found = read_message("0/4 nodes are available: 1 node(s) sind zu klein, 3 Insufficient nvidia.com/gpu.")

    assert found.unknown == {"node(s) sind zu klein": 1}
    assert agreement({"resource:nvidia.com/gpu": 3}, found) == 0.75
    assert agreement({"resource:nvidia.com/gpu": 1, "taint": 3}, found) == 0.25


def test_each_known_reason_is_found():
    assert [kind_of(beginning) for beginning, _ in REASONS] == [kind for _, kind in REASONS]


@given(st.text(max_size=300), st.integers(0, 10**12))
def test_any_text_is_read(text, number):
    read_message(text)
    found = read_message(f"0/7 nodes are available: {number} {text}")
    assert found is not None


@pytest.mark.parametrize("seed", ["1 a, ", "1 ", ", ", ". ", "9", "preemption: ", "{1: 2, 3 "])
def test_no_message_takes_long(seed):
    began = time.thread_time()
    read_message("0/1 nodes are available: " + seed * (3 * LONGEST // len(seed)))

    assert time.thread_time() - began < 0.5
