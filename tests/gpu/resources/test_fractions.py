"""The physical GPUs behind what a pod requests."""

import pytest

from gpu.resources import GpuFraction, Layout, fraction_of

SHARED = Layout.read("gpu=whole/time-slicing*4")


@pytest.mark.parametrize(
    ("amounts", "layout", "product", "gpus", "is_shared"),
    [
        ({"nvidia.com/gpu": 2}, Layout(), "NVIDIA-H200", 2, False),
        ({"nvidia.com/gpu": 2}, SHARED, "NVIDIA-H200", 0.5, True),
        ({"nvidia.com/mig-3g.71gb": 1, "nvidia.com/mig-1g.18gb": 2}, Layout(), "NVIDIA-H200", 5 / 7, False),
        ({"nvidia.com/mig-2g.12gb": 1}, Layout(), "NVIDIA-A30", 2 / 4, False),
        ({}, Layout(), "NVIDIA-H200", 0, True),
    ],
    ids=["whole", "time-slices", "slices of seven", "slices of four", "a claim"],
)
def test_gpus_of_a_request(amounts, layout, product, gpus, is_shared):
    assert fraction_of(amounts, layout, product=product) == GpuFraction(pytest.approx(gpus), is_shared)
