"""The bytes that a node is drawn from: one for itself, one for each of its GPUs. Pure.

`static/js/map-raster.js` reads them. Cells are counts, not slots: a device plugin does not say which GPU is taken.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

HELD = 0x10  # beside the state of a node, which is in the lower four bits
HAS_PARTS = 0x20  # what it is cut into or shared as is counted beside its cells
CRITICAL = 0x40  # what is wrong with it includes a critical finding
TAKEN_AT = 4  # in which bit what is taken of a GPU begins; the upper two are 0
MOST_GPUS = 255  # more than any node has: a number of them is one byte

CellCounts = tuple[int, int, int]  # of GPUs, or of slices and shares: allocated, allocatable, expected


class GpuState(IntEnum):
    """What a GPU is to those who want one."""

    WHOLE = 0
    MISSING = 1  # it was there, and cannot be allocated now
    AWAY = 2  # the MIG manager is at work on it
    PARTS = 3  # cut or shared
    PARTS_MISSING = 4  # cut or shared, and some of its slices or shares cannot be allocated now
    PARTS_AWAY = 5
    NOT_OFFERED = 6  # no slice or share of it is offered, or it is for virtual machines


class GpuTaken(IntEnum):
    NONE = 0
    ALL = 1
    SOME = 2  # of its slices or shares


@dataclass(frozen=True, slots=True)
class NodeCells:
    state: int
    gpus: bytes
    parts: CellCounts | None = None

    @property
    def alone(self) -> bytes:
        """As a message carries it: its own byte, how many GPUs, a byte of each, its parts."""
        return bytes((self.state, len(self.gpus))) + self.gpus + written(self.parts)


def cells_of(
    code: int,
    *,
    is_held: bool,
    is_critical: bool,
    is_away: bool,
    whole: CellCounts,
    parts: CellCounts,
    physical: int | None,
) -> NodeCells:
    """`whole` counts GPUs, `parts` slices and shares. What a pod holds and the node lost is missing, not allocated."""
    others = max(0, (physical or 0) - possible(whole)[2])
    # Bounded before anything is made of them: a node may say that it has two billion.
    taken, usable, expected = (min(number, MOST_GPUS) for number in possible(whole))
    cut = possible(parts)
    gone = GpuState.AWAY if is_away else GpuState.MISSING
    gpus = [byte(GpuState.WHOLE, GpuTaken.ALL)] * taken
    gpus += [byte(GpuState.WHOLE)] * (usable - taken)
    gpus += [byte(gone)] * (expected - usable)
    gpus += _cut(cut, min(others, MOST_GPUS), is_away=is_away)
    flags = (HELD if is_held else 0) | (HAS_PARTS if cut[2] else 0) | (CRITICAL if is_critical else 0)
    return NodeCells(code | flags, bytes(gpus[:MOST_GPUS]), cut if cut[2] else None)


def possible(counted: CellCounts) -> CellCounts:
    taken, allocatable, expected = counted
    usable = min(allocatable, expected)
    return min(taken, usable), usable, expected


def _cut(parts: CellCounts, number: int, *, is_away: bool) -> Iterator[int]:
    """So many GPUs, filled from the left as far as their slices and shares are taken."""
    taken, usable, expected = parts
    gone = GpuState.PARTS_AWAY if is_away else GpuState.PARTS_MISSING
    for index in range(number):
        if not expected:
            yield byte(GpuState.NOT_OFFERED)
            continue
        # In parts times GPUs, so that nothing is rounded.
        begin, end = index * expected, (index + 1) * expected
        state = gone if usable * number < end else GpuState.PARTS
        filled = taken * number
        yield byte(state, GpuTaken.ALL if filled >= end else GpuTaken.SOME if filled > begin else GpuTaken.NONE)


def byte(state: GpuState, taken: GpuTaken = GpuTaken.NONE) -> int:
    return state | taken << TAKEN_AT


def written(parts: CellCounts | None) -> bytes:
    """Each number in groups of seven bits, the lowest first, with the eighth set on all but the last (LEB128)."""
    found = bytearray()
    for number in parts or ():
        while number > 0x7F:
            found.append(number & 0x7F | 0x80)
            number >>= 7
        found.append(number)
    return bytes(found)


@dataclass(frozen=True, slots=True)
class CellColumns:
    """Many nodes: the byte of each, how many GPUs each has, those GPUs, the parts of those nodes that have any."""

    states: bytes = b""
    sizes: bytes = b""
    gpus: bytes = b""
    parts: bytes = b""

    @classmethod
    def of(cls, nodes: Iterable[NodeCells]) -> "CellColumns":
        every = list(nodes)
        return cls(
            bytes(node.state for node in every),
            bytes(len(node.gpus) for node in every),
            b"".join(node.gpus for node in every),
            b"".join(written(node.parts) for node in every),
        )

    @classmethod
    def joined(cls, every: Iterable["CellColumns"]) -> "CellColumns":
        columns = list(every)
        return cls(*(b"".join(getattr(one, name) for one in columns) for name in cls.__slots__))

    def nodes(self) -> Iterator[NodeCells]:
        gpu_at = part_at = 0
        for state, size in zip(self.states, self.sizes, strict=True):
            parts: CellCounts | None = None
            if state & HAS_PARTS:
                parts, part_at = _read(self.parts, part_at)
            yield NodeCells(state, self.gpus[gpu_at : gpu_at + size], parts)
            gpu_at += size

    def __bytes__(self) -> bytes:
        return self.states + self.sizes + self.gpus + self.parts


def _read(text: bytes, at: int) -> tuple[CellCounts, int]:
    found = []
    for _ in range(3):
        number = shift = 0
        while text[at] & 0x80:
            number |= (text[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
        found.append(number | text[at] << shift)
        at += 1
    return (found[0], found[1], found[2]), at
