"""What a pod's containers are told of GPUs by their environment, where the pod itself says it and not their image.

docs.nvidia.com/datacenter/cloud-native/container-toolkit, docker-specialized: NVIDIA_VISIBLE_DEVICES lets a container
use GPUs that it did not request; NVIDIA_REQUIRE_CUDA says which CUDA a driver must have.
"""

from fleet.observer.mirror.rows.text import fitted
from kube.structs import PodSeen

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
REQUIRE_CUDA = "NVIDIA_REQUIRE_CUDA"
LET_NONE_BE_SEEN = frozenset({"", "void", "none"})


def visible_devices(seen: PodSeen) -> str:
    """Of the first container that is to see any. Blank: the pod says so of none."""
    return next((value for value in _said(seen, VISIBLE_DEVICES) if value not in LET_NONE_BE_SEEN), "")


def required_cuda(seen: PodSeen) -> str:
    """Of the first container that says it: cuda>=12.8 brand=tesla,driver>=470,driver<471. Blank: none does."""
    return next(filter(None, _said(seen, REQUIRE_CUDA)), "")


def _said(seen: PodSeen, name: str) -> list[str]:
    variables = (one for container in seen.spec.containers or () for one in container.env or ())
    return [fitted(one.value, 253).strip() for one in variables if one.name == name]
