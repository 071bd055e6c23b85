"""The request of all devices of a node whose GPUs are partitioned or shared, and the test that runs on each device."""

import subprocess
from pathlib import Path

import pytest

from gpu.resources import Layout
from operations.test_jobs.device_requests import TestedDevices, request_of
from operations.test_jobs.node_tests import NODE_TESTS

GPU, SHARED, SMALL, LARGE = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-1g.10gb",
    "nvidia.com/mig-3g.40gb",
)
# As nvidia-smi -L prints it (NVIDIA/DCGM issues 94), with an older name of a MIG device (MIG-GPU-…/1/0).
LISTED = """\
GPU 0: NVIDIA A100 80GB PCIe (UUID: GPU-a)
  MIG 3g.40gb     Device  0: (UUID: MIG-1)
  MIG 3g.40gb     Device  1: (UUID: MIG-GPU-a/1/0)
GPU 1: NVIDIA A100 80GB PCIe (UUID: GPU-b)
GPU 2: NVIDIA A100 80GB PCIe (UUID: GPU-c)
"""


@pytest.mark.parametrize(
    ("allocatable", "layout", "found"),
    [
        ({SMALL: 4, LARGE: 2}, "mig-1g.10gb=1g.10gb mig-3g.40gb=3g.40gb", TestedDevices({SMALL: 4, LARGE: 2}, 6, True)),
        ({SMALL: 4, GPU: 7}, "mig-1g.10gb=1g.10gb", TestedDevices({GPU: 7, SMALL: 4}, 11, True)),
        ({SMALL: 14}, "", TestedDevices({SMALL: 14}, 14, True)),  # nothing labels it
        ({GPU: 14}, "gpu=1g.10gb", TestedDevices({GPU: 14}, 14, True)),  # the strategy single
        ({SHARED: 32}, "gpu.shared=whole/time-slicing*4", TestedDevices({SHARED: 32}, 8)),
        ({GPU: 32}, "gpu=whole/time-slicing*", TestedDevices({GPU: 32}, 8)),  # as many GPUs as the node has
        ({SMALL: 28}, "mig-1g.10gb=1g.10gb/time-slicing*2", TestedDevices({SMALL: 28}, 14, True)),
    ],
)
def test_it_has_all_slices_and_shares(allocatable: dict[str, int], layout: str, found: TestedDevices):
    assert request_of(allocatable, allocatable, Layout.read(layout), physical_gpus=8) == found


@pytest.mark.parametrize(
    ("allocatable", "layout", "why"),
    [
        ({GPU: 32}, "gpu=whole/mps*4", "no test has all 8 GPUs"),
        ({GPU: 32}, "gpu=whole/hami*4", "No request has all shares of nvidia.com/gpu: hami"),
        ({GPU: 28}, "gpu=whole/time-slicing*4", "offers 7 of 8 GPUs"),
        ({GPU: 24, SMALL: 7}, "gpu=whole/time-slicing*4 mig-1g.10gb=1g.10gb", "offers 7 of 8 GPUs"),
        ({SMALL: 13}, "mig-1g.10gb=1g.10gb/time-slicing*2", "behind 13 shares of nvidia.com/mig-1g.10gb is unknown"),
        ({"gpu.nvidia.com/mig-1g.10gb": 7}, "", "knows gpu.nvidia.com/mig-1g.10gb"),
        ({"amd.com/cpx_nps4": 8}, "", "knows amd.com/cpx_nps4"),
        ({}, "gpu=1g.10gb", "offers no GPUs"),
    ],
)
def test_without_all_devices_it_says_why(allocatable: dict[str, int], layout: str, why: str):
    assert why in str(request_of(allocatable, {}, Layout.read(layout), physical_gpus=8))


def test_shares_beside_slices_of_every_gpu_are_tested():
    layout = Layout.read("gpu=whole/time-slicing*4 mig-1g.10gb=1g.10gb")
    found = request_of({GPU: 28, SMALL: 7}, {}, layout, physical_gpus=8)
    assert found == TestedDevices({GPU: 28, SMALL: 7}, 14, has_mig=True)


def test_a_missing_slice_is_not_skipped():
    found = request_of({SMALL: 6}, {SMALL: 7}, Layout.read("mig-1g.10gb=1g.10gb"), physical_gpus=1)
    assert "would skip the rest" in str(found)


@pytest.mark.parametrize(
    ("broken", "devices", "exit_code", "printed"),
    [
        ("none", 4, 0, "CUDA works on 4 devices.\n"),
        ("MIG-GPU-a/1/0", 4, 1, "MIG-GPU-a/1/0: no kernel image\n"),
        ("GPU-c", 4, 1, "GPU-c: no kernel image\n"),
        ("none", 5, 126, "nvidia-smi lists 4 of 5 devices.\n"),
    ],
)
def test_the_script_runs_on_each_device(tmp_path: Path, broken: str, devices: int, exit_code: int, printed: str):
    programs = {
        "nvidia-smi": f"cat <<'END'\n{LISTED}END",
        "vectorAdd": f'test "$CUDA_VISIBLE_DEVICES" != {broken} || {{ echo "no kernel image"; exit 1; }}',
    }
    for name, script in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    command = NODE_TESTS["cuda"].command_on(devices).replace("/tmp/", f"{tmp_path}/")  # noqa: S108
    command = command.replace("/cuda-samples", str(tmp_path))
    ran = subprocess.run(
        ["/bin/sh", "-c", command],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (exit_code, printed)
