from dataclasses import replace
from itertools import product

import pytest

from health.rules.base import IdlePod, NodeFacts, Severity
from health.rules.idle_gpus import IdleGpus, patiences

GPU = "nvidia.com/gpu"
NODE = NodeFacts("gpu-1", allocatable={GPU: 8}, capacity={GPU: 8}, expected={GPU: 8}, requested={GPU: 8})


def judged(*pods: IdlePod, classes: tuple[str, ...] = ()):
    return IdleGpus().judge(replace(NODE, idle_pods=pods, workload_classes=frozenset(classes)))


# Mission A6 has an hour; inference and people at work are given longer (Z28).
HOURS = {(): 2, ("training",): 2, ("mixed",): 2, ("development",): 12, ("inference",): 24, ("other",): 2}
HOURS |= {("training", "inference"): 24, ("training", "development"): 12}


@pytest.mark.parametrize(("classes", "hours"), list(product(HOURS, patiences())))
def test_how_long_a_gpu_may_do_nothing_depends_on_the_work(classes, hours):
    wrong = judged(IdlePod("a/b", 1, hours), classes=classes)

    assert (wrong is not None) is (hours >= HOURS[classes])


def test_it_is_a_note_that_names_the_pods_and_what_they_cost():
    wrong = judged(IdlePod("team-b/small", 1, 2), IdlePod("team-a/notebook", 4, 12), IdlePod("team-c/new", 8, 0))

    assert wrong.severity is Severity.NOTE
    assert wrong.sentence == (
        "5 GPUs of gpu-1 are held and less than 5% busy, in each of the last 2 hours and more: "
        "team-a/notebook (4 GPUs), team-b/small (1 GPU)."
    )
    assert wrong.evidence["gpu_hours_at_least"] == 50


def test_it_is_the_same_trouble_while_it_goes_on():
    before, after = judged(IdlePod("a/b", 1, 2)), judged(IdlePod("a/b", 1, 12))

    assert before.cause == after.cause
    assert before.cause != judged(IdlePod("a/b", 1, 2), IdlePod("a/c", 1, 2)).cause


def test_nobody_who_works_is_told_of():
    assert judged() is None
