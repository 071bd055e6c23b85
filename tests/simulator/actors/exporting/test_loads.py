"""What GPUs do follows who holds them, smoothly, and what they count grows with time."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.actors.exporting.loads import WORK_ANNOTATION, Load, Work
from simulator.kinds import POD
from tests.simulator.actors.exporting.scraping import NODE, samples, text, values
from tests.simulator.actors.stage import NEW, a_fleet, a_mix

SERVES = "gpu-a100-001"


@given(st.sampled_from(list(Work)), st.floats(0, 1), st.floats(0, 4e9))
def test_an_activity_is_a_share_and_changes_by_little_in_a_second(work, seed, at_s):
    load = Load(work, seed, 8)

    now, later = load.activity(at_s), load.activity(at_s + 1)

    assert 0 <= now <= 1
    assert abs(now - later) < 0.15
    assert 0 <= load.memory <= 0.97


def test_training_is_high_but_for_its_checkpoints_and_services_come_in_bursts():
    hours = range(0, 7200, 5)

    training = sorted(Load(Work.TRAINING, 0.3, 8).activity(at_s) for at_s in hours)
    serving = sorted(Load(Work.INFERENCE, 0.3, 1).activity(at_s) for at_s in hours)
    trying = [Load(Work.DEVELOPMENT, 0.3, 1).activity(at_s) for at_s in hours]

    assert training[len(training) // 10] > 0.85
    assert training[0] < 0.5
    assert serving[-1] - serving[0] > 0.3
    assert sum(each == 0 for each in trying) > len(trying) // 2


def test_a_service_fills_its_memory_from_the_start():
    stage = a_mix("a100=1", 1)
    holders = stage.tenants(SERVES)

    used = values(stage, "DCGM_FI_DEV_FB_USED", SERVES)
    free = values(stage, "DCGM_FI_DEV_FB_FREE", SERVES)

    assert len(holders) == 3
    assert [u / (u + f) > 0.88 for u, f in zip(used, free, strict=True)] == [True] * 6 + [False] * 2
    assert used[6:] == [4, 4]


def test_what_nobody_holds_is_idle_and_cool():
    stage = a_mix("a100=1", 1)

    assert values(stage, "DCGM_FI_DEV_GPU_UTIL", SERVES)[6:] == [0, 0]
    assert max(values(stage, "DCGM_FI_DEV_GPU_TEMP", SERVES)[6:]) < 40
    assert values(stage, "DCGM_FI_DEV_SM_CLOCK", SERVES)[6:] == [345, 345]


def test_energy_is_the_power_over_time():
    stage = a_fleet(2)
    before, watts = values(stage, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"), []

    for _ in range(20):
        stage.run(15)
        watts.append(values(stage, "DCGM_FI_DEV_POWER_USAGE")[0])
    after = values(stage, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")

    assert (after[0] - before[0]) / 1000 / 300 == pytest.approx(sum(watts) / len(watts), rel=0.01)


def test_temperatures_drift():
    stage, seen = a_fleet(2), []

    for _ in range(60):
        stage.run(15)
        seen.append(values(stage, "DCGM_FI_DEV_GPU_TEMP")[0])

    assert max(abs(a - b) for a, b in pairwise(seen)) <= 8
    assert 35 < min(seen) <= max(seen) < 80


def test_those_of_one_job_move_as_much_over_nvlink():
    moved = values(a_fleet(2), "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL")

    assert min(moved) > 50_000
    assert max(moved) == min(moved)


def test_the_same_pod_does_the_same_again():
    first, second = a_fleet(2), a_fleet(2)

    assert values(first, "DCGM_FI_DEV_POWER_USAGE") == values(second, "DCGM_FI_DEV_POWER_USAGE")


def test_a_holder_that_goes_is_seen_to_go():
    stage = a_mix("a100=1", 1)
    text(stage, SERVES)
    gone = stage.tenants(SERVES)[0]["metadata"]

    stage.store.delete(POD, gone["name"], gone["namespace"], grace_s=0)
    stage.settle()

    assert gone["name"] not in text(stage, SERVES)


def test_a_driver_that_is_loaded_anew_counts_from_nothing():
    stage = a_fleet(2)
    before = values(stage, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")

    stage.driver("h100", version=NEW)
    stage.until(lambda: stage.play.kubelets.hosts[NODE].driver == NEW)
    stage.until(lambda: bool(stage.pods(NODE, "app=nvidia-dcgm-exporter")))
    stage.run(120)
    after = values(stage, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")

    assert f'DCGM_FI_DRIVER_VERSION="{NEW}"' in text(stage)
    assert max(after) < min(before) / 100


def test_a_gpu_that_is_claimed_is_at_work_and_named_where_claims_are_read():
    chart, cluster = a_mix("dra=1", 1), a_mix("h100=1", 1, mode="gpu-cluster")
    (exporter,) = cluster.pods("gpu-h100-001", "app=nvidia-dcgm-exporter-dra")

    of_chart = samples(text(chart, "gpu-dra-001"), "DCGM_FI_DEV_GPU_UTIL")
    written = cluster.play.exporters.serve(exporter, "metrics").body.decode()

    assert sum(value > 0 for _, value in of_chart) == 7
    assert not any("pod" in labels for labels, _ in of_chart)
    held = [labels for labels, value in samples(written, "DCGM_FI_DEV_GPU_UTIL") if value > 0]
    assert held
    assert {labels["dra_pool_name"] for labels in held} == {"gpu-h100-001"}
    assert {labels["dra_device_name"] for labels in held} <= {f"gpu-{index}" for index in range(8)}
    assert all(labels["pod"] and labels["dra_claim_name"] for labels in held)


def test_the_pods_of_a_service_are_busy_at_the_same_time_and_services_at_others():
    """So that what the fleet does changes from minute to minute: were each pod alone, their sum would stand still."""
    mean = [sum(Load(Work.INFERENCE, pod / 40, 1, 0.3).activity(at_s) for pod in range(40)) / 40 for at_s in range(600)]

    assert max(mean) - min(mean) > 0.2
    assert Load(Work.INFERENCE, 0.5, 1, 0.1).activity(100) != Load(Work.INFERENCE, 0.5, 1, 0.6).activity(100)


def test_a_pod_that_says_so_holds_its_gpus_and_does_nothing():
    pod = {
        "metadata": {"name": "left-open", "namespace": "notebooks", "annotations": {WORK_ANNOTATION: "nothing"}},
        "spec": {"priorityClassName": "inference"},
    }
    load = Load.of(pod, 2)

    assert {load.activity(at_s) for at_s in range(0, 86_400, 60)} == {0.0}
    assert load.memory > 0
    pod["metadata"]["annotations"][WORK_ANNOTATION] = "no such work"
    pod["metadata"]["namespace"] = "chat"
    assert Load.of(pod, 2).work is Work.INFERENCE
