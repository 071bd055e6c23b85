from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu.compatibility import Facts, Support, evaluate
from gpu.compatibility.ranges import Range, order
from tests.gpu.compatibility.answers import GOOD, TODAY, answer, verdict, verdicts

VERSIONS = st.lists(st.integers(0, 999), min_size=1, max_size=3).map(
    lambda parts: ".".join(str(part) for part in parts)
)
TEXT = st.one_of(st.text(max_size=30), VERSIONS)


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ("26.7.0", Support.SUPPORTED),
        ("26.3.3", Support.DEPRECATED),
        ("25.10.1", Support.UNSUPPORTED),
        ("24.6.2", Support.UNSUPPORTED),
        ("23.9.1", Support.UNSUPPORTED),
        ("1.11.1", Support.UNSUPPORTED),
        ("26.7.1", Support.SUPPORTED),
        ("26.7.2", Support.UNKNOWN),
        ("26.11.0", Support.UNKNOWN),
        ("25.6.0", Support.UNKNOWN),
        ("", Support.UNKNOWN),
    ],
)
def test_the_life_cycle_of_an_operator(operator, said):
    assert answer("operator", operator=operator) is said


def test_an_old_matrix_does_not_say_that_a_series_is_still_supported():
    said = verdict("operator", today=date(2027, 6, 1))

    assert said.answer is Support.UNKNOWN
    assert "26.7.x was supported 250 days ago, when the matrix was read; it may have ended since." in said.sentence


def test_an_older_patch_of_a_series_names_the_newest():
    assert "Its newest release is 26.7.1." in verdict("operator", operator="26.7.0").sentence
    assert "newest" not in verdict("operator", operator="26.7.1").sentence


def test_an_operator_newer_than_the_matrix_says_that_the_matrix_is_old():
    said = verdict("operator", operator="26.11.0")

    assert "The matrix was read on 2026-09-24; newer releases are missing." in said.sentence
    of_nvidia = [each for each in verdicts(operator="26.11.0", driver="") if each.rule not in {"life", "skew"}]
    assert all(each.answer is not Support.SUPPORTED for each in of_nvidia)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, Support.SUPPORTED),
        ({"kubernetes": "v1.32.9"}, Support.UNSUPPORTED),
        ({"kubernetes": "v1.37.1"}, Support.SUPPORTED),
        ({"kubernetes": "v1.38.0"}, Support.UNSUPPORTED),
        ({"kubernetes": "v1.35.9-eks-1a2b3c4", "distribution": "eks"}, Support.SUPPORTED),
        ({"kubernetes": "v1.35.9+rke2r1", "distribution": "rke2"}, Support.SUPPORTED),
        ({"operator": "26.3.3", "distribution": "aks"}, Support.UNKNOWN),
        ({"operator": "25.10.1", "kubernetes": "v1.35.9-eks-1a2b3c4", "distribution": "eks"}, Support.UNSUPPORTED),
        ({"os": "Rocky Linux 10.1 (Red Quartz)", "distribution": "rke2"}, Support.UNKNOWN),
        ({"operator": "25.3.2", "kubernetes": "v1.32.9+rke2r1", "distribution": "rke2"}, Support.SUPPORTED),
        ({"operator": "25.3.2", "os": "Ubuntu 22.04.5 LTS", "kubernetes": "v1.33.5-eks-1a2b3c4", "distribution": "eks"},
         Support.UNSUPPORTED),
        ({"operator": "25.3.4", "os": "Red Hat Enterprise Linux 9.1 (Plow)", "kubernetes": "v1.32.9"},
         Support.UNSUPPORTED),
        ({"operator": "26.3.3", "os": "Rocky Linux 10.1 (Red Quartz)"}, Support.SUPPORTED),
        ({"operator": "26.3.0", "os": "Rocky Linux 10.1 (Red Quartz)"}, Support.UNSUPPORTED),
        ({"os": "Amazon Linux 2023.9.20251014"}, Support.UNSUPPORTED),
        ({"os": "SUSE Linux Enterprise Server 15 SP7"}, Support.UNKNOWN),
        ({"os": "Microsoft Azure Linux 3.0", "distribution": "aks"}, Support.UNKNOWN),
        ({"os": "Amazon Linux 2"}, Support.UNKNOWN),
        ({"distribution": "aks"}, Support.SUPPORTED),
        ({"os": "Ubuntu 22.04.5 LTS", "kubernetes": "v1.32.9"}, Support.UNSUPPORTED),
        ({"operator": "26.3.1", "kubernetes": "v1.36.1"}, Support.UNSUPPORTED),
        ({"operator": "26.3.2", "kubernetes": "v1.36.1"}, Support.SUPPORTED),
        ({"operator": "26.3.2", "os": "Red Hat Enterprise Linux 9.5 (Plow)"}, Support.UNSUPPORTED),
        ({"operator": "26.3.2", "os": "Red Hat Enterprise Linux 9.4 (Plow)"}, Support.SUPPORTED),
        ({"os": "Red Hat Enterprise Linux CoreOS 418.94.202509100653-0"}, Support.SUPPORTED),
        ({"os": "Red Hat Enterprise Linux CoreOS 417.94.202509100653-0"}, Support.UNSUPPORTED),
        ({"os": "Red Hat Enterprise Linux CoreOS 9.6.20250826-1 (Plow)", "kubernetes": "v1.32.9"}, Support.SUPPORTED),
        ({"os": "Red Hat Enterprise Linux CoreOS 9.6.20250826-1 (Plow)", "kubernetes": "v1.40.0"}, Support.UNKNOWN),
        ({"os": "Talos (v1.11.1)"}, Support.UNSUPPORTED),
        ({"os": ""}, Support.UNKNOWN),
        ({"kubernetes": ""}, Support.UNKNOWN),
        ({"operator": "24.6.2"}, Support.UNKNOWN),
    ],
)  # fmt: skip
def test_an_operator_on_a_system_and_a_kubernetes(facts, said):
    assert answer("platform", **facts) is said


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, Support.SUPPORTED),
        ({"runtime": "containerd://2.3.1"}, Support.SUPPORTED),
        ({"runtime": "containerd://1.7.28"}, Support.UNSUPPORTED),
        ({"runtime": "containerd://2.4.0"}, Support.UNSUPPORTED),
        ({"operator": "26.3.3", "runtime": "containerd://1.7.28"}, Support.SUPPORTED),
        ({"operator": "26.3.3", "os": "Rocky Linux 9.7 (Blue Onyx)"}, Support.UNKNOWN),
        ({"runtime": "cri-o://1.34.0"}, Support.UNKNOWN),
        (
            {"runtime": "cri-o://1.32.7-2.rhaos4.19.el9", "os": "Red Hat Enterprise Linux CoreOS 9.6.2025 (Plow)"},
            Support.SUPPORTED,
        ),
        ({"os": "Amazon Linux 2023.9.20251014"}, Support.UNKNOWN),
        ({"runtime": "docker://28.1.1"}, Support.UNSUPPORTED),
        ({"runtime": "containerd://"}, Support.UNKNOWN),
        ({"runtime": ""}, Support.UNKNOWN),
    ],
)
def test_an_operator_with_a_runtime(facts, said):
    assert answer("runtime", **facts) is said


def test_another_minor_of_a_listed_system_names_those_that_are_listed():
    said = verdict("platform", operator="26.3.3", os="Rocky Linux 9.6 (Blue Onyx)")

    assert said.sentence.endswith("It lists these versions of it: 8.10, 9.7, 9.8, 10.0, 10.1.")


def test_what_is_known_of_a_system_that_is_not_listed_is_told_with_its_source():
    said = verdict("platform", os="Amazon Linux 2023.9.20251014")

    assert "closed the request on 2026-09-11" in said.sentence
    assert said.source == "https://github.com/NVIDIA/gpu-operator/issues/1492"


def test_a_runtime_without_a_range_says_that_nobody_says():
    assert "without a version range" in verdict("runtime", runtime="cri-o://1.34.0").sentence


@pytest.mark.parametrize(
    ("driver", "today", "said"),
    [
        ("595.91.07", TODAY, Support.SUPPORTED),
        ("595.91.07", date(2027, 1, 15), Support.DEPRECATED),
        ("595.91.07", date(2027, 3, 31), Support.DEPRECATED),
        ("595.91.07", date(2027, 4, 1), Support.UNSUPPORTED),
        ("580.95.5", TODAY, Support.SUPPORTED),
        ("610.57.04", TODAY, Support.UNSUPPORTED),
        ("535.309.01", TODAY, Support.UNSUPPORTED),
        ("550.144.03", TODAY, Support.UNSUPPORTED),
        ("560.35.03", TODAY, Support.UNSUPPORTED),
        ("470.256.02", TODAY, Support.UNSUPPORTED),
        ("615.71.09", TODAY, Support.UNKNOWN),
    ],
)
def test_the_life_of_a_driver_branch(driver, today, said):
    assert answer("driver", subject="Branch", driver=driver, today=today) is said


def test_a_driver_off_the_list_is_unknown_and_one_on_it_supported():
    assert answer("driver", subject="Operator", driver="580.173.2") is Support.SUPPORTED
    assert answer("driver", subject="Operator", driver="580.95.05") is Support.UNKNOWN
    assert answer("driver", subject="Driver", driver="700.1.1") is Support.UNKNOWN
    assert "is newer than the matrix, whose newest branch is R615." in (
        verdict("driver", subject="Driver", driver="700.1.1").sentence
    )


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, Support.SUPPORTED),
        ({"driver": "535.309.01"}, Support.UNSUPPORTED),
        ({"kernel": "6.14.0-1011-aws"}, Support.UNSUPPORTED),
        ({"kernel": ""}, Support.UNKNOWN),
        ({"operator": "25.3.4"}, Support.UNSUPPORTED),
        ({"operator": "25.3.4", "driver": "570.172.08"}, Support.SUPPORTED),
        ({"operator": "25.10.1"}, Support.UNSUPPORTED),
        ({"operator": "24.9.2"}, Support.UNKNOWN),
    ],
)
def test_a_precompiled_driver_needs_its_kernel_and_branch(facts, said):
    assert answer("precompiled", is_precompiled=True, **facts) is said


JAMMY = "Ubuntu 22.04.5 LTS"


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"kernel": "6.8.0-64-generic"}, Support.SUPPORTED),
        ({"kernel": "6.5.0-45-generic"}, Support.SUPPORTED),
        ({"kernel": "5.15.0-1063-azure"}, Support.SUPPORTED),
        ({"kernel": "6.11.0-1011-aws"}, Support.UNSUPPORTED),
        ({"kernel": "5.4.0-190-generic"}, Support.UNSUPPORTED),
        ({"kernel": "5.4.0-190-generic", "os": "Ubuntu 20.04.6 LTS", "operator": "25.10.1"}, Support.SUPPORTED),
        ({"kernel": "6.8.0-64-generic", "operator": "25.3.4"}, Support.SUPPORTED),
    ],
)
def test_a_driver_that_compiles_on_the_node_is_compared_with_its_kernel(facts, said):
    assert answer("kernel", **{"os": JAMMY} | facts) is said


def test_a_kernel_that_is_not_named_is_said_with_those_that_are():
    said = verdict("kernel", os=JAMMY, kernel="6.11.0-1011-aws")

    assert said.sentence == (
        "NVIDIA's driver containers support kernels 5.15, 6.5, 6.8 on Ubuntu 22.04; 6.11.0-1011-aws is not listed."
    )


@pytest.mark.parametrize(
    "facts",
    [
        {"os": "Ubuntu 24.04.2 LTS"},
        {"os": "Red Hat Enterprise Linux 9.6 (Plow)"},
        {"operator": "24.9.2"},
        {"is_precompiled": True},
        {"is_preinstalled": True},
        {"kernel": ""},
        {"driver": ""},
    ],
)
def test_nothing_is_said_of_a_kernel_where_nvidia_says_nothing_or_none_is_compiled_for(facts):
    given = {"os": JAMMY, "kernel": "6.11.0-1011-aws"} | facts

    assert [each for each in verdicts(**given) if each.rule == "kernel"] == []


def test_image_tags_overridden_one_by_one_are_named_with_what_the_release_ships():
    said = verdict("operands", asked={"device-plugin": "v0.17.1", "dcgm": "4.6.0-1-ubuntu22.04", "driver": "580.1"})

    assert said.answer is Support.UNSUPPORTED
    assert "device-plugin v0.17.1 (ships 0.20.0)" in said.sentence
    assert "dcgm" not in said.sentence


def test_tags_as_shipped_are_supported_and_digests_unknown():
    assert answer("operands", asked={"dcgm-exporter": "4.6.0-4.8.3-distroless"}) is Support.SUPPORTED
    assert answer("operands", asked={"dcgm-exporter": "sha256:0123"}) is Support.UNKNOWN
    assert answer("operands", operator="25.3.3", asked={"dcgm-exporter": "1"}) is Support.UNKNOWN


@pytest.mark.parametrize(
    ("cuda", "driver", "said"),
    [
        ("13.0", "580.65.06", Support.SUPPORTED),
        ("13.0", "570.172.08", Support.UNSUPPORTED),
        ("12.9", "570.172.08", Support.SUPPORTED),
        ("12.4", "525.60.12", Support.UNSUPPORTED),
        ("11.8", "450.51.06", Support.UNSUPPORTED),
        ("11.0", "450.51.06", Support.SUPPORTED),
        ("10.2", "440.33.01", Support.SUPPORTED),
        ("9.2", "580.65.06", Support.UNKNOWN),
        ("14.0", "615.71.09", Support.UNKNOWN),
    ],
)
def test_the_oldest_driver_for_a_cuda(cuda, driver, said):
    assert answer("cuda", cuda=cuda, driver=driver) is said


def test_the_worst_comes_first():
    places = [each.place for each in verdicts(driver="570.158.01", mig="mixed", operator="25.3.0")]

    assert places == sorted(places)


@given(TEXT, TEXT, TEXT, TEXT, TEXT, TEXT)
def test_whatever_a_cluster_says_gets_an_answer(operator, kubernetes, os, runtime, driver, product):
    facts = Facts(
        operator=operator, kubernetes=kubernetes, os=os, runtime=runtime, driver=driver, product=product, mig="mixed"
    )

    for each in evaluate(facts, today=TODAY):
        assert each.sentence
        assert each.source or each.answer is not Support.SUPPORTED


@given(st.sets(st.sampled_from(["operator", "kubernetes", "os", "runtime", "driver"]), min_size=1))
def test_what_is_not_known_is_never_all_supported(hidden):
    said = evaluate(replace(GOOD, **dict.fromkeys(hidden, "")), today=TODAY)

    assert Support.UNKNOWN in {each.answer for each in said}


@given(VERSIONS, VERSIONS, VERSIONS)
def test_a_range_takes_its_first_and_not_its_end(one, other, version):
    since, before = sorted([one, other], key=order)
    span = Range(since, before)

    assert (version in span) is (order(since) <= order(version) < order(before))
    assert (since in span) is (order(since) != order(before))


@given(VERSIONS, VERSIONS, VERSIONS, VERSIONS)
def test_ranges_overlap_both_ways_or_not_at_all(a, b, c, d):
    one, other = Range(*sorted([a, b], key=order)), Range(*sorted([c, d], key=order))

    assert one.overlaps(other) is other.overlaps(one)
