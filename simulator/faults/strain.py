"""What faults do to one GPU at one moment, and how a fault that sits in a GPU says so."""

from dataclasses import dataclass, field
from enum import IntFlag
from typing import ClassVar

EVERY_GPU = -1
MOST_GPUS = 16
SHORTEST_S = 0.001
Health = tuple[int, str]  # DCGM's result, 0 pass, 10 warn, 20 fail; and its code


class ClockEvent(IntFlag):
    """Why clocks are lower than they could be: DCGM's bitmask (NVIDIA/DCGM, dcgmlib/dcgm_fields.h)."""

    GPU_IDLE = 0x1
    CLOCKS_SETTING = 0x2
    POWER_CAP = 0x4
    HW_SLOWDOWN = 0x8
    SYNC_BOOST = 0x10
    SW_THERMAL = 0x20
    HW_THERMAL = 0x40
    HW_POWER_BRAKE = 0x80
    DISPLAY_CLOCKS = 0x100


@dataclass(slots=True)
class Strain:
    """Made anew for each look. `per_s`: what counters gain in a second, by their DCGM field."""

    celsius: float | None = None
    clock_ratio: float = 1.0
    nvlink_ratio: float = 1.0
    work_ratio: float = 1.0
    most_watts: float | None = None  # None: what its board is built for
    memory_ratio: float = 0.0  # that is used at least
    events: int = 0
    per_s: dict[str, float] = field(default_factory=dict)
    gauges: dict[str, int] = field(default_factory=dict)
    health: dict[str, Health] = field(default_factory=dict)
    is_gone: bool = False

    def slow_down(self, clock_ratio: float, events: int) -> None:
        self.clock_ratio = min(self.clock_ratio, clock_ratio)
        self.events |= events

    def count(self, counter: str, per_s: float) -> None:
        self.per_s[counter] = self.per_s.get(counter, 0.0) + per_s


@dataclass(frozen=True, slots=True)
class OnGpu:
    """A fault of one GPU of a node, or of each of them. Seconds count from when it was switched on."""

    node: str
    gpu: int = 0
    key: ClassVar[str] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gpu", as_gpu(self.gpu))

    @property
    def ends_with_reboot(self) -> bool:
        """Returns whether a reboot of the node mends it."""
        return False

    def has(self, gpu: int) -> bool:
        return self.gpu in (EVERY_GPU, gpu)

    def bear(self, strain: Strain, *, on_s: float, is_reset: bool) -> None:
        """While it is on. `is_reset`: the GPU was reset, or its driver loaded anew, since then."""

    def at_start(self) -> dict[str, int]:
        """What counters gain at once, by their DCGM field."""
        return {}

    def xids(self, after_s: float, until_s: float) -> list[tuple[float, int]]:
        """What the driver reports after the one and not after the other: when, and which."""
        del after_s, until_s
        return []


def as_gpu(value: object) -> int:
    """`all`, or the GPU's index. :raises ValueError:"""
    number = EVERY_GPU if value == "all" else int(str(value))
    if not EVERY_GPU <= number < MOST_GPUS:
        raise ValueError(f"gpu {value!r} is neither `all` nor an index from 0 to {MOST_GPUS - 1}")
    return number


def not_negative(called: str, value: object) -> float:
    """:raises ValueError:"""
    number = float(str(value))
    if not 0 <= number < float("inf"):
        raise ValueError(f"{called} is a number from 0 on, not {value!r}")
    return number


def pause(called: str, value: object) -> float:
    """Seconds between two of something; 0: there is one, or all at once. :raises ValueError:"""
    number = not_negative(called, value)
    if 0 < number < SHORTEST_S:
        raise ValueError(f"{called} is 0, or at least {SHORTEST_S}")
    return number
