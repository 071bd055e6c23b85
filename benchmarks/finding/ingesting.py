"""A Prometheus' answers into a frame, beside the same answers by the standard library's `json` into dicts.

Each in a process of its own, which reads them from files: so its memory is that of reading them, and no other's.
"""

import json
import multiprocessing
import random
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from health.telemetry.metrics import METRICS
from health.telemetry.prometheus.answers import Placing, fill, vector
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot

NUMBER = 20  # metrics of a frame
AT = 1_795_391_944.225
Metric = tuple[str, Path, Path]  # its key, the answer with values, and the one with the times of their samples


@dataclass(frozen=True)
class Ingested:
    ours_s: float  # of CPU
    theirs_s: float
    rss_mib: float  # what ours took more, at its highest


def ingest(folder: Path, nodes: int) -> Ingested:
    """Median of three, one after the other in turn."""
    devices = [GpuDevice(f"gpu-{place // 8:05}", place % 8, _uuid(place)) for place in range(8 * nodes)]
    files = [_write(folder, key, len(devices)) for key in list(METRICS)[:NUMBER]]
    ours, theirs = [], []
    for _ in range(3):
        ours.append(_apart(_into_a_frame, files, devices))
        theirs.append(_apart(_into_dicts, files, devices))
    ours_s, theirs_s = (sorted(each)[1][0] for each in (ours, theirs))
    return Ingested(ours_s, theirs_s, max(mib for _, mib in ours))


def _uuid(place: int) -> str:
    return f"GPU-{place:08x}-1111-2222-3333-444444444444"


def _write(folder: Path, key: str, number: int) -> Metric:
    random.seed(key)
    said = [f"{random.uniform(0, 100):.3f}" for _ in range(number)]
    times = [f"{AT - place % 30:.3f}" for place in range(number)]
    return key, _answer(folder / f"{key}.values", said), _answer(folder / f"{key}.times", times)


def _answer(file: Path, said: list[str]) -> Path:
    """As a Prometheus writes it: the labels of a device are in one order, and its values are strings."""
    result = [{"metric": {"UUID": _uuid(place)}, "value": [AT, value]} for place, value in enumerate(said)]
    answer = {"status": "success", "data": {"resultType": "vector", "result": result}}
    file.write_text(json.dumps(answer, separators=(",", ":")))
    return file


def _apart(read: Callable[..., Any], files: list[Metric], devices: list[GpuDevice]) -> tuple[float, float]:
    """Seconds of CPU, and MiB more."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(_timed, (read, files, devices))


def _timed(read: Callable[..., Any], files: list[Metric], devices: list[GpuDevice]) -> tuple[float, float]:
    before, began = _highest_mib(), time.process_time()
    kept = read(files, devices)
    took = time.process_time() - began
    more = _highest_mib() - before
    del kept  # not before: what was read is a part of it
    return took, more


def _highest_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _into_a_frame(files: list[Metric], devices: list[GpuDevice]) -> dict[str, MetricColumn]:
    snapshot = TelemetrySnapshot(AT, devices)
    placing = Placing(snapshot.index())
    for key, values, times in files:
        column = snapshot.columns[key] = MetricColumn.empty(len(devices))
        fill(column, vector(values.read_bytes()), vector(times.read_bytes()), placing)
    return snapshot.columns


def _into_dicts(files: list[Metric], _devices: list[GpuDevice]) -> dict[str, Any]:
    """By metric and device the value and the time of its sample."""
    found: dict[str, dict[str, list[float]]] = {}
    for key, values, times in files:
        said = found[key] = {}
        for row in json.loads(values.read_bytes())["data"]["result"]:
            said[row["metric"]["UUID"]] = [float(row["value"][1])]
        for row in json.loads(times.read_bytes())["data"]["result"]:
            said[row["metric"]["UUID"]].append(float(row["value"][1]))
    return found
