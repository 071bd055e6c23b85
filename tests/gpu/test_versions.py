import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpu.versions import (
    agree,
    agree_on_driver,
    driver_as_written,
    driver_of,
    is_same_version,
    is_vgpu,
    parse_version,
    tag_of,
    version_of,
)

NUMBERS = st.lists(st.integers(0, 999), min_size=2, max_size=4)
DRIVERS = st.tuples(st.integers(100, 999), st.integers(0, 999), st.integers(0, 99)).map(
    "{0[0]}.{0[1]}.{0[2]:02}".format
)
SYSTEMS = st.sampled_from(["ubuntu22.04", "ubuntu24.04", "ubi8", "ubi9", "rhel9", "rhcos4.18", "rocky9.7"])


@pytest.mark.parametrize(
    ("one", "other", "do_agree"),
    [
        ("580.95.05", "580.95.5", True),
        ("580.95.05", "580.95.50", False),
        ("580.95.05", "580.95.05-ubuntu22.04", True),
        ("570.172.08", "580.95.05-ubuntu22.04", False),
        ("580.95.05", "580-5.15.0-25-generic-ubuntu22.04", True),
        ("570.172.08", "580-5.15.0-25-generic-ubuntu22.04", False),
        ("580", "580-5.15.0-25-generic-ubuntu22.04", True),
        ("580", "580.126.20", True),
        ("58", "580.126.20", False),
        ("580.95", "580.95.05", True),
        ("v0.17.1", "0.17.1", True),
        ("v1.17.8-ubuntu20.04", "1.17.8-ubi8", True),
        ("v0.17.1", "v0.17.1-rc.1", False),
        ("v0.17.1-rc.1", "v0.17.1-rc.2", False),
        ("4.1.1-4.0.4-ubuntu22.04", "4.1.1-4.0.4-ubi9", True),
        ("4.1.1-4.0.4-ubuntu22.04", "4.1.1-4.0.3-ubuntu22.04", False),
        ("devel-ubuntu20.04", "devel", True),
        ("sha256:0123", "580.95.05", None),
        ("", "580.95.05", None),
        ("", "", None),
    ],
)
def test_whether_two_versions_can_be_the_same(one, other, do_agree):
    assert agree(one, other) is do_agree
    assert agree(other, one) is do_agree


@given(NUMBERS, SYSTEMS, st.booleans())
def test_neither_zeros_nor_a_v_nor_the_operating_system_change_a_version(numbers, system, has_v):
    plain = ".".join(str(number) for number in numbers)
    padded = "v" * has_v + ".".join(f"{number:03}" for number in numbers) + f"-{system}"

    assert agree(plain, padded) is True


@given(NUMBERS, NUMBERS)
def test_versions_of_equal_length_agree_only_where_every_number_does(one, other):
    length = min(len(one), len(other))
    written = [".".join(str(number) for number in numbers[:length]) for numbers in (one, other)]

    assert agree(*written) is (one[:length] == other[:length])


@given(st.text(), st.text())
def test_whatever_is_written_can_be_compared_both_ways(one, other):
    assert agree(one, other) == agree(other, one)
    assert agree(one, one) in (True, None)


def test_a_precompiled_tag_names_a_branch_and_a_kernel():
    version = parse_version("580-5.15.0-25-generic-ubuntu22.04")

    assert (version.numbers, version.is_branch, version.kernel) == ((580,), True, "5.15.0-25-generic")


@pytest.mark.parametrize(
    ("tag", "driver"),
    [
        ("580.126.20-ubuntu22.04", "580.126.20"),
        ("580-5.15.0-25-generic-ubuntu22.04", "580"),
        ("v580.1", "580.1"),
        ("latest", ""),
        ("", ""),
    ],
)
def test_the_driver_that_a_tag_names(tag, driver):
    assert driver_of(tag) == driver


@given(DRIVERS, st.from_regex(r"[a-z][a-z0-9.]{0,9}", fullmatch=True))
@example("100.0.00", "v0")
def test_what_somebody_appended_to_their_own_image_is_no_other_driver(driver, own):
    assert agree_on_driver(driver, f"{driver}-{own}-ubuntu22.04") is True
    assert agree_on_driver(driver, f"9{driver}-{own}-ubuntu22.04") is False
    assert agree_on_driver(driver, own) is None or re.match(r"v\d", own)  # v0 is how somebody writes 0


@pytest.mark.parametrize(
    ("image", "is_one"),
    [
        ("registry/driver:525.60.13-grid-ubuntu22.04", True),
        ("registry/nvidia-vgpu-manager:525.60.12-ubuntu22.04", True),
        ("registry/grid/driver:525.60.13-ubuntu22.04", False),
        ("nvcr.io/nvidia/driver:580.95.05-ubuntu22.04", False),
        ("", False),
    ],
)
def test_whether_an_image_is_one_of_a_vgpu(image, is_one):
    assert is_vgpu(image) is is_one


@pytest.mark.parametrize(
    ("image", "tag", "version"),
    [
        ("nvcr.io/nvidia/driver:580.95.05-ubuntu22.04", "580.95.05-ubuntu22.04", "580.95.05-ubuntu22.04"),
        ("registry:5000/driver", "", ""),
        ("registry:5000/driver:1.2@sha256:abc", "1.2", "1.2"),
        ("driver@sha256:abc", "", "sha256:abc"),
        ("", "", ""),
    ],
)
def test_what_an_image_says_of_its_version(image, tag, version):
    assert tag_of(image) == tag
    assert version_of(image) == version


@pytest.mark.parametrize(
    ("said", "written"),
    [("580.95.5", "580.95.05"), ("580.126.20", "580.126.20"), ("595.91.7", "595.91.07"), ("580", "580"), ("", "")],
)
def test_a_slice_s_version_counts_with_the_label_s(said, written):
    assert driver_as_written(said) == written


@pytest.mark.parametrize(("one", "other"), [("580.95.05", "580.95.5"), ("570.172.08", "570.172.08 ")])
def test_numbers_are_compared_as_numbers(one: str, other: str):
    assert is_same_version(one, other)


@pytest.mark.parametrize(("one", "other"), [("580.95.05", "580.95"), ("580.95.05", "580.95.50"), ("", ""), ("580", "")])
def test_different_drivers_are_different_and_a_blank_is_none(one: str, other: str):
    assert not is_same_version(one, other)


@given(st.text(max_size=12), st.text(max_size=12))
def test_whatever_a_node_says_can_be_compared(one: str, other: str):
    assert is_same_version(one, other) == is_same_version(other, one)
