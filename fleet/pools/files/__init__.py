"""The pools of a cluster as a file that people keep with their other files: read, compared, taken over, written."""

from fleet.pools.files.comparing import Comparison, PoolChange, compare
from fleet.pools.files.problems import BadPoolFile, FileProblem
from fleet.pools.files.reading import Entry, PoolFile, read
from fleet.pools.files.taking import OutOfStep, take_over
from fleet.pools.files.writing import write

__all__ = [
    "BadPoolFile",
    "Comparison",
    "Entry",
    "FileProblem",
    "OutOfStep",
    "PoolChange",
    "PoolFile",
    "compare",
    "read",
    "take_over",
    "write",
]
