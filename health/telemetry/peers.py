"""GPUs of one node beside each other: what one sends and the others do. Pure."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median

from health.telemetry.frame import Frame

FEWEST = 4  # boards of a node that say something: of fewer nobody is far from the others


def medians(frame: Frame, metric: str) -> dict[str, float]:
    """The median growth of a counter by node, where enough boards say it."""
    return {node: middle for node, middle, _ in _nodes(frame, metric)}


def far_below_peers(frame: Frame, metric: str, share: float) -> list[int]:
    """The places of boards that grew less than this share of the median of their node."""
    return [
        place
        for _, middle, grown in _nodes(frame, metric)
        if middle > 0
        for place, amount in grown
        if amount < middle * share
    ]


def _nodes(frame: Frame, metric: str) -> Iterator[tuple[str, float, Sequence[tuple[int, float]]]]:
    column = frame.columns.get(metric)
    then = frame.checkpoints[0].values.get(metric) if frame.checkpoints else None
    if column is None or then is None:
        return
    for node, places in groupby(range(len(frame.devices)), key=lambda place: frame.devices[place].node_name):
        grown = [
            (place, amount)
            for place in places
            if not frame.devices[place].gi_id and (amount := column.values[place] - then[place]) == amount
        ]
        if len(grown) >= FEWEST:
            yield node, median(amount for _, amount in grown), grown
