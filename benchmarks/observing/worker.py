"""What a process costs, as the kernel counts it."""

import os
from dataclasses import dataclass
from pathlib import Path

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True)
class Running:
    pid: int

    @property
    def cpu_s(self) -> float:
        """Of all its threads, in user and kernel mode."""
        # The name of the program, in brackets, may hold anything.
        fields = self._read("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND

    @property
    def rss_mib(self) -> float:
        return int(self._read("statm").split()[1]) * PAGE_MIB

    @property
    def peak_mib(self) -> float:
        """The most it ever held."""
        line = next(line for line in self._read("status").splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024

    def _read(self, name: str) -> str:
        return Path(f"/proc/{self.pid}/{name}").read_text()
