"""The pools of a cluster as a file that people keep with their other files: read, compared, taken over, written."""

from fleet.pools.files.comparing import Change, Comparison, compare
from fleet.pools.files.problems import BadPoolFile, Problem
from fleet.pools.files.reading import Entry, PoolFile, read
from fleet.pools.files.taking import OutOfStep, take_over
from fleet.pools.files.writing import write

__all__ = [
    "BadPoolFile",
    "Change",
    "Comparison",
    "Entry",
    "OutOfStep",
    "PoolFile",
    "Problem",
    "compare",
    "read",
    "take_over",
    "write",
]
