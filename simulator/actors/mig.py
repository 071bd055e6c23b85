"""What MIG makes of a GPU: its profiles, and the layouts that configurations of the MIG manager name.

Attributes as GFD labelled them on real nodes (H100 80GB: NVIDIA's GPU Operator with MIG; A100 80GB: reports of users);
counts a GPU from mig-parted's default configuration (deployments/container/nvidia-mig-manager).
"""

from collections import Counter
from dataclasses import dataclass

ALL_DISABLED = "all-disabled"
CAPABLE = ("ampere", "hopper", "blackwell")
SLICES = 7  # that a GPU can be cut into


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    memory_mib: int
    multiprocessors: int
    slices: int
    copy: int
    decoder: int
    jpeg: int
    encoder: int = 0
    ofa: int = 0

    @property
    def attributes(self) -> dict[str, int]:
        """What GFD says of it, by the last part of its labels' keys."""
        return {
            "memory": self.memory_mib,
            "multiprocessors": self.multiprocessors,
            "slices.gi": self.slices,
            "slices.ci": self.slices,
            "engines.copy": self.copy,
            "engines.decoder": self.decoder,
            "engines.encoder": self.encoder,
            "engines.jpeg": self.jpeg,
            "engines.ofa": self.ofa,
        }


HOPPER_80 = (
    Profile("1g.10gb", 9984, 16, 1, copy=1, decoder=1, jpeg=1),
    Profile("2g.20gb", 20096, 32, 2, copy=2, decoder=2, jpeg=2),
    Profile("3g.40gb", 40320, 60, 3, copy=3, decoder=3, jpeg=3),
)
AMPERE_80 = (
    Profile("1g.10gb", 9728, 14, 1, copy=1, decoder=0, jpeg=0),
    Profile("2g.20gb", 19968, 28, 2, copy=2, decoder=1, jpeg=0),
    Profile("3g.40gb", 40192, 42, 3, copy=3, decoder=2, jpeg=0),
)
PROFILES = {
    family: {profile.name: profile for profile in profiles}
    for family, profiles in {"hopper": HOPPER_80, "ampere": AMPERE_80}.items()
}

Slices = Counter[str]
Layout = tuple[Slices | None, ...]
"""Of each GPU: its instances by profile; None: MIG is off there."""

BALANCED = {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
CONFIGS: dict[str, dict[str, int] | None] = {
    ALL_DISABLED: None,
    "all-enabled": {},
    "all-1g.10gb": {"1g.10gb": 7},
    "all-2g.20gb": {"2g.20gb": 3},
    "all-3g.40gb": {"3g.40gb": 2},
    "all-balanced": BALANCED,
}
HALF_BALANCED = "half-balanced"  # of our own making: the first half of the GPUs stays whole
NAMES = (*CONFIGS, HALF_BALANCED)


def layout(config: str, gpus: int) -> Layout:
    """:raises KeyError: for a configuration that is not in the file."""
    if config == HALF_BALANCED:
        return (*((None,) * (gpus // 2)), *(Counter(BALANCED) for _ in range(gpus - gpus // 2)))
    slices = CONFIGS[config]
    return tuple(None if slices is None else Counter(slices) for _ in range(gpus))


def whole_gpus(cut: Layout) -> int:
    return sum(slices is None for slices in cut)


def instances(cut: Layout) -> Slices:
    """Of all GPUs together, by profile."""
    return sum((slices for slices in cut if slices is not None), Counter())


def is_single(cut: Layout) -> bool:
    """Does the strategy `single` accept it? All GPUs cut, none empty, one profile."""
    return whole_gpus(cut) == 0 and all(cut) and len(instances(cut)) == 1


def as_yaml() -> str:
    """The file that mig-parted reads."""
    lines = ["version: v1", "mig-configs:"]
    for name, slices in CONFIGS.items():
        lines += [f"  {name}:", "  - devices: all", *_devices(slices)]
    lines += [f"  {HALF_BALANCED}:", "  - devices: [0,1,2,3]", *_devices(None)]
    return "\n".join([*lines, "  - devices: [4,5,6,7]", *_devices(BALANCED)]) + "\n"


def _devices(slices: dict[str, int] | None) -> list[str]:
    if slices is None:
        return ["    mig-enabled: false"]
    listed = [f'      "{profile}": {count}' for profile, count in slices.items()]
    return ["    mig-enabled: true", "    mig-devices:", *listed] if listed else ["    mig-enabled: true"]
