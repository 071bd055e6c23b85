"""What happens in the demo is a pure function of its nodes, its seed and the minute."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.teams import lasting
from demo.timetable import ROUND_MIN, Scene, timetable
from simulator.faults import FAULTS
from simulator.faults.board import build

NODES = [f"gpu-h100-{number:03}" for number in range(1, 33)]


def on_at(minute: float, scenes: list[Scene]) -> set[str]:
    """The faults of that minute."""
    return {scene.fault["key"] for scene in scenes if scene.fault and scene.is_on(minute)}


def test_the_same_seed_breaks_the_same_gpus_and_another_seed_others():
    assert timetable(NODES, 1) == timetable(list(reversed(NODES)), 1)
    assert timetable(NODES, 1) != timetable(NODES, 2)


@pytest.mark.parametrize(
    ("minute", "broken"),
    [
        (0.0, set()),
        (2.0, {"hot_gpu"}),
        (4.0, {"hot_gpu", "fallen_gpu"}),
        (13.0, {"fallen_gpu"}),
        (26.0, set()),
        (ROUND_MIN + 4.0, {"hot_gpu", "fallen_gpu"}),
    ],
)
def test_gpus_break_and_recover_by_the_minute(minute: float, broken: set[str]):
    assert on_at(minute, timetable(NODES, 1)) == broken


@given(st.floats(0, 10 * ROUND_MIN))
def test_what_teams_wait_for_is_there_all_the_time(minute: float):
    lasting = timetable(NODES, 1)[0]

    assert lasting.made
    assert lasting.is_on(minute)


def test_ten_pods_wait_each_for_another_reason():
    made = [each.body for each in lasting() if each.body["kind"] == "ReplicaSet"]
    specs = [str(body["spec"]["template"]["spec"]) for body in made]

    assert len(set(specs)) == len(specs) == 11  # one of them holds GPUs and waits for none


@given(st.integers(0, 2**31 - 1), st.integers(1, 40))
def test_what_breaks_is_never_among_the_nodes_that_a_plan_begins_with(seed: int, count: int):
    nodes = NODES[:count]

    broken = {scene.fault["node"] for scene in timetable(nodes, seed) if scene.fault}

    assert broken <= set(nodes[len(nodes) // 2 :])


@given(st.integers(0, 2**31 - 1))
def test_every_fault_is_one_that_the_simulator_knows(seed: int):
    for scene in timetable(NODES, seed):
        if scene.fault:
            settings = dict(scene.fault)
            assert build(FAULTS, settings.pop("key"), settings)


def test_without_such_nodes_only_teams_do_something():
    assert [bool(scene.fault) for scene in timetable([], 1)] == [False]
