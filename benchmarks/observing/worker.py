"""What a process costs, as the kernel counts it."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

SCHEDULED = 2  # nanoseconds of all threads, also of those that ended; CPUCLOCK_SCHED of linux/posix-timers.h
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True)
class Running:
    pid: int

    @property
    def cpu_s(self) -> float:
        """Of all its threads, in user and kernel mode. `/proc` counts it in ticks of ten milliseconds."""
        return time.clock_gettime(~self.pid << 3 | SCHEDULED)  # as clock_getcpuclockid(3) makes the clock's number

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
