"""The map's bytes of a node: one for the node, one per GPU. Pure.

`static/js/map-raster.js` reads them. Cells are counts, not slots: a device plugin does not report which GPU is
taken.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

HELD = 0x10  # beside the node's state in the lower four bits
HAS_PARTS = 0x20  # slices or shares are counted beside its cells
CRITICAL = 0x40  # it has a critical finding
TAKEN_AT = 4  # position of the taken bits; the upper two are 0
MOST_GPUS = 255  # no node has more; the number is one byte

CellCounts = tuple[int, int, int]  # allocated, allocatable, expected


class GpuState(IntEnum):
    WHOLE = 0
    MISSING = 1  # expected, but not allocatable
    AWAY = 2  # being reconfigured by the MIG manager
    PARTS = 3  # partitioned or shared
    PARTS_MISSING = 4  # partitioned or shared, with some parts not allocatable
    PARTS_AWAY = 5
    NOT_OFFERED = 6  # without offered parts, or for virtual machines


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
        """Returns the bytes for a message: node, number of GPUs, GPUs, parts."""
        return bytes((self.state, len(self.gpus))) + self.gpus + encode_numbers(self.parts)


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
    """Builds the cells. `whole` counts GPUs, `parts` slices and shares. Lost units of pods are missing, not
    allocated."""
    others = max(0, (physical or 0) - possible(whole)[2])
    # Bounded first: a node may report two billion.
    taken, usable, expected = (min(number, MOST_GPUS) for number in possible(whole))
    cut = possible(parts)
    gone = GpuState.AWAY if is_away else GpuState.MISSING
    gpus = [byte(GpuState.WHOLE, GpuTaken.ALL)] * taken
    gpus += [byte(GpuState.WHOLE)] * (usable - taken)
    gpus += [byte(gone)] * (expected - usable)
    gpus += _partitioned_bytes(cut, min(others, MOST_GPUS), is_away=is_away)
    flags = (HELD if is_held else 0) | (HAS_PARTS if cut[2] else 0) | (CRITICAL if is_critical else 0)
    return NodeCells(code | flags, bytes(gpus[:MOST_GPUS]), cut if cut[2] else None)


def possible(counted: CellCounts) -> CellCounts:
    taken, allocatable, expected = counted
    usable = min(allocatable, expected)
    return min(taken, usable), usable, expected


def _partitioned_bytes(parts: CellCounts, number: int, *, is_away: bool) -> Iterator[int]:
    """Yields the bytes of partitioned GPUs, filled from the left by allocated parts."""
    taken, usable, expected = parts
    gone = GpuState.PARTS_AWAY if is_away else GpuState.PARTS_MISSING
    for index in range(number):
        if not expected:
            yield byte(GpuState.NOT_OFFERED)
            continue
        # Multiplied by GPUs, so that nothing is rounded.
        begin, end = index * expected, (index + 1) * expected
        state = gone if usable * number < end else GpuState.PARTS
        filled = taken * number
        yield byte(state, GpuTaken.ALL if filled >= end else GpuTaken.SOME if filled > begin else GpuTaken.NONE)


def byte(state: GpuState, taken: GpuTaken = GpuTaken.NONE) -> int:
    return state | taken << TAKEN_AT


def encode_numbers(parts: CellCounts | None) -> bytes:
    """Encodes each number in groups of seven bits, lowest first, with the eighth bit set on all but the last
    (LEB128)."""
    found = bytearray()
    for number in parts or ():
        while number > 0x7F:
            found.append(number & 0x7F | 0x80)
            number >>= 7
        found.append(number)
    return bytes(found)


@dataclass(frozen=True, slots=True)
class CellColumns:
    """The cells of many nodes as columns: states, sizes, GPUs, and parts where present."""

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
            b"".join(encode_numbers(node.parts) for node in every),
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
                parts, part_at = _read_counts(self.parts, part_at)
            yield NodeCells(state, self.gpus[gpu_at : gpu_at + size], parts)
            gpu_at += size

    def __bytes__(self) -> bytes:
        return self.states + self.sizes + self.gpus + self.parts


def _read_counts(text: bytes, at: int) -> tuple[CellCounts, int]:
    found = []
    for _ in range(3):
        number = shift = 0
        while text[at] & 0x80:
            number |= (text[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
        found.append(number | text[at] << shift)
        at += 1
    return (found[0], found[1], found[2]), at
