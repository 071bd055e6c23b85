"""Notices that the product's code changed, for `bin/dev`."""

from pathlib import Path

from demo.settings import ROOT

WATCHED = (
    "capacity", "config", "edges", "gpu", "kube", "people", "fleet", "health", "maintenance", "notifications",
    "operations", "rollouts", "wording",
)  # fmt: skip


class Changes:
    """Compares the newest change of any Python file with the last look; templates need no restart."""

    def __init__(self) -> None:
        self._before = newest()

    def seen(self) -> bool:
        """Say whether a file changed, appeared or went since the last look."""
        now = newest()
        changed, self._before = now != self._before, now
        return changed


def newest() -> tuple[int, int]:
    """Return how many files there are, and when the last of them changed."""
    times = [path.stat().st_mtime_ns for path in files()]
    return len(times), max(times, default=0)


def files() -> list[Path]:
    """Every file whose change a running process would not see."""
    return [path for package in WATCHED for path in (ROOT / package).rglob("*.py")]
