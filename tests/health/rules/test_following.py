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
    assert wrong.sentence == (
        "2 pods of team-a/infer-7f9c fail on gpu-001, and 7 of the same template run: 7 on 4 other nodes."
    )
    assert wrong.evidence["team-a/infer-7f9c"]["running_elsewhere"] == 7


def test_a_template_that_fails_on_one_gpu_and_runs_on_its_neighbours_is_that_gpus():
    wrong = evaluated(replace(FAILS, failing=1, running=3, running_elsewhere=1, nodes_elsewhere=1, gpu=5))

    assert wrong.sentence == (
        "1 pod of team-a/infer-7f9c fails on GPU 5 of gpu-001, and 4 of the same template run: 3 on its other GPUs and "
        "1 on 1 other node."
    )
    assert "One pod proves little" in wrong.action


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


def test_a_few_that_fail_elsewhere_too_are_said():
    wrong = evaluated(replace(FAILS, failing_elsewhere=1, running_elsewhere=20))

    assert wrong.sentence.endswith("20 on 4 other nodes, where 1 fails, too.")


def test_one_pod_is_a_note_and_two_of_different_workloads_are_a_warning():
    one = replace(FAILS, failing=1)

    assert evaluated(one).severity == Severity.NOTE
    assert evaluated(one, replace(one, name="team-b/train")).severity == Severity.WARNING


def test_workloads_beyond_the_first_two_are_counted():
    many = [replace(FAILS, name=f"team-a/infer-{number}") for number in range(4)]

    assert evaluated(*many).sentence.endswith("; and so do those of 2 other workloads.")


@pytest.mark.parametrize("given", [{"is_changing": True}, {"is_unreported": True}])
def test_pods_that_fail_while_the_driver_is_away_or_nobody_hears_follow_nothing(given):
    """Z21."""
    assert evaluated(FAILS, **given) is None


def test_a_number_that_counts_on_is_the_same_cause():
    assert evaluated(FAILS).cause == evaluated(replace(FAILS, failing=5, running_elsewhere=30)).cause


def test_a_cordon_that_went_with_the_upgrade_is_told_until_it_is_back():
    """Z7."""
    gone = replace(WELL, uncordoned_since=NOON, upgrade_state="pod-restart-required", is_changing=True)

    assert "taken pods again since 2026-11-21 12:00 UTC" in CordonRemoved().evaluate(gone).sentence
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

    assert VersionsDisagree().evaluate(node).sentence == (
        "gpu-001: of its driver, the label says 570.172.08, the image of its driver pod says 580.95.05-ubuntu22.04."
    )


def bad(number: int, *, is_known_bad: bool) -> BadCombination:
    sentence, action = f"Thing {number} fails.", f"Take thing {number + 1}."
    return BadCombination(is_known_bad, sentence, action, "https://x", nodes=number)


def test_what_is_known_to_fail_is_a_warning_and_what_is_unsupported_a_note():
    known, unsupported = bad(1, is_known_bad=True), bad(2, is_known_bad=False)

    both = UnsupportedCombination().evaluate(ClusterFacts("eu-1", combinations=(known, unsupported)))
    one = UnsupportedCombination().evaluate(ClusterFacts("eu-1", combinations=(unsupported,)))

    assert (both.severity, one.severity) == (Severity.WARNING, Severity.NOTE)
    assert both.sentence == (
        "eu-1 runs what is known to fail: Thing 1 fails. "
        "NVIDIA's support matrix speaks against 1 more: the page of the cluster has them."
    )
    assert one.sentence == "eu-1 runs what NVIDIA does not support: Thing 2 fails."
    assert UnsupportedCombination().evaluate(ClusterFacts("eu-1")) is None


def test_only_where_gpus_are_nvidias_xids_are_compared():
    of_amd = NodeFacts("gpu-1", {}, {}, {}, {}, vendor="amd", workloads=(WorkloadHere("a/train", 2, 0, 0, 9, 4),))

    actions = [WorkloadFailsHere().evaluate(each).action for each in (of_amd, replace(of_amd, vendor=""))]

    assert ["Xids" in action for action in actions] == [False, True]


def test_more_nodes_are_the_same_cause_and_another_pair_another():
    one = UnsupportedCombination().evaluate(ClusterFacts("eu-1", combinations=(bad(2, is_known_bad=False),)))
    more = replace(bad(2, is_known_bad=False), nodes=9)

    assert UnsupportedCombination().evaluate(ClusterFacts("eu-1", combinations=(more,))).cause == one.cause
    assert UnsupportedCombination().evaluate(ClusterFacts("eu-1", combinations=(bad(3, is_known_bad=False),))) != one


def test_an_exporter_whose_series_explode_is_named_and_counting_on_is_no_other_cause():
    one, more = (Exploding("DCGM_EXP_X", "10.0.0.7:9400", number) for number in (2_100, 90_000))

    wrong = SeriesExplosion().evaluate(ClusterFacts("eu-1", exploding=(one, replace(one, instance="10.0.0.8:9400"))))
    alone = [SeriesExplosion().evaluate(ClusterFacts("eu-1", exploding=(each,))) for each in (one, more)]

    assert wrong.sentence == (
        "The exporter at 10.0.0.7:9400 has more than 2,000 series of DCGM_EXP_X, and so has 1 "
        "other. No node has so many GPUs."
    )
    assert alone[0].cause == alone[1].cause
    assert SeriesExplosion().evaluate(ClusterFacts("eu-1")) is None
