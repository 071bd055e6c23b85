"""A cluster's pools as a file: parsed, compared, imported, exported."""

from fleet.pools.files.comparison import FileChange, FileComparison, compare
from fleet.pools.files.parser import FileEntry, PoolFile, parse_pool_file
from fleet.pools.files.problems import BadPoolFile, FileProblem
from fleet.pools.files.replacement import OutOfStep, take_over
from fleet.pools.files.serializer import write

__all__ = [
    "BadPoolFile",
    "FileChange",
    "FileComparison",
    "FileEntry",
    "FileProblem",
    "OutOfStep",
    "PoolFile",
    "compare",
    "parse_pool_file",
    "take_over",
    "write",
]
