"""Comparison of the GPUs of one node. Pure."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median

from health.telemetry.base import STALE_AFTER_S
from health.telemetry.snapshot import TelemetrySnapshot

FEWEST = 4  # boards with a value; with fewer there is no outlier


def medians(snapshot: TelemetrySnapshot, metric: str) -> dict[str, float]:
    """Returns the median of a metric by node, if enough boards report it now."""
    return {node: middle for node, middle, _ in _nodes(snapshot, metric)}


def far_below_peers(snapshot: TelemetrySnapshot, metric: str, share: float) -> list[int]:
    """Returns the positions of boards below this share of their node's median, of those that report it now."""
    return [
        place
        for _, middle, said in _nodes(snapshot, metric)
        if middle > 0
        for place, value in said
        if value < middle * share
    ]


def _nodes(snapshot: TelemetrySnapshot, metric: str) -> Iterator[tuple[str, float, Sequence[tuple[int, float]]]]:
    column, oldest = snapshot.columns.get(metric), snapshot.taken_at - STALE_AFTER_S
    if column is None:
        return
    for node, places in groupby(range(len(snapshot.devices)), key=lambda place: snapshot.devices[place].node_name):
        said = [
            (place, value)
            for place in places
            if not snapshot.devices[place].gi_id
            and column.times[place] >= oldest
            and (value := column.values[place]) == value
        ]
        if len(said) >= FEWEST:
            yield node, median(value for _, value in said), said
