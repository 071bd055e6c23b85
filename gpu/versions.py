"""Versions in the notation of the GPU stack, compared by meaning. Pure.

- Leading zeros do not count: ResourceSlices pass a version through semver, so 580.95.05 becomes 580.95.5
(kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go).
- Image tags end with an operating system: 580.126.20-ubuntu22.04, v1.17.8-ubi8 (gpu-operator, its chart's
values.yaml).
- A precompiled driver's tag names only its branch: 580-5.15.0-25-generic-ubuntu22.04 (gpu-operator documentation,
"Precompiled Driver Containers").
- An image named by its digest has no version (gpu-operator, internal/image/image.go).
"""

import re
from dataclasses import dataclass
from functools import lru_cache

SYSTEMS = (
    "ubuntu", "ubi", "rhel", "rhcos", "centos", "rocky", "ol", "sles", "suse", "debian", "distroless", "flatcar",
    "fedora", "alpine", "amzn", "cos", "packaging",
)  # fmt: skip
SYSTEM = re.compile(rf"(?:{'|'.join(SYSTEMS)})[\d.]*", re.ASCII)
# ASCII only: Python also accepts digits of other scripts.
LONGEST = 64  # characters of a dotted number; Python rejects numbers of more than 4,300 digits
NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)", re.ASCII)
THREE = re.compile(r"(\d{3,4})\.(\d{1,4})\.(\d{1,4})", re.ASCII)
BRANCH = re.compile(r"\d+", re.ASCII)
KERNEL = re.compile(r"\d+\.\d+\.\d+", re.ASCII)

VersionPart = tuple[int, ...] | str  # 580.95.05 → (580, 95, 5); rc1 → "rc1"


@dataclass(frozen=True)
class Version:
    """A version without its platform. Empty: the text has none."""

    parts: tuple[VersionPart, ...] = ()
    kernel: str = ""  # of a precompiled driver; then the only part is its branch

    @property
    def numbers(self) -> tuple[int, ...]:
        """Returns the comparable numbers: (580, 95, 5)."""
        first = self.parts[0] if self.parts else ()
        return first if isinstance(first, tuple) else ()

    @property
    def is_branch(self) -> bool:
        """Tells whether it names only a branch: 580."""
        return len(self.parts) == 1 and len(self.numbers) == 1


@lru_cache(maxsize=1024)  # a fleet has few versions and many nodes
def parse_version(text: str) -> Version:
    """Parses a version field, a label or an image tag. A digest has no version."""
    if is_digest(text):
        return Version()
    segments = [segment for segment in text.strip().lower().split("-") if segment]
    while len(segments) > 1 and SYSTEM.fullmatch(segments[-1]):
        segments.pop()
    if len(segments) > 1 and BRANCH.fullmatch(segments[0]) and KERNEL.fullmatch(segments[1]):
        return Version((_parse_part(segments[0]),), kernel="-".join(segments[1:]))
    return Version(tuple(_parse_part(segment) for segment in segments))


@lru_cache(maxsize=1024)
def agree(one: str, other: str) -> bool | None:
    """Tells whether both may be the same version. A branch agrees with all its versions. None: one has no version.

    Fewer numbers mean less precision, not a difference: 580.95 agrees with 580.95.05.
    """
    mine, theirs = parse_version(one).parts, parse_version(other).parts
    if not mine or not theirs:
        return None
    return len(mine) == len(theirs) and mine[:-1] == theirs[:-1] and _is_start_of(mine[-1], theirs[-1])


@lru_cache(maxsize=1024)
def agree_on_driver(one: str, other: str) -> bool | None:
    """Compares driver versions as `agree` does, without suffixes of custom images (580.95.05-r2-ubuntu22.04)."""
    return agree(driver_of(one), driver_of(other))


def is_same_version(one: str, other: str) -> bool:
    """Tells whether both name exactly the same version. A text without a version equals nothing."""
    parts = parse_version(one).parts
    return bool(parts) and parts == parse_version(other).parts


def driver_of(tag: str) -> str:
    """Returns the driver version of an image tag as written: 580.95.05, or the branch 580. Blank: none."""
    match = NUMBERS.match(tag.strip())
    return match.group(1) if match and len(match.group(1)) <= LONGEST else ""


def driver_as_written(text: str) -> str:
    """Returns a driver version in NVIDIA's notation, with two digits in the third number: 580.95.5 → 580.95.05.

    So versions of ResourceSlices and labels count together. Other texts stay unchanged.
    """
    match = THREE.fullmatch(text)
    return f"{match[1]}.{match[2]}.{match[3]:0>2}" if match else text


def is_digest(text: str) -> bool:
    return text.strip().startswith("sha256:")


def is_vgpu(image: str) -> bool:
    """Tells whether an image is one of a vGPU: by its repository, or by NVIDIA's mark for guest drivers in its tag,
    525.60.13-grid-ubuntu22.04.
    """
    return "vgpu" in image.lower() or "grid" in tag_of(image).lower().split("-")


def tag_of(image: str) -> str:
    """Returns the tag: "registry:5000/driver:580.95.05-ubuntu22.04@sha256:…" → "580.95.05-ubuntu22.04". Blank: none."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def version_of(image: str) -> str:
    """Returns the tag, else the digest. Blank: neither."""
    return tag_of(image) or image.partition("@")[2]


def _parse_part(segment: str) -> VersionPart:
    match = NUMBERS.fullmatch(segment) if len(segment) <= LONGEST else None
    return tuple(int(number) for number in match.group(1).split(".")) if match else segment


def _is_start_of(one: VersionPart, other: VersionPart) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    length = min(len(one), len(other))
    return one[:length] == other[:length]
