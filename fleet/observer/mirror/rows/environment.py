"""GPU settings in the environment of a pod's containers, from the pod's spec, not from its image.

docs.nvidia.com/datacenter/cloud-native/container-toolkit, docker-specialized: NVIDIA_VISIBLE_DEVICES gives a
container GPUs without a request; NVIDIA_REQUIRE_CUDA states the required CUDA.
"""

from fleet.observer.mirror.rows.text import fitted
from kube.structs import PodSeen

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
REQUIRE_CUDA = "NVIDIA_REQUIRE_CUDA"
LET_NONE_BE_SEEN = frozenset({"", "void", "none"})


def visible_devices(seen: PodSeen) -> str:
    """Returns the value of the first container that gets GPUs. Blank: none."""
    return next((value for value in _values_of(seen, VISIBLE_DEVICES) if value not in LET_NONE_BE_SEEN), "")


def required_cuda(seen: PodSeen) -> str:
    """Returns the first requirement: cuda>=12.8 brand=tesla,driver>=470,driver<471. Blank: none."""
    return next(filter(None, _values_of(seen, REQUIRE_CUDA)), "")


def _values_of(seen: PodSeen, name: str) -> list[str]:
    variables = (one for container in seen.spec.containers or () for one in container.env or ())
    return [fitted(one.value, 253).strip() for one in variables if one.name == name]
