"""How many physical GPUs a node has, and what is made of each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu.resources import Layout, Use, boards_of, layout_of, uses_of
from gpu.resources.mig_slices import may_have_profile, profile_of_size, slices_of_a_board
from gpu.resources.physical import COLUMNS, TITLES, columns_of, uses_in
from tests.fleet.documents import mig_mixed, time_sliced

GPU, PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.product"
A100 = "NVIDIA-A100-SXM4-80GB"
MPS = {PRODUCT: f"{A100}-SHARED", f"{GPU}.replicas": "10", f"{GPU}.sharing-strategy": "mps", f"{GPU}.count": "8"}
SINGLE = {PRODUCT: "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", f"{GPU}.count": "56", f"{GPU}.product": ""}


def uses(labels, amounts, *, product=A100, registered=0):
    return uses_of(labels, amounts, layout_of(labels, amounts), product=product, registered=registered)


@pytest.mark.parametrize(
    ("labels", "amounts", "expected"),
    [
        ({}, {GPU: 8}, {Use.WHOLE: 8}),
        ({}, {"amd.com/gpu": 8}, {Use.WHOLE: 8}),
        ({}, {"habana.ai/gaudi": 8}, {Use.WHOLE: 8}),
        (time_sliced(4), {GPU: 32}, {Use.TIME_SLICING: 8}),
        (MPS, {GPU: 80}, {Use.MPS: 8}),
        (SINGLE | {PRODUCT: "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}, {GPU: 56}, {Use.MIG: 8}),
        (mig_mixed({"1g.10gb": 28}), {GPU: 4, "nvidia.com/mig-1g.10gb": 28}, {Use.WHOLE: 4, Use.MIG: 4}),
        ({}, {"nvidia.com/mig-3g.40gb": 16}, {Use.MIG: 8}),
        ({"amd.com/gpu.compute-memory-partition": "dpx_nps1"}, {"amd.com/gpu": 16}, {Use.PARTITIONED: 8}),
        ({}, {"nvidia.com/GA102GL_A10": 2}, {Use.VIRTUAL: 2}),
        ({}, {"nvidia.com/NVIDIA_A10-12Q": 4}, {}),
        ({PRODUCT: A100, f"{GPU}.count": "8"}, {}, {Use.NOT_OFFERED: 8}),
        ({PRODUCT: A100, f"{GPU}.count": "8"}, {GPU: 7}, {Use.WHOLE: 7, Use.NOT_OFFERED: 1}),
        ({}, {}, {}),
    ],
)
def test_each_gpu_is_counted_once_and_by_what_is_made_of_it(labels, amounts, expected):
    assert uses(labels, amounts) == expected


@pytest.mark.parametrize(
    ("labels", "amounts", "gone", "boards"),
    [
        ({}, {GPU: 8}, {GPU: 3}, 3),
        (time_sliced(4), {GPU: 32}, {GPU: 4}, 1),
        (time_sliced(4), {GPU: 32}, {GPU: 5}, 2),
        (mig_mixed({"1g.10gb": 28}), {GPU: 4, "nvidia.com/mig-1g.10gb": 28}, {"nvidia.com/mig-1g.10gb": 7}, 1),
        ({}, {"nvidia.com/NVIDIA_A10-12Q": 4}, {"nvidia.com/NVIDIA_A10-12Q": 1}, 0),
    ],
)
def test_what_is_gone_is_of_as_many_gpus(labels, amounts, gone, boards):
    layout = Layout.read(str(layout_of(labels, amounts)))

    assert boards_of(gone, layout, product=A100) == boards


def test_shares_whose_number_of_users_is_not_told_are_of_the_boards_that_are_registered():
    assert uses({}, {"volcano.sh/vgpu-number": 80}, registered=8) == {Use.SHARED: 8}


def test_a_label_that_lies_counts_no_more_than_a_node_can_hold():
    assert uses({PRODUCT: A100, f"{GPU}.count": "999999999"}, {GPU: 8}) == {Use.WHOLE: 8, Use.NOT_OFFERED: 120}


@pytest.mark.parametrize(
    ("profile", "product", "number"),
    [
        ("1g.10gb", "NVIDIA-A100-SXM4-80GB", 7),
        ("1g.20gb", "NVIDIA-A100-SXM4-80GB", 4),
        ("1g.10gb", "NVIDIA-A100-SXM4-40GB", 4),
        ("2g.20gb", "NVIDIA-H100-80GB-HBM3", 3),
        ("3g.40gb", "NVIDIA-H100-80GB-HBM3", 2),
        ("7g.80gb", "NVIDIA-H100-80GB-HBM3", 1),
        ("1g.18gb", "NVIDIA-H200", 7),
        ("1g.35gb", "NVIDIA-H200", 4),
        ("3g.71gb", "NVIDIA-H200", 2),
        ("1g.6gb", "NVIDIA-A30", 4),
        ("2g.12gb", "NVIDIA-A30", 2),
        ("1g.45gb", "NVIDIA-B200", 4),
        ("2g.48gb", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 2),
        ("3g.135gb", "NVIDIA-B300", 2),
        ("2g.10gb", "", 3),
        ("cpx_nps4", "", 0),
    ],
)
def test_a_board_gives_as_many_slices_as_nvidias_table_says(profile, product, number):
    assert slices_of_a_board(profile, product) == number


@pytest.mark.parametrize(
    ("profile", "product", "may", "like"),
    [
        ("4g.71gb", "NVIDIA-A100-SXM4-80GB", False, "4g.40gb"),
        ("4g.71gb", "NVIDIA-H200", True, "4g.71gb"),
        ("1g.20gb", "NVIDIA-H100-80GB-HBM3", True, "1g.10gb"),
        ("1g.10gb.me", "NVIDIA-H100-80GB-HBM3", True, "1g.10gb"),
        ("3g.135gb", "NVIDIA-B300", True, "3g.135gb"),
        ("4g.24gb", "NVIDIA-A30", True, "4g.24gb"),
        ("3g.24gb", "NVIDIA-A30", False, ""),
        ("1g.12gb", "NVIDIA-GH200-480GB", True, ""),
        ("1g.12gb", "NVIDIA-H100-NVL", True, ""),
        ("1g.10gb", "NVIDIA-L40S", False, ""),
        ("cpx_nps4", "NVIDIA-A100-SXM4-80GB", True, ""),
    ],
)
def test_a_product_has_the_profiles_of_its_memory(profile, product, may, like):
    assert (may_have_profile(profile, product), profile_of_size(profile, product)) == (may, like)


NAMES = [
    GPU, f"{GPU}.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "nvidia.com/mig-1c.3g.40gb",
    "amd.com/gpu", "amd.com/cpx_nps4", "gpu.intel.com/i915", "habana.ai/gaudi", "nvidia.com/pgpu",
    "nvidia.com/NVIDIA_A10-12Q", "volcano.sh/vgpu-number", "aliyun.com/gpu-mem", "gpu.nvidia.com",
    "gpu.nvidia.com/mig-1g.10gb",
]  # fmt: skip
KEYS = [
    PRODUCT, f"{GPU}.count", f"{GPU}.replicas", f"{GPU}.sharing-strategy", "nvidia.com/mig-1g.10gb.count",
    "nvidia.com/mig-1g.10gb.replicas", "amd.com/gpu.compute-memory-partition", "gpu.intel.com/device.count",
    "cloud.google.com/gke-accelerator-count", "cloud.google.com/gke-gpu-partition-size",
]  # fmt: skip
TEXTS = [
    "",
    "0",
    "1",
    "4",
    "8",
    "-1",
    "x",
    "mps",
    "time-slicing",
    "dpx_nps1",
    A100,
    f"{A100}-SHARED",
    f"{A100}-MIG-1g.10gb",
]
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(TEXTS))


@given(LABELS, st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2**31 - 1)), st.integers(0, 128))
def test_the_uses_add_up_to_the_whole_whatever_a_node_says(labels, amounts, registered):
    found = uses(labels, amounts, registered=registered)
    columns = columns_of(found)

    assert all(number > 0 for number in found.values())
    assert (columns["physical_gpus"] or 0) == sum(columns[name] for name in COLUMNS.values())
    assert uses_in(columns) == found


def test_every_use_has_a_title():
    assert set(TITLES) == set(Use)
