from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fleet.history.facts import TITLES, Fact, NodeChange, changes_in, facts_at

AMOUNTS = ("gpu_capacity", "gpu_allocatable", "slices_allocatable", "shares_allocatable")
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def fact(column: str, at: datetime, changes: list[NodeChange], now: dict | None) -> Fact:
    return next(each for each in facts_at(at, changes, now) if each.column == column)


def driver(hour: int, was: str, now: str) -> NodeChange:
    return NodeChange(NOON + timedelta(hours=hour), "driver_version", was, now)


def test_it_was_what_the_next_change_says_it_was():
    changes = [driver(0, "570.1", "580.1"), driver(2, "580.1", "590.1")]

    then = fact("driver_version", NOON + timedelta(hours=1), changes, {"driver_version": "590.1"})

    assert (then.words, then.since) == ("580.1", NOON)


def test_where_nothing_changed_since_it_was_what_it_is():
    then = fact("kernel", NOON, [], {"kernel": "6.8.0"})

    assert (then.words, then.since) == ("6.8.0", None)


def test_of_a_node_that_is_gone_the_last_change_says_it_and_else_nobody():
    changes = [driver(0, "570.1", "580.1")]

    assert fact("driver_version", NOON + timedelta(hours=1), changes, None).words == "580.1"
    assert fact("kernel", NOON, changes, None) == Fact("kernel", is_known=False)


def test_where_it_changed_once_more_and_nobody_wrote_it_down_nobody_knows():
    changes = [driver(0, "570.1", "580.1")]

    assert not fact("driver_version", NOON + timedelta(hours=1), changes, {"driver_version": "590.1"}).is_known
    assert fact("driver_version", NOON - timedelta(hours=1), changes, {"driver_version": "590.1"}).words == "570.1"
    gap = [*changes, driver(2, "585.1", "590.1")]
    assert not fact("driver_version", NOON + timedelta(hours=1), gap, {"driver_version": "590.1"}).is_known


def test_a_change_that_another_entry_tells_of_is_read_too():
    also = {"column": "gpu_capacity", "was": 8, "is": 0}
    detail = {"column": "layout", "was": "", "is": "mig", "also": [also]}

    assert changes_in([(NOON, detail)]) == [NodeChange(NOON, "gpu_capacity", 8, 0)]


def test_a_kubelet_that_did_not_report_is_not_down_and_no_number_is_not_nought():
    assert fact("is_ready", NOON, [], {"is_ready": None}).words == "the kubelet did not report"
    assert fact("gpu_capacity", NOON, [], {"gpu_capacity": None}).words == "not known"
    assert fact("gpu_capacity", NOON, [], {"gpu_capacity": 0}).words == "0"


def test_lines_that_do_not_say_what_changed_are_passed_over():
    rows = [(NOON, {}), (NOON, {"column": "kernel"}), (NOON, {"column": "layout", "was": "", "is": "x"})]

    assert changes_in(rows) == []


def amounts(changes: list[NodeChange], now: dict | None, *, at: datetime = NOON) -> dict[str, str]:
    return {each.title: each.words for each in facts_at(at, changes, now) if each.column in AMOUNTS}


def test_of_a_node_that_has_only_whole_gpus_nothing_is_said_of_slices_and_shares():
    now = {"gpu_capacity": 8, "gpu_allocatable": 7, "slices_allocatable": 0, "shares_allocatable": 0}

    assert amounts([], now) == {"Whole GPUs of the node": "8", "Whole GPUs that can be allocated": "7"}


def test_a_node_that_is_cut_has_slices_and_no_whole_gpu():
    now = {"gpu_capacity": 0, "gpu_allocatable": 0, "slices_allocatable": 14, "shares_allocatable": 0}

    assert amounts([], now) == {
        "Whole GPUs of the node": "0",
        "Whole GPUs that can be allocated": "0",
        "Slices that can be allocated": "14",
    }


def test_of_a_node_that_is_shared_only_the_shares_are_said():
    now = {"gpu_capacity": None, "gpu_allocatable": None, "slices_allocatable": 0, "shares_allocatable": 32}

    assert amounts([], now) == {"Shares that can be allocated": "32"}


def test_slices_are_said_as_of_then_and_where_none_are_left_too():
    lost = [NodeChange(NOON + timedelta(hours=1), "slices_allocatable", 14, 0)]
    now = {"gpu_capacity": 0, "gpu_allocatable": 0, "slices_allocatable": 0, "shares_allocatable": 0}

    assert amounts(lost, now)["Slices that can be allocated"] == "14"
    assert amounts(lost, now, at=NOON + timedelta(hours=2))["Slices that can be allocated"] == "0"


def test_where_nobody_knows_an_amount_that_is_said_of_whole_gpus_once():
    not_known = {"Whole GPUs of the node": "not known", "Whole GPUs that can be allocated": "not known"}

    assert amounts([], None) == not_known


GONE, AGAIN = {"was": "580.1"}, {"is": "580.1"}


@pytest.mark.parametrize(
    ("hour", "words"),
    [
        (0, "580.1"),
        (1, "unknown: no label had it; the last value was 580.1"),
        (2, "580.1"),
        (3, "unknown: no label had it; the last value was 580.1"),
        (4, "590.1"),
        (5, "unknown: no label had it; the last value was 590.1"),
    ],
)
def test_a_driver_whose_label_was_gone_was_not_known_however_well_it_is_remembered(hour, words):
    upgraded = {"column": "driver_version", "was": "580.1", "is": "590.1"}
    changes = changes_in([(NOON + timedelta(hours=at), it) for at, it in enumerate((GONE, AGAIN, GONE, upgraded), 1)])
    now = {"driver_version": "590.1", "driver_unknown_since": NOON + timedelta(hours=5)}

    then = fact("driver_version", NOON + timedelta(hours=hour, minutes=30), changes, now)

    assert (then.words, then.is_known) == (words, "unknown" not in words)
    assert then.since == (NOON + timedelta(hours=hour) if hour not in (0, 2) else None)


def test_a_label_that_came_again_was_gone_before():
    """Also where what told of its going was pruned."""
    changes = changes_in([(NOON, AGAIN)])

    assert not fact("driver_version", NOON - timedelta(hours=1), changes, {"driver_version": "580.1"}).is_known
    assert fact("driver_version", NOON, changes, {"driver_version": "580.1"}).words == "580.1"


def test_what_a_node_that_is_gone_named_last_is_not_known_where_it_named_it_no_more():
    changes = [driver(0, "570.1", "580.1"), *changes_in([(NOON + timedelta(hours=1), GONE)])]

    assert fact("driver_version", NOON, changes, None).words == "580.1"
    assert "the last value was 580.1" in fact("driver_version", NOON + timedelta(hours=2), changes, None).words


STEPS = some.lists(some.tuples(some.sampled_from(sorted(TITLES)), some.integers(0, 5)), max_size=30)


@given(start=some.integers(0, 5), steps=STEPS, look=some.integers(-1, 31))
def test_whatever_happened_it_is_what_somebody_who_looked_then_would_have_seen(start, steps, look):
    """Against a walk that keeps every picture."""
    picture = dict.fromkeys(TITLES, start)
    pictures, changes = [(NOON, dict(picture))], []
    for hour, (column, value) in enumerate(steps):
        at = NOON + timedelta(hours=hour + 1)
        if picture[column] != value:
            changes.append(NodeChange(at, column, picture[column], value))
        picture[column] = value
        pictures.append((at, dict(picture)))
    at = NOON + timedelta(hours=look, minutes=30)
    seen = [each for when, each in pictures if when <= at] or [pictures[0][1]]

    then = {each.column: each.value for each in facts_at(at, changes, picture)}
    assert then == {column: value for column, value in seen[-1].items() if column in then}
    assert {column for column, value in seen[-1].items() if value} <= then.keys()
