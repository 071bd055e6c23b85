"""The holder of the GPU memory that a program lacked, from PyTorch's own message. Pure.

The format is that of c10/cuda/CUDACachingAllocator.cpp of pytorch/pytorch. Other frameworks state no amounts.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

UNITS = {"bytes": 1 / 2**20, "KiB": 1 / 2**10, "MiB": 1.0, "GiB": 2.0**10, "TiB": 2.0**20}
_AMOUNT = r"(\d{1,7}(?:\.\d{1,3})?) (bytes|[KMGT]iB)"
TRIED = re.compile(rf"Tried to allocate {_AMOUNT}")
TOTAL = re.compile(rf"total capacity of {_AMOUNT}")
FREE = re.compile(rf"of which {_AMOUNT} is free")
OTHERS = re.compile(rf"Process \d+ has {_AMOUNT} memory in use")
OWN = re.compile(rf"this process has {_AMOUNT} memory in use")
ALLOCATED = re.compile(rf"{_AMOUNT} is allocated by PyTorch")
RESERVED = re.compile(rf"{_AMOUNT} is reserved by PyTorch but unallocated")
MUCH = 0.1  # of the card: a smaller part decides nothing. Ours


class MemoryHolder(StrEnum):
    OTHERS = "others"  # other processes on the GPU
    FRAGMENTS = "fragments"  # the program's allocator, in pieces that are too small
    OVERHEAD = "overhead"  # driver context and libraries of the program
    PROGRAM = "program"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class MemoryShortage:
    holder: MemoryHolder
    held_mib: float = 0.0
    total_mib: float = 0.0


def shortage_of(words: str) -> MemoryShortage:
    """Returns the holders of the memory. Unnamed processes hold what is neither free nor the program's."""
    total, free, own = (_first_amount_mib(pattern, words) for pattern in (TOTAL, FREE, OWN))
    if total is None or free is None or own is None:
        return MemoryShortage(MemoryHolder.UNKNOWN)
    named = sum(_mib(*match) for match in OTHERS.findall(words))
    others = max(named, total - free - own)
    allocated, reserved = _first_amount_mib(ALLOCATED, words), _first_amount_mib(RESERVED, words) or 0.0
    if others >= MUCH * total:
        return MemoryShortage(MemoryHolder.OTHERS, others, total)
    if reserved >= max(MUCH * total, _first_amount_mib(TRIED, words) or 0.0):
        return MemoryShortage(MemoryHolder.FRAGMENTS, reserved, total)
    if allocated is not None and (overhead := own - allocated - reserved) >= MUCH * total:
        return MemoryShortage(MemoryHolder.OVERHEAD, overhead, total)
    return MemoryShortage(MemoryHolder.PROGRAM, own, total)


def _first_amount_mib(pattern: re.Pattern[str], words: str) -> float | None:
    match = pattern.search(words)
    return _mib(*match.groups()) if match else None


def _mib(number: str, unit: str) -> float:
    return float(number) * UNITS[unit]
