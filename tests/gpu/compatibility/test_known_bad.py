"""Every hole of the matrix, beside its fixed neighbour."""

import pytest

from gpu.compatibility import Support
from tests.gpu.compatibility.answers import known_bad, verdicts

MIXED = {"mig": "mixed"}
GRACE = {"product": "NVIDIA-GH200-480GB", "mig": "single"}
PRO = {"product": "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "mig": "single"}
CRIO = {"runtime": "cri-o://1.33.1"}
RHEL = {"os": "Red Hat Enterprise Linux 8.10 (Ootpa)"}


def test_a_combination_that_is_all_right_has_no_hole():
    assert known_bad() == []
    assert {each.answer for each in verdicts()} == {Support.SUPPORTED}


@pytest.mark.parametrize(
    ("bad", "good", "named"),
    [
        ({"driver": "570.158.01", **MIXED}, {"driver": "570.172.08", **MIXED}, "Mixed MIG on R570"),
        ({"driver": "570.124.06", **MIXED}, {"driver": "570.86.15", **MIXED}, "Mixed MIG on R570"),
        ({"driver": "570.133.20", **MIXED}, {"driver": "570.133.20", "mig": "single"}, "Mixed MIG on R570"),
        ({"driver": "570.148.8", **MIXED}, {"driver": "570.148.08"}, "Mixed MIG on R570"),
        ({"driver": "575.57.08", **MIXED}, {"driver": "580.65.06", **MIXED}, "Mixed MIG on R575"),
        ({"driver": "580.65.06", **GRACE}, {"driver": "570.172.08", **GRACE}, "CDMM with MIG on Grace"),
        ({"driver": "595.91.07", **GRACE}, {"driver": "595.91.07", **GRACE, "mig": ""}, "CDMM with MIG on Grace"),
        ({"driver": "595.91.07", **GRACE}, {"mig": "single"}, "CDMM with MIG on Grace"),
        ({"driver": "575.57.08", **PRO}, {"driver": "580.82.07", **PRO}, "MIG on RTX PRO 6000 with 575.57.08"),
        ({"nri": True, "operator": "26.3.1", **CRIO}, {"nri": False, "operator": "26.3.1", **CRIO}, "NRI on CRI-O"),
        ({"nri": True, "operator": "26.3.1", **CRIO}, {"nri": True, "operator": "26.3.1"}, "NRI on CRI-O"),
        ({"nri": True, **CRIO}, {"nri": True, "runtime": "cri-o://1.34.0"}, "NRI on CRI-O before 1.34"),
        (
            {"nri": True, "runtime": "containerd://1.7.29"},
            {"nri": True, "runtime": "containerd://1.7.30"},
            "NRI on containerd before 1.7.30",
        ),
        ({"toolkit": "1.18.0"}, {"toolkit": "1.18.1"}, "Toolkit 1.18.0 drops containerd's imports"),
        ({"toolkit": "v1.18.0-ubi8"}, {"toolkit": "1.18.0", **CRIO}, "Toolkit 1.18.0 drops containerd's imports"),
        ({"operator": "25.10.0", **CRIO}, {"operator": "25.10.1", **CRIO}, "Operator 25.10.0 on CRI-O"),
        (
            {"operator": "25.10.0", "distribution": "gke", "kubernetes": "v1.33.2-gke.1"},
            {"operator": "25.10.0", "distribution": "gke", "kubernetes": "v1.32.9-gke.1"},
            "Operator 25.10.0 on GKE 1.33",
        ),
        (
            {"operator": "25.3.2", "distribution": "rke2", "cdi": True},
            {"operator": "25.10.0", "distribution": "rke2", "cdi": True},
            "CDI on RKE2",
        ),
        (
            {"toolkit": "1.17.0", "distribution": "k3s"},
            {"toolkit": "1.17.1", "distribution": "k3s"},
            "Toolkit 1.17.0 on RKE2 and K3s",
        ),
        (
            {"operator": "26.3.0", "rdma": True},
            {"operator": "26.3.0", "rdma": False},
            "nvidia-peermem after a fast restart",
        ),
        (
            {"mig_manager": "0.13.1", "is_preinstalled": True, **RHEL},
            {"mig_manager": "0.12.3", "is_preinstalled": True, **RHEL},
            "MIG manager on RHEL 8 with a pre-installed driver",
        ),
        (
            {"driver": "580.65.06", "mig": "single", **RHEL},
            {"driver": "580.65.06", "mig": "single", "os": "Red Hat Enterprise Linux 9.4 (Plow)"},
            "MIG on RHEL 8.10 with 580.65.06",
        ),
        ({"product": "NVIDIA-B200", "driver": "570.124.06"}, {"product": "NVIDIA-B200"}, "HGX B200, driver 570.124.06"),
        (
            {"product": "NVIDIA-B200", "driver": "570.124.06"},
            {"product": "NVIDIA-GB200", "driver": "570.124.06"},
            "HGX B200, driver 570.124.06",
        ),
        ({"product": "Tesla-V100-SXM2-16GB"}, {"product": "Tesla-V100-SXM2-16GB", "driver": "580.173.02"},
         "Volta and Pascal after R580"),
        ({"product": "Tesla-P40", "driver": "590.48.01"}, {"product": "Tesla-T4"}, "Volta and Pascal after R580"),
        ({"product": "Tesla-P4", "driver": "580.173.02", "cuda": "13.0"},
         {"product": "Tesla-P4", "driver": "580.173.02", "cuda": "12.9"}, "CUDA 13 on Volta and Pascal"),
        ({"product": "NVIDIA-B200", "modules": "proprietary"}, {"product": "NVIDIA-B200", "modules": "auto"},
         "Proprietary kernel modules on Grace and Blackwell"),
        ({"product": "Tesla-V100-SXM2-16GB", "driver": "580.173.02", "modules": "open"},
         {"product": "NVIDIA-A100-SXM4-80GB", "modules": "open"}, "Open kernel modules on Volta and Pascal"),
        ({"gds": True, "modules": "proprietary"}, {"gds": True, "modules": "open"},
         "GPUDirect Storage with proprietary kernel modules"),
        ({"gds": True, "is_precompiled": True}, {"gds": False, "is_precompiled": True},
         "GPUDirect Storage with a precompiled driver"),
        ({"gdrcopy": True, "is_precompiled": True}, {"gdrcopy": True}, "GDRCopy with a precompiled driver"),
        ({"runtime": "containerd://1.6.39", "cdi": True}, {"runtime": "containerd://1.7.1", "cdi": True},
         "CDI on containerd before 1.7"),
        ({"product": "NVIDIA-GB10", "operator": "25.3.4"}, {"product": "NVIDIA-GB10", "operator": "25.10.0"},
         "GB10 before operator 25.10.0"),
        ({"operator": "24.9.2", "distribution": "k0s"}, {"operator": "24.9.2"}, "Operator 24.9 on k0s"),
        ({"mig": "single", "driver": "550.54.15"}, {"mig": "single", "driver": "550.90.07"},
         "MIG on H200, driver 550.54.15"),
        ({"os": "Ubuntu 26.04 LTS", "driver": "580.173.02", "is_preinstalled": False},
         {"os": "Ubuntu 26.04 LTS", "driver": "580.173.02", "is_preinstalled": True},
         "Ubuntu 26.04, driver 580.173.02"),
        ({**PRO, "mig": "", "driver": "570.172.08"}, {**PRO, "driver": "580.65.06"},
         "RTX PRO 6000 Blackwell Server Edition, driver 570.172.08"),
        ({"mode": "GPUCluster", "kubernetes": "v1.34.1"}, {"mode": "GPUCluster", "kubernetes": "v1.34.2"},
         "GPUCluster, Kubernetes v1.34.1"),
        ({"mode": "GPUCluster", "driver": "570.172.08"}, {"driver": "570.172.08"}, "GPUCluster, driver 570.172.08"),
    ],
)  # fmt: skip
def test_a_hole_is_named_and_its_fixed_neighbour_is_not(bad, good, named):
    assert known_bad(**bad) == [named]
    assert named not in known_bad(**good)


def test_a_switch_that_cannot_be_read_leaves_the_answer_open():
    said = [each for each in verdicts(operator="26.3.0", **CRIO) if each.subject == "NRI on CRI-O"]

    assert [each.answer for each in said] == [Support.UNKNOWN]
    assert "cannot be read" in said[0].sentence


def test_which_kernel_modules_are_loaded_cannot_be_seen_and_is_said_where_it_decides():
    said = [each for each in verdicts(product="NVIDIA-GH200-480GB", driver="550.90.07") if each.rule == "known-bad"]

    assert [each.answer for each in said] == [Support.UNKNOWN]
    assert "cannot be seen" in said[0].sentence
    assert known_bad(product="NVIDIA-GH200-480GB", driver="550.90.07", modules="open") == []


def test_where_a_driver_came_from_cannot_be_seen_and_is_said_where_it_decides():
    def said(driver):
        every = verdicts(product="NVIDIA-H100-80GB-HBM3", mig="mixed", driver=driver)
        return [each.answer for each in every if each.rule == "known-bad"]

    assert said("615.71.09") == [Support.UNKNOWN]
    assert said("595.91.07") == []


def test_what_one_page_says_of_every_operator_and_another_of_one_is_said_of_the_others_as_open():
    gke = {"distribution": "gke", "kubernetes": "v1.34.2-gke.1"}
    said = [each for each in verdicts(operator="26.7.0", **gke) if each.rule == "known-bad"]

    assert [each.answer for each in said] == [Support.UNKNOWN]
    assert "RUNTIME_CONFIG_SOURCE=file" in said[0].action


def test_each_hole_says_what_to_do_and_where_it_is_from():
    for each in verdicts(driver="570.158.01", **MIXED):
        assert each.source
        assert each.read_on
        assert each.action or each.answer is Support.SUPPORTED


def test_what_has_no_image_for_arm_is_said_of_grace_alone():
    rhel = {"os": "Red Hat Enterprise Linux 9.4 (Plow)", "operator": "26.3.3", "driver": "580.126.20"}

    def said(product):
        return [each.answer for each in verdicts(**rhel, product=product) if each.subject == "RHEL 9 on Grace"]

    assert said("NVIDIA-GB200") == [Support.UNKNOWN]
    assert said("NVIDIA-H100-80GB-HBM3") == []
