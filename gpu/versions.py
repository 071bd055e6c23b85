"""Versions as the GPU stack writes them, compared by what they mean. Pure.

- Zeros do not count: ResourceSlices pass a version through semver, so that 580.95.05 is told as 580.95.5
  (kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go).
- Image tags end in an operating system: 580.126.20-ubuntu22.04, v1.17.8-ubi8 (gpu-operator, its chart's values.yaml).
- A precompiled driver's tag names only its branch: 580-5.15.0-25-generic-ubuntu22.04 (gpu-operator documentation,
  "Precompiled Driver Containers").
- An image named by its digest tells no version at all (gpu-operator, internal/image/image.go).
"""

import re
from dataclasses import dataclass
from functools import lru_cache

SYSTEMS = (
    "ubuntu", "ubi", "rhel", "rhcos", "centos", "rocky", "ol", "sles", "suse", "debian", "distroless", "flatcar",
    "fedora", "alpine", "amzn", "cos", "packaging",
)  # fmt: skip
SYSTEM = re.compile(rf"(?:{'|'.join(SYSTEMS)})[\d.]*", re.ASCII)
# ASCII: the digits of other scripts are digits to Python, and to nobody who writes or reads a version.
LONGEST = 64  # characters of a number with its dots: longer is none, and Python reads no number of 4,301 digits
NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)", re.ASCII)
THREE = re.compile(r"(\d{3,4})\.(\d{1,4})\.(\d{1,4})", re.ASCII)
BRANCH = re.compile(r"\d+", re.ASCII)
KERNEL = re.compile(r"\d+\.\d+\.\d+", re.ASCII)

VersionPart = tuple[int, ...] | str  # 580.95.05 → (580, 95, 5); rc1 → "rc1"


@dataclass(frozen=True)
class Version:
    """A version without what it runs on. Empty: what was read names none."""

    parts: tuple[VersionPart, ...] = ()
    kernel: str = ""  # a precompiled driver's; then the only part is its branch

    @property
    def numbers(self) -> tuple[int, ...]:
        """What orders it among others: (580, 95, 5)."""
        first = self.parts[0] if self.parts else ()
        return first if isinstance(first, tuple) else ()

    @property
    def is_branch(self) -> bool:
        """Whether it names only a branch: 580."""
        return len(self.parts) == 1 and len(self.numbers) == 1


@lru_cache(maxsize=1024)  # a fleet has few versions and many nodes that name them
def read(text: str) -> Version:
    """A version field, a label or an image tag. A digest reads as no version."""
    if is_digest(text):
        return Version()
    pieces = [piece for piece in text.strip().lower().split("-") if piece]
    while len(pieces) > 1 and SYSTEM.fullmatch(pieces[-1]):
        pieces.pop()
    if len(pieces) > 1 and BRANCH.fullmatch(pieces[0]) and KERNEL.fullmatch(pieces[1]):
        return Version((_part(pieces[0]),), kernel="-".join(pieces[1:]))
    return Version(tuple(_part(piece) for piece in pieces))


@lru_cache(maxsize=1024)
def agree(one: str, other: str) -> bool | None:
    """Whether both can be the same version. A branch agrees with all of it. None: one of them tells no version.

    What is written in fewer numbers says less, not something else: 580.95 agrees with 580.95.05.
    """
    mine, theirs = read(one).parts, read(other).parts
    if not mine or not theirs:
        return None
    return len(mine) == len(theirs) and mine[:-1] == theirs[:-1] and _is_start_of(mine[-1], theirs[-1])


@lru_cache(maxsize=1024)
def agree_on_driver(one: str, other: str) -> bool | None:
    """As `agree`, of what a driver calls itself: it knows nothing of what somebody wrote after the number of their own
    image (580.95.05-r2-ubuntu22.04).
    """
    return agree(driver_of(one), driver_of(other))


def same(one: str, other: str) -> bool:
    """Whether both name the very same version. What names none is the same as nothing."""
    parts = read(one).parts
    return bool(parts) and parts == read(other).parts


def driver_of(tag: str) -> str:
    """The driver that an image tag names, as it is written there: 580.95.05, or the branch 580. Blank: none."""
    found = NUMBERS.match(tag.strip())
    return found.group(1) if found and len(found.group(1)) <= LONGEST else ""


def driver_as_written(text: str) -> str:
    """A driver's version as NVIDIA writes it, the last of its three numbers with two digits: 580.95.5 → 580.95.05.

    So that what a ResourceSlice says counts together with what a label says. Anything else stays as it is.
    """
    found = THREE.fullmatch(text)
    return f"{found[1]}.{found[2]}.{found[3]:0>2}" if found else text


def is_digest(text: str) -> bool:
    return text.strip().startswith("sha256:")


def is_vgpu(image: str) -> bool:
    """Whether an image names itself one of a vGPU: by its repository, or by NVIDIA's word for a guest's driver in its
    tag, 525.60.13-grid-ubuntu22.04.
    """
    return "vgpu" in image.lower() or "grid" in tag_of(image).lower().split("-")


def tag_of(image: str) -> str:
    """ "registry:5000/driver:580.95.05-ubuntu22.04@sha256:…" → "580.95.05-ubuntu22.04"; blank where it names none."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def version_of(image: str) -> str:
    """What an image says of its version: its tag, else its digest. Blank: neither."""
    return tag_of(image) or image.partition("@")[2]


def _part(piece: str) -> VersionPart:
    found = NUMBERS.fullmatch(piece) if len(piece) <= LONGEST else None
    return tuple(int(number) for number in found.group(1).split(".")) if found else piece


def _is_start_of(one: VersionPart, other: VersionPart) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    length = min(len(one), len(other))
    return one[:length] == other[:length]
