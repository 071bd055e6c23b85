"""Which pod holds which device, as kubelets and exporters say it."""

import copy
import re

from simulator.actors.objects import name, status
from simulator.faults import Board, LostGpus
from simulator.fleets.mixes import mixed
from tests.simulator.actors.stage import Stage, a_mix


def a_telling_stage(mix, faults=None):
    return Stage.of(mixed(nodes=1, mix=mix), faults or Board(), tells_devices=True)


def told(pod):
    return status(pod)["containerStatuses"][0]["allocatedResourcesStatus"]


def tags(stage, node, series="DCGM_FI_DEV_FB_USED", **env):
    (pod,) = stage.pods(node, "app=nvidia-dcgm-exporter")
    pod = copy.deepcopy(pod)
    container = pod["spec"]["containers"][0]
    container["env"] = [*container["env"], *({"name": key, "value": value} for key, value in env.items())]
    text = stage.play.exporters.serve(pod, "metrics").body.decode()
    lines = [line for line in text.splitlines() if line.startswith(f"{series}{{")]
    return [dict(re.findall(r'(\w+)="([^"]*)"', line)) for line in lines]


def test_kubelets_name_the_devices_of_each_container():
    stage = a_telling_stage("a100=1")

    tenants = stage.tenants("gpu-a100-001")
    ids = [each["resourceID"] for pod in tenants for each in told(pod)[0]["resources"]]

    assert {told(pod)[0]["name"] for pod in tenants} == {"nvidia.com/gpu"}
    assert len(ids) == len(set(ids)) == 6
    assert all(each.startswith("GPU-") for each in ids)


def test_without_the_gate_nothing_is_said():
    (tenant, *_) = a_mix("a100=1", 1).tenants("gpu-a100-001")

    assert "allocatedResourcesStatus" not in status(tenant)["containerStatuses"][0]


def test_a_gpu_that_fell_off_is_unhealthy_on_the_pod_that_holds_it():
    stage = a_telling_stage("a100=1", Board(LostGpus("gpu-a100-001")))
    stage.run(5)

    health = [each["health"] for pod in stage.tenants("gpu-a100-001") for each in told(pod)[0]["resources"]]

    assert sorted(health) == ["Healthy"] * 5 + ["Unhealthy"]


def test_a_new_pod_is_told_of_its_devices_too():
    stage = a_telling_stage("a100=1")
    gone = stage.tenants("gpu-a100-001")[0]
    kept = {name(pod): told(pod) for pod in stage.tenants("gpu-a100-001")[1:]}

    stage.store.evict(name(gone), gone["metadata"]["namespace"])
    stage.run(60)

    now = {name(pod): told(pod) for pod in stage.tenants("gpu-a100-001")}
    assert len(now) == 3
    assert kept.items() <= now.items()


def test_shared_gpus_are_told_by_replica():
    stage = a_telling_stage("time-slicing=1")

    ids = {each["resourceID"] for pod in stage.tenants("gpu-time-slicing-001") for each in told(pod)[0]["resources"]}

    assert len(ids) == 28
    assert {each.rpartition("::")[2] for each in ids} == {"0", "1", "2", "3"}


def test_an_exporter_has_a_line_for_each_instance():
    found = tags(a_mix("mig-mixed=1", 1), "gpu-mig-mixed-001")

    assert len(found) == 32
    assert {each["GPU_I_PROFILE"] for each in found} == {"1g.10gb", "2g.20gb", "3g.40gb"}
    assert {each["GPU_I_PROFILE"] for each in found if "pod" in each} == {"2g.20gb"}


def test_nvml_has_no_utilization_of_a_gpu_that_is_cut():
    stage = a_mix("mig-half=1", 1)

    found = tags(stage, "gpu-mig-half-001", "DCGM_FI_DEV_GPU_UTIL")
    profiled = tags(stage, "gpu-mig-half-001", "DCGM_FI_PROF_GR_ENGINE_ACTIVE")

    assert [each["gpu"] for each in found] == ["0", "1", "2", "3"]
    assert len(profiled) == 4 + 4 * 4


def test_an_exporter_has_one_line_for_a_shared_gpu():
    found = tags(a_mix("time-slicing=1", 1), "gpu-time-slicing-001")

    assert len(found) == 8
    assert all("pod" in each for each in found)


def test_with_virtual_gpus_an_exporter_has_a_line_for_each_user_of_a_shared_gpu():
    found = tags(a_mix("time-slicing=1", 1), "gpu-time-slicing-001", KUBERNETES_VIRTUAL_GPUS="true")

    assert len(found) == 28
    assert {each["vgpu"] for each in found} == {"0", "1", "2", "3"}
    assert len({each["UUID"] for each in found}) == 8


def test_an_exporter_without_the_mapping_names_nobody():
    found = tags(a_mix("a100=1", 1), "gpu-a100-001", DCGM_EXPORTER_KUBERNETES="false")

    assert len(found) == 8
    assert not any("pod" in each for each in found)
