"""GPU settings in the environment of a pod's containers, from the pod's spec, not from its image.

docs.nvidia.com/datacenter/cloud-native/container-toolkit, docker-specialized: NVIDIA_VISIBLE_DEVICES gives a
container GPUs without a request; NVIDIA_REQUIRE_CUDA states the required CUDA. CUDA_VISIBLE_DEVICES:
docs.nvidia.com/cuda/cuda-programming-guide, CUDA environment variables.
"""

import re

from fleet.observer.mirror.rows.text import fitted
from kube.structs import PodSeen
from kube.structs.meta import UNREAD
from kube.structs.pod import Container

VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"
REQUIRE_CUDA = "NVIDIA_REQUIRE_CUDA"
LET_NONE_BE_SEEN = frozenset({"", "void", "none"})
AT_MOST = 253
NO_LIST = "(no list of devices)"  # replaces a value that is not a device list and may be a secret
_UUID = r"(?:GPU|MIG)-[0-9a-fA-F-]{1,64}(?:/\d{1,3}){0,2}"
_INDEX = r"-?\d{1,4}(?::\d{1,3})?"
DEVICE = re.compile(
    rf"all|none|void|{_INDEX}|{_UUID}|/var/run/nvidia-container-devices"
    rf"|[a-z0-9.-]{{1,63}}/[a-z]{{1,15}}=(?:all|{_INDEX}|{_UUID})",
    re.ASCII,
)


def environment_columns(seen: PodSeen) -> dict[str, str]:
    """Returns the device list of the first container that gets GPUs, and the first requirement.

    A requirement: cuda>=12.8 brand=tesla,driver>=470,driver<471. Blank: none.
    """
    variables = [
        (one.name, fitted(one.value, AT_MOST).strip())
        for container in seen.spec.containers or ()
        for one in container.env or ()
        if one.name in (VISIBLE_DEVICES, REQUIRE_CUDA)
    ]
    lists = (listed_devices(value) for name, value in variables if name == VISIBLE_DEVICES)
    return {
        "visible_devices": next((value for value in lists if value not in LET_NONE_BE_SEEN), ""),
        "required_cuda": next((value for name, value in variables if name == REQUIRE_CUDA and value), ""),
    }


def device_lists_of(container: Container) -> dict[str, str | None]:
    """Returns the device lists that are set by hand, by variable. None: it comes from a reference."""
    return {
        one.name: None if one.value_from is not UNREAD else listed_devices(fitted(one.value, AT_MOST).strip())
        for one in container.env or ()
        if one.name in (VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES)
    }


def listed_devices(value: str) -> str:
    """Returns a list of devices unchanged; `NO_LIST` for any other text."""
    return value if not value or all(DEVICE.fullmatch(part.strip()) for part in value.split(",")) else NO_LIST
