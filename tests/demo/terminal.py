"""`python -m demo` as a person has it: in a terminal, with what it prints."""

import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "Quarterdeck is at"


class Terminal:
    """A demo that runs, and what it has printed."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "demo", "--still", "--no-browser", "--nodes", "4"),
                *("--data-dir", str(folder), *arguments),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.printed: list[str] = []
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or []:
            self._lines.put(line)

    def wait_for(self, words: str, timeout_s: float = PATIENCE_S) -> str:
        """Return the line that has the words. Each line that comes before it shows that it goes on."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            try:
                self.printed.append(self._lines.get(timeout=0.5))
                until = time.monotonic() + timeout_s
            except queue.Empty:
                if self.process.poll() is not None:
                    break
                continue
            if words in self.printed[-1]:
                return self.printed[-1]
        raise AssertionError(f"{words!r} never came. It printed:\n{''.join(self.printed)}")

    def url(self) -> str:
        said = next((line for line in self.printed if ADDRESS in line), None)
        return (said or self.wait_for(ADDRESS)).split()[-1]
