from dataclasses import replace
from itertools import product

import pytest

from gpu.resources import Way
from health.rules.base import IdleAllocation, NodeFacts, Severity
from health.rules.idle_gpus import IdleGpus, all_idle_hours, reported_hours_of
from health.rules.limits import A_POOL, Limits
from tests.reports import told

GPU = "nvidia.com/gpu"
NODE = NodeFacts("gpu-1", allocatable={GPU: 8}, capacity={GPU: 8}, expected={GPU: 8}, requested={GPU: 8})
TURNS, SLICE = Way(sharing="time-slicing"), Way("1g.10gb")


def evaluated(*allocated: IdleAllocation, classes: tuple[str, ...] = ()):
    return IdleGpus().evaluate(replace(NODE, idle_allocations=allocated, workload_classes=frozenset(classes)))


def boards(pod: str, *hours: int, first: int = 0) -> list[IdleAllocation]:
    return [IdleAllocation(pod, each, f"GPU-{first + number}") for number, each in enumerate(hours)]


# An hour and one more; inference and people at work are given longer (Z28).
HOURS = {(): 2, ("training",): 2, ("mixed",): 2, ("development",): 12, ("inference",): 24, ("other",): 2}
HOURS |= {("training", "inference"): 24, ("training", "development"): 12}


@pytest.mark.parametrize(("classes", "hours"), list(product(HOURS, all_idle_hours())))
def test_how_long_a_gpu_may_do_nothing_depends_on_the_work(classes, hours):
    wrong = evaluated(IdleAllocation("a/b", hours, "GPU-0"), classes=classes)

    assert (wrong is not None) is (hours >= HOURS[classes])


def test_it_is_a_note_that_names_the_pods_and_what_they_cost():
    wrong = evaluated(*boards("team-b/small", 2), *boards("team-a/notebook", *[12] * 4, first=1), *boards("c/new", 0))

    assert wrong.severity is Severity.NOTE
    assert told(wrong) == (
        "5 GPUs allocated and idle on gpu-1\n"
        "Each was less than 5 % busy in each of the last 2 hours.\n"
        "Idle, at least: 50 GPU hours\nPod team-a/notebook: 4 GPUs\nPod team-b/small: 1 GPU"
    )
    assert wrong.facts["gpu_hours_at_least"] == 50


def test_of_a_pods_gpus_those_count_that_were_idle_for_long_enough():
    wrong = evaluated(*boards("team-a/chat", 24, 2), classes=("inference",))

    assert wrong.title.startswith("1 GPU allocated")
    assert wrong.facts["gpu_hours_at_least"] == 24
    assert wrong.facts["pods"] == {"team-a/chat": {"has": "1 GPU", "idle_hours": {"GPU-0": 24}}}


def test_four_time_slices_of_one_board_are_one_gpu():
    wrong = evaluated(*(IdleAllocation(f"team-a/{name}", 12 if name == "d" else 2, "GPU-0", TURNS) for name in "abcd"))

    assert wrong.title == "1 GPU allocated and idle on gpu-1"
    assert told(wrong).endswith("Pod team-a/c: 1 time-slice\nPod team-a/d: 1 time-slice")
    assert wrong.facts["gpu_hours_at_least"] == 12


def test_two_slices_of_one_board_are_one_gpu_and_called_slices():
    wrong = evaluated(IdleAllocation("a/b", 2, "GPU-0", SLICE), IdleAllocation("a/b", 2, "GPU-0", SLICE))

    assert wrong.title.startswith("1 GPU allocated")
    assert "Pod a/b: 2 slices 1g.10gb" in told(wrong)
    assert wrong.facts["gpu_hours_at_least"] == 2


def test_shares_of_which_nothing_says_where_they_are_are_no_gpus():
    wrong = evaluated(IdleAllocation("a/b", 2, way=TURNS, number=3), IdleAllocation("a/c", 2, way=TURNS))

    assert wrong.title.startswith("4 time-slices allocated")
    assert wrong.facts["gpu_hours_at_least"] == 0


def test_whole_gpus_count_wherever_they_are():
    wrong = evaluated(
        IdleAllocation("a/b", 12, number=2), IdleAllocation("a/c", 2, "GPU-0"), IdleAllocation("a/d", 2, way=SLICE)
    )

    assert wrong.title.startswith("3 GPUs and 1 slice 1g.10gb allocated")
    assert wrong.facts["gpu_hours_at_least"] == 26


def test_it_is_the_same_trouble_while_it_goes_on():
    before, after = evaluated(IdleAllocation("a/b", 2, "GPU-0")), evaluated(IdleAllocation("a/b", 12, "GPU-0"))

    assert before.fingerprint == after.fingerprint
    assert (
        before.fingerprint
        != evaluated(IdleAllocation("a/b", 2, "GPU-0"), IdleAllocation("a/c", 2, "GPU-1")).fingerprint
    )
    assert before.fingerprint != evaluated(IdleAllocation("a/b", 2, "GPU-1")).fingerprint


def test_its_evidence_says_of_whom_it_was_told():
    wrong = evaluated(*boards("a/b", 2, 12), IdleAllocation("a/c", 2, number=3))

    assert reported_hours_of(wrong.facts) == {("a/b", "GPU-0"): 2, ("a/b", "GPU-1"): 12, ("a/c", ""): 2}


def test_evidence_of_an_older_version_tells_of_nobody():
    assert reported_hours_of({"pods": {"a/b": {"gpus": 1, "hours_at_least": 2}}}) == {}


def test_nobody_who_works_is_told_of():
    assert evaluated() is None


def test_a_limit_of_a_pool_is_in_minutes_and_replaces_that_of_its_class():
    own = IdleGpus(Limits(30, whose=A_POOL))
    node = replace(NODE, workload_classes=frozenset({"inference"}))
    wrong = own.evaluate(replace(node, idle_allocations=(IdleAllocation("a/b", 0.5, "GPU-0"),)))

    assert told(wrong) == (
        "1 GPU allocated and idle on gpu-1\n"
        "Each was less than 5 % busy for 30 min.\n"
        "Idle, at least: 0.5 GPU hours\nLimit for a warning: 30 min\nLimits set by: a pool\nPod a/b: 1 GPU"
    )
    assert own.evaluate(replace(node, idle_allocations=(IdleAllocation("a/b", 0.4, "GPU-0"),))) is None
