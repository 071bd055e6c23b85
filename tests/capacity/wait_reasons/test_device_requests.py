"""Selectors of claims and classes, compared with devices."""

import pytest

from capacity.wait_reasons.device_requests import read_device_demand

H100 = {"name": "gpu-0", "type": "gpu", "product": "NVIDIA H100", "memory_bytes": 80 * 2**30}
OF_CLASS = ["device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"]
MEMORY = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('{}')) >= 0"
PRODUCT = 'device.attributes["gpu.nvidia.com"].productName {} "NVIDIA H100"'


@pytest.mark.parametrize(
    ("selectors", "is_match"),
    [
        ([], True), ([PRODUCT.format("==")], True), ([PRODUCT.format("!=")], False),
        ([MEMORY.format("80Gi")], True), ([MEMORY.format("81Gi")], False),
        (["device.attributes['gpu.amd.com'].type == 'gpu'"], False),
        (["device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"], False),  # it has none
    ],
)  # fmt: skip
def test_simple_selectors_are_evaluated(selectors, is_match):
    request = read_device_demand("gpu.nvidia.com", OF_CLASS, selectors)

    assert request is not None
    assert request.matches("gpu.nvidia.com", H100) is is_match
    assert not request.matches("gpu.amd.com", H100)


@pytest.mark.parametrize(
    "selector",
    [
        "device.attributes['gpu.nvidia.com'].productName.lowerAscii().matches('^.*h100.*$')",
        "device.driver == 'a' || device.driver == 'b'", "!(device.driver == 'a')", "true", "",
        "device.attributes['gpu.nvidia.com'].cudaComputeCapability == '9.0'",
        "device.capacity['gpu.nvidia.com'].multiprocessors.compareTo(quantity('1')) >= 0",
    ],
)  # fmt: skip
def test_any_other_selector_is_not_evaluated(selector):
    assert read_device_demand("gpu.nvidia.com", OF_CLASS, [selector]) is None
    assert read_device_demand("gpu.nvidia.com", [selector], []) is None


def test_the_name_tells_the_class_and_what_the_claim_adds():
    request = read_device_demand("gpu.nvidia.com", OF_CLASS, [PRODUCT.format("==")])

    assert request is not None
    assert request.name == "devices of gpu.nvidia.com (product == NVIDIA H100)"
