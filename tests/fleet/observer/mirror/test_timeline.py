import pytest

from fleet.observer.mirror.diff import remember
from fleet.observer.mirror.rows.node import node_row
from fleet.observer.mirror.timeline import entries
from tests.fleet.documents import GPU_LABELS, a_node_seen, mig_mixed, time_sliced
from tests.make import NOON

HELD = {"nvidia.com/gpu-driver-upgrade.skip": "true"}
SILENT = {key: value for key, value in GPU_LABELS.items() if "driver-version" not in key}


def row(old=None, **given):
    return remember(old, node_row(a_node_seen(**given)), now=NOON)


def a_condition(name, message):
    return {"type": name, "status": "True", "message": message, "lastTransitionTime": "2026-11-21T08:00:00Z"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ready": "False"}, "Not ready: KubeletReady"),
        ({"ready": "Unknown"}, "Its kubelet stopped reporting: KubeletReady"),
        ({"spec": {"unschedulable": True}}, "Cordoned; the API server does not show who set it."),
        (
            {"spec": {"unschedulable": True}, "managed": ["kubelet", "kubectl"]},
            "Cordoned by kubectl, as the API server has it.",
        ),
        (
            {"conditions": [a_condition("GpuThermalWatch", "ErrorCode:DCGM_FR_X GPU:0;")]},
            "NVSentinel says GpuThermalWatch: ErrorCode:DCGM_FR_X GPU:0.",
        ),
        ({"allocatable": 7}, "Whole GPUs that can be allocated: 7, before 8."),
        ({"labels": GPU_LABELS | HELD}, "Held, not by Quarterdeck: the upgrade controller must not touch it."),
        (
            {"labels": GPU_LABELS | HELD, "annotations": {"quarterdeck.io/held-by": "plan-3"}},
            "Held by plan-3: the upgrade controller must not touch it.",
        ),
        (
            {"labels": GPU_LABELS | {"nvidia.com/gpu-driver-upgrade-state": "upgrade-required"}},
            "Upgrade state: upgrade-required.",
        ),
        (
            {"labels": GPU_LABELS | {"nvidia.com/cuda.driver-version.full": "580.126.20"}},
            "Runs driver 580.126.20, before 580.95.05.",
        ),
        (
            {"system": {"osImage": "Ubuntu 24.04.1 LTS"}},
            "Its operating system is Ubuntu 24.04.1 LTS, before Ubuntu 22.04.5 LTS.",
        ),
        ({"labels": SILENT}, "Reports no driver any more; the last version was 580.95.05."),
        (
            {"labels": GPU_LABELS | {"nvidia.com/gpu.deploy.device-plugin": "paused-for-driver-upgrade"}},
            "Paused for the driver: Device plugin.",
        ),
    ],
)
def test_each_change_has_its_sentence(change, sentence):
    before = row()

    lines = entries(before, row(before, **change))

    assert [line.sentence for line in lines] == [sentence]


def test_who_takes_a_cordon_off_is_not_guessed():
    before = row(spec={"unschedulable": True}, managed=["gpu-operator"])

    (line,) = entries(before, row(before, managed=["gpu-operator"]))

    assert (line.sentence, line.detail) == (
        "Uncordoned.",
        {"column": "is_unschedulable", "was": True, "is": False},
    )


def test_a_condition_that_says_more_is_the_same_one_until_it_ends():
    before = row(conditions=[a_condition("GpuThermalWatch", "83 C"), a_condition("KernelDeadlock", "")])
    hotter = row(before, conditions=[a_condition("GpuThermalWatch", "91 C"), a_condition("KernelDeadlock", "")])

    lines = entries(hotter, row(hotter, conditions=[a_condition("KernelDeadlock", "")]))

    assert entries(before, hotter) == []
    assert [line.sentence for line in lines] == ["GpuThermalWatch is no longer reported."]


def test_what_a_kubelet_says_of_itself_is_told_once_it_said_something_before():
    before = row()
    said = {"containerRuntimeVersion": "containerd://1.7.28", "kubeletVersion": "v1.34.2"}
    first = row(before, system=said)

    lines = entries(first, row(first, system=said | {"containerRuntimeVersion": "containerd://2.1.0"}))

    assert entries(before, first) == []
    assert [line.sentence for line in lines] == [
        "Its container runtime is containerd://2.1.0, before containerd://1.7.28."
    ]


def test_a_boot_is_told_once_its_kubelet_said_of_which_boot_it_is():
    before = row()
    first = row(before, system={"bootID": "a"})

    assert (entries(before, first), first["booted_at"]) == ([], None)
    (line,) = entries(first, row(first, system={"bootID": "b"}))
    assert (line.kind, line.sentence) == ("boot", "Booted anew.")


def test_a_change_nobody_needs_to_hear_of_has_none():
    before = row()

    assert entries(before, row(before, labels=GPU_LABELS | {"team": "research"})) == []


def test_sharing_that_begins_is_told_as_such_and_not_as_lost_gpus():
    before = row()

    lines = entries(before, row(before, gpus=32, labels=time_sliced(4)))

    assert [line.sentence for line in lines] == [
        "GPUs are offered as time-slices of whole GPUs, 4 each, before as whole GPUs.",
        "Shares that can be allocated: 32, before 0.",
    ]


def test_what_the_mig_manager_does_is_told():
    cut = {"nvidia.com/mig-1g.10gb": 56}
    pending = mig_mixed({}, config="all-1g.10gb", state="pending")
    before = row(labels=pending)

    lines = entries(before, row(before, resources=cut, labels=mig_mixed({"1g.10gb": 56}, config="all-1g.10gb")))

    assert [line.sentence for line in lines] == [
        "The MIG manager has applied the MIG layout all-1g.10gb.",
        "GPUs are offered as slices 1g.10gb, before as whole GPUs.",
        "Slices that can be allocated: 56, before 0.",
    ]


def test_that_the_mig_manager_says_nothing_any_more_is_told():
    before = row(labels=mig_mixed({}, config="all-1g.10gb", state="pending"))

    (line,) = entries(before, row(before))

    assert (line.kind, line.sentence) == ("capacity", "The MIG manager no longer reports a state.")
    assert (line.detail["column"], line.detail["was"], line.detail["is"]) == ("mig_config_state", "pending", "")


def test_a_lost_share_is_told():
    before = row(gpus=32, labels=time_sliced(4))

    lines = entries(before, row(before, gpus=32, allocatable=28, labels=time_sliced(4)))

    assert [line.sentence for line in lines] == ["Shares that can be allocated: 28, before 32."]
