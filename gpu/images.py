"""The CUDA version of a container image, from its name or its pod. Pure.

Names: hub.docker.com/r/nvidia/cuda (cuda:12.8.1-base-ubuntu24.04) and common conventions such as PyTorch's wheels
(cu128). NVIDIA_REQUIRE_CUDA: docs.nvidia.com/datacenter/cloud-native/container-toolkit, docker-specialized.
"""

import re

REQUIRED = re.compile(r"(?<![a-z])cuda\s?>=\s?(\d{1,2})\.(\d{1,2})(?!\d)", re.ASCII)
IN_NAME = re.compile(r"(?<![a-z0-9])cuda[-_.:]?v?(\d{1,2})\.(\d{1,2})(?!\d)", re.ASCII)
IN_SHORT = re.compile(r"(?<![a-z0-9])cu(\d{2})(\d)(?![0-9a-z])", re.ASCII)
SINCE, BEFORE = 9, 30  # major versions; other numbers are not CUDA's
LONGEST = 500


def cuda_of(image: str, required: str = "") -> str:
    """Returns the version, such as 12.8. Blank: unknown. `required` is the pod's NVIDIA_REQUIRE_CUDA."""
    versions = [_version(match) for match in REQUIRED.findall(required[:LONGEST])]
    if not any(versions):
        name = image[:LONGEST].lower()
        versions = [_version(match) for match in (*IN_NAME.findall(name), *IN_SHORT.findall(name))]
    newest = max((parsed for parsed in versions if parsed), default=None)
    return f"{newest[0]}.{newest[1]}" if newest else ""


def _version(match: tuple[str, str]) -> tuple[int, int] | None:
    major, minor = int(match[0]), int(match[1])
    return (major, minor) if SINCE <= major < BEFORE else None
