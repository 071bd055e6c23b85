"""Rules about what follows a node, and about what contradicts: each where it speaks, where it must not, and why."""

from dataclasses import replace

import pytest

from health.rules.base import BadCombination, ClusterFacts, NodeFacts, Severity, WorkloadHere
from health.rules.cordon_removed import CordonRemoved
from health.rules.series_explosion import SeriesExplosion
from health.rules.unsupported_combination import UnsupportedCombination
from health.rules.versions_disagree import VersionsDisagree
from health.rules.workload_fails_here import WorkloadFailsHere
from health.telemetry.base import Exploding
from tests.make import NOON
from tests.reports import steps, told

WELL = NodeFacts("gpu-001", allocatable={}, capacity={}, expected={}, requested={})
FAILS = WorkloadHere(
    "team-a/infer-7f9c", failing=2, running=0, failing_elsewhere=0, running_elsewhere=7, nodes_elsewhere=4
)
LABEL, IMAGE = "the label", "the image of its driver pod"


def evaluated(*workloads: WorkloadHere, **given):
    return WorkloadFailsHere().evaluate(replace(WELL, workloads=workloads, **given))


def test_a_template_that_fails_here_and_runs_elsewhere_is_told_with_the_counts():
    wrong = evaluated(FAILS)

    assert wrong.severity == Severity.WARNING
    assert wrong.title == "team-a/infer-7f9c fails only on gpu-001"
    assert "Failing pods of team-a/infer-7f9c here: 2" in told(wrong)
    assert "Running on other nodes: 7\nOther nodes: 4" in told(wrong)


def test_a_template_that_fails_on_one_gpu_and_runs_on_its_neighbours_is_that_gpus():
    wrong = evaluated(replace(FAILS, failing=1, running=3, running_elsewhere=1, nodes_elsewhere=1, gpu=5))

    assert wrong.title == "team-a/infer-7f9c fails only on GPU 5 of gpu-001"
    assert "Running on the node's other GPUs: 3" in told(wrong)
    assert "One pod proves little" in steps(wrong)


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(replace(FAILS, failing=0), id="nothing fails"),
        pytest.param(replace(FAILS, running=1), id="it runs here, too, and nothing says on which GPU"),
        pytest.param(replace(FAILS, running_elsewhere=2, nodes_elsewhere=2), id="too few run elsewhere"),
        pytest.param(replace(FAILS, failing_elsewhere=1), id="it fails elsewhere as often"),
        pytest.param(replace(FAILS, failing_elsewhere=9, running_elsewhere=0), id="it fails everywhere"),
    ],
)
def test_what_may_be_the_workloads_own_fault_is_not_the_nodes(workload):
    assert evaluated(workload) is None


def test_images_that_fail_here_and_run_here_are_told_apart_by_cuda():
    fails = replace(FAILS, image="team/infer:cuda13.0", cuda="13.0", running_cuda=("12.2", "12.4"))

    wrong = evaluated(fails)

    assert "Images with CUDA 13.0 fail here, those with CUDA 12.2, 12.4 run here." in wrong.causes
    assert "CUDA of the image: 13.0\nCUDA of images that run here: 12.2, 12.4" in told(wrong)
    for other in (replace(fails, cuda=""), replace(fails, cuda="12.4"), replace(fails, running_cuda=())):
        assert len(evaluated(other).causes) == 1


def test_a_few_that_fail_elsewhere_too_are_said():
    wrong = evaluated(replace(FAILS, failing_elsewhere=1, running_elsewhere=20))

    assert told(wrong).endswith("Other nodes: 4\nFailing on other nodes: 1")


def test_one_pod_is_a_note_and_two_of_different_workloads_are_a_warning():
    one = replace(FAILS, failing=1)

    assert evaluated(one).severity == Severity.NOTE
    assert evaluated(one, replace(one, name="team-b/train")).severity == Severity.WARNING


def test_several_workloads_are_counted():
    many = [replace(FAILS, name=f"team-a/infer-{number}") for number in range(4)]

    assert evaluated(*many).title == "4 workloads fail only on gpu-001"


@pytest.mark.parametrize("given", [{"is_changing": True}, {"is_unreported": True}])
def test_pods_that_fail_while_the_driver_is_away_or_nobody_hears_follow_nothing(given):
    """Z21."""
    assert evaluated(FAILS, **given) is None


def test_a_number_that_counts_on_is_the_same_cause():
    assert evaluated(FAILS).fingerprint == evaluated(replace(FAILS, failing=5, running_elsewhere=30)).fingerprint


def test_a_cordon_that_went_with_the_upgrade_is_told_until_it_is_back():
    """Z7."""
    gone = replace(WELL, uncordoned_since=NOON, upgrade_state="pod-restart-required", is_changing=True)

    assert "Uncordoned since: 2026-11-21 12:00:00 UTC" in told(CordonRemoved().evaluate(gone))
    assert CordonRemoved().evaluate(replace(gone, upgrade_state="upgrade-done", is_changing=False)) is not None
    assert CordonRemoved().evaluate(replace(gone, is_unschedulable=True)) is None
    assert CordonRemoved().evaluate(WELL) is None


@pytest.mark.parametrize(
    ("drivers", "is_wrong"),
    [
        ({}, False),
        ({LABEL: "580.95.05"}, False),
        ({LABEL: "580.95.05", IMAGE: "580.95.05-ubuntu22.04"}, False),
        ({LABEL: "580.95.05", "its ResourceSlice": "580.95.5"}, False),
        ({LABEL: "580.95.05", IMAGE: "580-5.15.0-25-generic-ubuntu22.04"}, False),
        ({LABEL: "580.95.05", IMAGE: "580.95.05-r2-ubuntu22.04", "its ResourceSlice": "580.95.5"}, False),
        ({LABEL: "580.95.05", IMAGE: "580.95.05-4.acme.1-rhel9.4"}, False),
        ({LABEL: "570.172.08", IMAGE: "580.95.05-ubuntu22.04"}, True),
        ({LABEL: "570.172.08", IMAGE: "580.95.05-r2-ubuntu22.04"}, True),
        ({LABEL: "580.95.05", IMAGE: "580.95.05-ubuntu22.04", "its ResourceSlice": "570.172.8"}, True),
    ],
)
def test_only_versions_that_cannot_be_the_same_disagree(drivers, is_wrong):
    node = replace(WELL, drivers=tuple(drivers.items()))

    assert (VersionsDisagree().evaluate(node) is not None) == is_wrong
    assert VersionsDisagree().evaluate(replace(node, is_changing=True)) is None


def test_each_place_is_named_with_what_it_says():
    node = replace(WELL, drivers=((LABEL, "570.172.08"), (IMAGE, "580.95.05-ubuntu22.04")))

    assert told(VersionsDisagree().evaluate(node)).endswith(
        "The label: 570.172.08\nThe image of its driver pod: 580.95.05-ubuntu22.04"
    )


def bad(number: int, *, is_known_bad: bool) -> BadCombination:
    sentence, action = f"Thing {number} fails.", f"Take thing {number + 1}."
    return BadCombination(is_known_bad, f"Thing {number}", sentence, action, "https://x", nodes=number)


def test_what_is_known_to_fail_is_a_warning_and_what_is_unsupported_a_note():
    known, unsupported = bad(1, is_known_bad=True), bad(2, is_known_bad=False)

    both = UnsupportedCombination().evaluate(ClusterFacts("eu-1", combinations=(known, unsupported)))
    one = UnsupportedCombination().evaluate(ClusterFacts("eu-1", combinations=(unsupported,)))

    assert (both.severity, one.severity) == (Severity.WARNING, Severity.NOTE)
    assert both.title == "Known-bad versions in cluster eu-1"
    assert told(both).endswith("Thing 1: Thing 1 fails. (1 node)\nThing 2: Thing 2 fails. (2 nodes)")
    assert both.steps[0] == "Take thing 2."
    assert one.title == "Unsupported versions in cluster eu-1"
    assert UnsupportedCombination().evaluate(ClusterFacts("eu-1")) is None


def test_only_where_gpus_are_nvidias_xids_are_compared():
    of_amd = NodeFacts("gpu-1", {}, {}, {}, {}, vendor="amd", workloads=(WorkloadHere("a/train", 2, 0, 0, 9, 4),))

    asked = [steps(WorkloadFailsHere().evaluate(each)) for each in (of_amd, replace(of_amd, vendor=""))]

    assert ["Xids" in asks for asks in asked] == [False, True]


def test_more_nodes_are_the_same_cause_and_another_pair_another():
    one = UnsupportedCombination().evaluate(ClusterFacts("eu-1", combinations=(bad(2, is_known_bad=False),)))
    more = replace(bad(2, is_known_bad=False), nodes=9)

    assert UnsupportedCombination().evaluate(ClusterFacts("eu-1", combinations=(more,))).fingerprint == one.fingerprint
    assert UnsupportedCombination().evaluate(ClusterFacts("eu-1", combinations=(bad(3, is_known_bad=False),))) != one


def test_an_exporter_whose_series_explode_is_named_and_counting_on_is_no_other_cause():
    one, more = (Exploding("DCGM_EXP_X", "10.0.0.7:9400", number) for number in (2_100, 90_000))

    wrong = SeriesExplosion().evaluate(ClusterFacts("eu-1", exploding=(one, replace(one, instance="10.0.0.8:9400"))))
    alone = [SeriesExplosion().evaluate(ClusterFacts("eu-1", exploding=(each,))) for each in (one, more)]

    assert wrong.title == "Too many series of exporter 10.0.0.7:9400"
    assert "10.0.0.7:9400 DCGM_EXP_X: 2100 series\n10.0.0.8:9400 DCGM_EXP_X: 2100 series" in told(wrong)
    assert alone[0].fingerprint == alone[1].fingerprint
    assert SeriesExplosion().evaluate(ClusterFacts("eu-1")) is None
