"""Registrations of HAMi's device plugin, as they are and as they should not be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu.resources import Layout, Registered, assigned_in, layout_of, registered_in
from gpu.resources.registered import BOARDS_AT_MOST

KEY = "hami.io/node-nvidia-register"
ONE = "GPU-00552014-5c87-89ac-b1a6-7b53aa24b0ec"
GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    "text",
    [
        f'[{{"id":"{ONE}","count":10,"devmem":32768,"type":"NVIDIA-Tesla V100","health":true}}]',
        f"{ONE},10,32768,100,NVIDIA-Tesla V100,0,true:",
        f"{ONE},10,32768,100,NVIDIA-Tesla V100,0,true,1,mig:",
        f"{ONE},10,32768,NVIDIA-Tesla V100,true:",
    ],
)
def test_every_way_of_registering_says_the_same(text):
    assert registered_in({KEY: text}) == (Registered(ONE, 10, "Tesla-V100"),)


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "[" * 9000,
        "[1, null]",
        '[{"id": 7, "count": "ten"}]',
        f"{ONE},-3,x:",
        f"{ONE}",
        f'[{{"id":"{ONE}","count":0}}]',
    ],
)
def test_what_cannot_be_read_registers_nothing(text):
    assert registered_in({KEY: text}) == ()


@given(st.text(max_size=200))
def test_no_text_stops_the_reading(text):
    assert len(registered_in({KEY: text})) <= BOARDS_AT_MOST
    assert isinstance(assigned_in({"hami.io/vgpu-devices-allocated": text}), list)


def test_a_registration_that_outlived_its_plugin_shares_nothing():
    boards = [Registered(ONE, 10, ""), Registered("GPU-2", 10, "")]

    assert layout_of({}, {GPU: 2}, boards) == Layout()
    assert layout_of({}, {GPU: 20}, boards).replicas == 10


def test_boards_with_unequal_users_are_shared_all_the_same():
    layout = layout_of({}, {GPU: 14}, [Registered(ONE, 10, ""), Registered("GPU-2", 4, "")])

    assert (layout.sharing, layout.replicas) == ("hami", None)
