"""The recorded figures of each bench, one JSON line a figure, in `benchmarks/results/NAME.jsonl`."""

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(__file__).with_name("results")
REFERENCE = "reference_ms"
Figure = dict[str, Any]


class UncommittedError(Exception):
    """The code that runs is in no commit, so a record could not name it."""


def commit() -> str:
    """Returns the short hash of the commit that runs.

    :raises UncommittedError: when a tracked file other than a record differs from it
    """
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!benchmarks/results")
    if changed:
        raise UncommittedError(f"Commit these files first; a record names a commit:\n{changed}")
    return _git("rev-parse", "--short=8", "HEAD")


def record(lines: Iterable[str], *, options: Sequence[str], made_by: str, at: datetime, folder: Path = FOLDER) -> int:
    """Appends the figures among a bench's lines to its file. Returns how many there were."""
    figures = [json.loads(line) for line in lines if line.startswith("{")]
    reference = next((figure["value"] for figure in figures if figure["name"].startswith(REFERENCE)), None)
    run = {
        "date": at.astimezone(UTC).date().isoformat(),
        "commit": made_by,
        "machine": machine(),
        REFERENCE: reference,
        "options": " ".join(options),
    }
    folder.mkdir(exist_ok=True)
    for figure in figures:
        with (folder / f"{figure['bench']}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(run | figure) + "\n")
    return len(figures)


def machine() -> str:
    """Names the processor and the number of cores that this process may use, as "2 × AMD EPYC"."""
    cores = len(os.sched_getaffinity(0))
    about = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in about if line.startswith("model name")]
    return f"{cores} × {models[0] if models else platform.machine()}"


def recorded(folder: Path = FOLDER) -> Iterator[Figure]:
    """Yields every record, bench by bench, the oldest first."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def table(figures: Iterable[Figure]) -> str:
    """Writes the table of `docs/figures.md`: the latest record of each figure, its target, and the best record."""
    by_name: dict[tuple[str, str, str], list[Figure]] = {}
    for figure in figures:
        if not figure["name"].startswith(REFERENCE):
            by_name.setdefault((figure["bench"], figure["options"], figure["name"]), []).append(figure)
    rows = ["| bench | figure | latest | target | best | date | commit | `reference_ms` |", "|---" * 8 + "|"]
    for (bench, options, name), records in sorted(by_name.items()):
        latest = records[-1]
        reference = "–" if latest[REFERENCE] is None else f"{latest[REFERENCE]:g}"
        missed = "" if latest["ok"] else " **missed**"
        command = f"{bench} {options}".strip()
        best = _amount(_best(records), latest["unit"])
        rows.append(
            f"| `{command}` | `{name}` | {_amount(latest['value'], latest['unit'])}{missed} | {_target(latest)} "
            f"| {best} | {latest['date']} | {latest['commit']} | {reference} |"
        )
    return "\n".join(rows)


def _best(records: list[Figure]) -> float | None:
    """None where a figure has no target: then no value is better than another."""
    values = [figure["value"] for figure in records]
    better = {"at least": max, "at most": min}.get(records[-1].get("bound", ""))
    return better(values) if better else None


def _target(figure: Figure) -> str:
    bound = figure.get("bound", "")
    return f"{bound} {_amount(figure['target'], figure['unit'])}" if bound else "–"


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{number} {unit}".strip()


def _git(*words: str) -> str:
    asked = ["git", *words]
    return subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def now() -> datetime:
    """The instant that a record is dated with."""
    return datetime.now(tz=UTC)
