"""A cluster's pools as a file: parsed, compared, imported, exported."""

from fleet.pools.files.comparison import FileChange, compare
from fleet.pools.files.parser import PoolFile, parse_pool_file
from fleet.pools.files.problems import BadPoolFile, FileProblem
from fleet.pools.files.replacement import OutOfStep, take_over
from fleet.pools.files.serializer import write
