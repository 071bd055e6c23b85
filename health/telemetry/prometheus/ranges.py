"""Answers of Prometheus to range queries: a value per step for each device and metric, null without a sample.

prometheus.io/docs/prometheus/latest/querying/api: range queries, matrices.
"""

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from health.telemetry.identity import device_key
from health.telemetry.metrics import SERIES
from health.telemetry.prometheus.answers import (
    UNREADABLE,
    AnswerHead,
    Sample,
    Unusable,
    answer_data,
    labels_in,
    no_json,
    without_infinity,
)

POINTS_AT_MOST = 300  # a line
MINUTE_S = 60
SERIES_AT_MOST = 4000  # 16 boards of 7 slices, each with 25 metrics, are 2,800; their boards 400 more
LabelledDevice = tuple[str, str]  # as `GpuDevice.key`


class LabelledRange(msgspec.Struct, gc=False):
    metric: msgspec.Raw  # labels, undecoded
    values: list[Sample] = []


class RangeMatrix(msgspec.Struct):
    result: list[LabelledRange]
    result_type: str = msgspec.field(default="", name="resultType")


class RangeAnswer(AnswerHead):
    data: RangeMatrix | None = None


_ANSWERS = msgspec.json.Decoder(RangeAnswer, strict=False)  # a number is written as a string


@dataclass(frozen=True)
class Steps:
    """The requested instants in seconds since the epoch: `number` of them, beginning with `first`."""

    first: float
    step_s: float
    number: int

    @property
    def last(self) -> float:
        return self.first + self.step_s * (self.number - 1)

    @property
    def times(self) -> list[float]:
        return [self.first + self.step_s * place for place in range(self.number)]

    def since(self, at: float) -> "Steps":
        """Returns the steps from this time on, at least the last one."""
        left_out = min(max(0, math.ceil((at - self.first) / self.step_s)), self.number - 1)
        return Steps(self.first + self.step_s * left_out, self.step_s, self.number - left_out)

    def place(self, at: float) -> int:
        """Returns the position of a step; -1 if it is none of them."""
        if not self.first - 1 <= at <= self.last + 1:  # NaN is no time, either
            return -1
        place = round((at - self.first) / self.step_s)
        return place if 0 <= place < self.number and abs(self.first + place * self.step_s - at) < 1 else -1


@dataclass(frozen=True)
class PlotSpan:
    """The time of a plot: its length in seconds, its end `until`, and `since`, before which steps are left out."""

    length_s: int
    until: float
    since: float = 0

    def steps(self) -> Steps:
        """Returns the steps for a Prometheus query."""
        return steps(self.length_s, now=self.until).since(self.since)

    def minutes(self) -> Steps:
        last, number = math.floor(self.until / MINUTE_S) * MINUTE_S, self.length_s // MINUTE_S + 1
        return Steps(last - MINUTE_S * (number - 1), MINUTE_S, number).since(self.since)


def steps(window_s: int, *, now: float) -> Steps:
    """Returns the maximum number of steps, aligned so that a redrawn plot does not move."""
    step_s = max(15, math.ceil(window_s / (POINTS_AT_MOST - 1) / 15) * 15)
    last = math.floor(now / step_s) * step_s
    number = window_s // step_s + 1
    return Steps(last - step_s * (number - 1), step_s, number)


def lines_in(body: bytes, asked: Steps) -> Mapping[tuple[str, LabelledDevice], Sequence[float]]:
    """Returns by metric and device a value for each step in the metric's unit; NaN without a sample.

    :raises Unusable: when it is an error, partial, not such an answer, or too large
    """
    found: dict[tuple[str, LabelledDevice], array[float]] = {}
    for labels, values in series_in(body, asked, at_most=SERIES_AT_MOST):
        rows = SERIES.get(labels.get("__name__", ""), ())
        series = next((row for row in rows if not row.only or labels.get(row.label) in row.only), None)
        if series is None:
            continue
        line = found.setdefault((series.metric, device_key(labels)), array("d", [math.nan]) * asked.number)
        least, most = series.bounds
        for place, value in enumerate(values):
            # the highest of several values counts
            if least <= value <= most and not value * series.factor <= line[place]:
                line[place] = value * series.factor
    return found


def series_in(body: bytes, asked: Steps, *, at_most: int) -> "Iterator[tuple[dict[str, str], array[float]]]":
    """Yields the labels of each series and its raw value for each step; NaN without a sample.

    :raises Unusable: as `lines_in`
    """
    answer = _decoded(body)
    data = answer_data(answer, answer.data)
    if data.result_type not in ("matrix", ""):
        raise Unusable(f"The server returns a {data.result_type[:40]} instead of a matrix.")
    if len(data.result) > at_most:
        raise Unusable(f"The server returns {len(data.result)} series. At most {at_most} are read.")
    for row in data.result:
        line = array("d", [math.nan]) * asked.number
        for sample in row.values:
            place = asked.place(sample.evaluated_at)
            if place >= 0 and math.isfinite(sample.value):
                line[place] = sample.value
        yield labels_in(row.metric), line


def _decoded(body: bytes) -> RangeAnswer:
    try:
        return _ANSWERS.decode(without_infinity(body))
    except UNREADABLE as error:
        raise Unusable(f"{no_json(body)}: {str(error)[:200]}") from error
