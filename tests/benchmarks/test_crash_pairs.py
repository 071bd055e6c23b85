"""What two plans have out at once is counted over both."""

from benchmarks.crashing.pair_schedule import over_places

FIRST, SECOND = "gpu-h100-001", "gpu-a100-001"


def test_a_node_of_each_plan_at_once_is_past_one_place():
    out = [("12:00:01", FIRST, True), ("12:00:03", FIRST, False), ("12:00:02", SECOND, True)]
    assert [one.figure for one in over_places(out, 1)] == ["over_budget"]
    assert not list(over_places(out, 2))


def test_a_node_that_goes_when_the_other_is_back_is_nothing():
    out = [("12:00:01", FIRST, True), ("12:00:02", FIRST, False), ("12:00:03", SECOND, True)]
    assert not list(over_places(out, 1))
