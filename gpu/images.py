"""Which CUDA a container's image was built with, as far as its name or its pod says it. Pure.

Names: hub.docker.com/r/nvidia/cuda (cuda:12.8.1-base-ubuntu24.04) and what others made a habit of, as PyTorch's wheels
(cu128). NVIDIA_REQUIRE_CUDA: docs.nvidia.com/datacenter/cloud-native/container-toolkit, docker-specialized.
"""

import re

REQUIRED = re.compile(r"(?<![a-z])cuda\s?>=\s?(\d{1,2})\.(\d{1,2})(?!\d)", re.ASCII)
IN_NAME = re.compile(r"(?<![a-z0-9])cuda[-_.:]?v?(\d{1,2})\.(\d{1,2})(?!\d)", re.ASCII)
IN_SHORT = re.compile(r"(?<![a-z0-9])cu(\d{2})(\d)(?![0-9a-z])", re.ASCII)
SINCE, BEFORE = 9, 30  # majors: what is none of these is another number
LONGEST = 500


def cuda_of(image: str, required: str = "") -> str:
    """12.8. Blank: neither says it, which is not: any. `required`: its pod's NVIDIA_REQUIRE_CUDA."""
    said = [_version(found) for found in REQUIRED.findall(required[:LONGEST])]
    if not any(said):
        name = image[:LONGEST].lower()
        said = [_version(found) for found in (*IN_NAME.findall(name), *IN_SHORT.findall(name))]
    newest = max((each for each in said if each), default=None)
    return f"{newest[0]}.{newest[1]}" if newest else ""


def _version(found: tuple[str, str]) -> tuple[int, int] | None:
    major, minor = int(found[0]), int(found[1])
    return (major, minor) if SINCE <= major < BEFORE else None
