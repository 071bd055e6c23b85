import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu.resources.names import is_virtual, vendor_of

WORDS = st.from_regex(r"(nvidia|amd|gpu\.nvidia)\.com/[A-Za-z0-9_.-]{1,40}", fullmatch=True)


@pytest.mark.parametrize(
    "name",
    ["t4", "A100", "a100-80g", "h100-80gb", "L40S", "tesla-v100", "rtx-4090", "GTX1080", "gb200", "geforce-rtx-3090"],
)
def test_a_resource_that_is_named_after_a_model_is_of_whole_gpus(name):
    assert (vendor_of(f"nvidia.com/{name}"), is_virtual(f"nvidia.com/{name}")) == ("nvidia", False)


@pytest.mark.parametrize(
    "name",
    ["hostdev", "cx7", "bf3", "gpumem", "gpucores", "priority", "rdma_shared_device_a", "mlnxnics", "vf1",
     "AD102_HIGH_DEFINITION_AUDIO_CONTROLLER", "GA100_A100_NVSWITCH", "TU104_USB_3_1_HOST_CONTROLLER"],
)  # fmt: skip
def test_what_is_beside_a_gpu_is_none(name):
    assert vendor_of(f"nvidia.com/{name}") is None


@given(WORDS)
def test_what_virtual_machines_get_is_somebodys(name):
    assert vendor_of(name) is not None or not is_virtual(name)
