"""CUDA's error numbers, from `data/cuda_errors.toml`, and the error in a program's last words. Pure."""

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from gpu.entry_files import entry_of, make_entries, read_file

FILE = Path(__file__).parent / "data" / "cuda_errors.toml"
LONGEST = 4096
NUMBERED = re.compile(
    r"\bcuda[\w:.() ]{0,30}?\b(?:error|failure|status)(?: code)?\W{1,3}(\d{1,3})\b"
    r"|cudagetdevicecount\(\).{0,160}\berror (\d{1,3})\b",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, kw_only=True)
class CudaError:
    number: int
    name: str  # name in the CUDA runtime API
    driver_name: str = ""  # of the driver API; blank: it has none
    texts: tuple[str, ...] = ()  # in lower case, as cudaGetErrorString writes it
    cause: str  # key of the entry in `health/stack/causes` with its explanation and steps
    who: str  # who acts first
    source: str
    date: date

    def is_in(self, line: str) -> bool:
        names = (self.name.lower(), *filter(None, [self.driver_name.lower()]))
        return any(re.search(rf"\b{name}\b", line) for name in names) or any(text in line for text in self.texts)


CUDA_ERRORS = make_entries(FILE, "errors", read_file(FILE)["errors"], lambda row: entry_of(row, CudaError))
BY_NUMBER = {each.number: each for each in CUDA_ERRORS}


def cuda_error_in(words: str) -> CudaError | None:
    """Returns the error that a line names, by its name or text, else by its number. None: no known one."""
    line = words[:LONGEST].lower()
    if "cuda" not in line and "nvidia" not in line:
        return None
    named = next((each for each in CUDA_ERRORS if each.is_in(line)), None)
    if named is not None:
        return named
    numbers = (int(first or second) for first, second in NUMBERED.findall(line))
    return next((BY_NUMBER[number] for number in numbers if number in BY_NUMBER), None)
