"""Answers of Prometheus to instant queries (prometheus.io/docs/prometheus/latest/querying/api: format, vectors).

The labels of a series are decoded once: 40,000 devices have the same labels in each of 40 answers, and in the next
round's.
"""

import sys
from array import array
from collections.abc import Mapping, MutableMapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from health.telemetry.identity import device_key, in_lower_case
from health.telemetry.metrics import BLANKS
from health.telemetry.snapshot import NEVER, WITHOUT, GpuDeviceKey, MetricColumn

WARNINGS_SHOWN = 3
T = TypeVar("T")


class Unusable(Exception):
    """An unusable answer; the sentence gives the reason and the action.

    It contains no NUL, which PostgreSQL refuses.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence.replace("\0", ""))


class AnswerLost(Unusable):
    """The request may have arrived, and no answer came back."""


class Sample(msgspec.Struct, array_like=True, gc=False):
    evaluated_at: float  # of the query, not of the sample
    value: float


class LabelledSample(msgspec.Struct, gc=False):
    metric: msgspec.Raw  # labels, undecoded
    value: Sample


class Vector(msgspec.Struct):
    result: list[LabelledSample]
    result_type: str = msgspec.field(default="", name="resultType")


class AnswerHead(msgspec.Struct):
    status: str = ""
    error: str = ""
    error_type: str = msgspec.field(default="", name="errorType")
    warnings: list[str] | None = None  # null is none, as Go writes a list that nobody made
    is_partial: bool | None = msgspec.field(default=None, name="isPartial")  # reported by a VictoriaMetrics cluster


class QueryAnswer(AnswerHead):
    data: Vector | None = None


class QueryError(msgspec.Struct):
    status: str = ""
    error: str = ""
    error_type: str = msgspec.field(default="", name="errorType")


_ANSWERS = msgspec.json.Decoder(QueryAnswer, strict=False)  # a number is written as a string
_REFUSALS = msgspec.json.Decoder(QueryError)
_LABELS = msgspec.json.Decoder(dict[str, str])
NUL = rb"\u0000"  # as JSON writes it
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # nothing but brackets is the last one


def refusal_in(body: bytes) -> str:
    """Returns the error text of an unsuccessful answer; empty if it has none."""
    try:
        said = _REFUSALS.decode(body)
    except UNREADABLE:
        return ""
    return ": ".join(part for part in (said.error_type, said.error) if part)[:300]


def vector(body: bytes) -> list[LabelledSample]:
    """Returns each series of an instant query's answer once.

    :raises Unusable: when it is an error, or partial, or not such an answer
    """
    answer = _decoded(body)
    data = answer_data(answer, answer.data)
    if data.result_type not in ("vector", ""):
        raise Unusable(f"The server returns a {data.result_type[:40]} instead of a vector.")
    return data.result


def answer_data(answer: AnswerHead, data: T | None) -> T:
    """Returns the data of the answer.

    :raises Unusable: when it is an error, or partial
    """
    if answer.status != "success" or data is None:
        raise Unusable(f"The server returns an error: {answer.error_type or 'error'}: {answer.error[:300]}")
    if answer.warnings:
        said = "; ".join(answer.warnings[:WARNINGS_SHOWN])[:300]
        raise Unusable(f"The server warns that its answer is incomplete, so the answer is not used: {said}")
    if answer.is_partial:
        raise Unusable(
            "The server reports a partial answer, because some of its storage is unavailable. The answer is not used."
        )
    return data


def labels(series: LabelledSample) -> dict[str, str]:
    """Returns the labels of a series.

    :raises Unusable: when they are not text
    """
    return labels_in(series.metric)


def labels_in(metric: msgspec.Raw) -> dict[str, str]:
    """Returns the labels.

    :raises Unusable: when they are not text
    """
    try:
        said = _LABELS.decode(metric)
    except UNREADABLE as error:
        raise Unusable(f"The labels of a series cannot be read: {error}") from error
    if NUL in bytes(metric):
        said = {name: value.replace("\0", "") for name, value in said.items()}  # PostgreSQL keeps none
    return in_lower_case(said)


def _decoded(body: bytes) -> QueryAnswer:
    try:
        return _ANSWERS.decode(body)
    except UNREADABLE:
        pass  # +Inf is a number to a Prometheus and none to a decoder: once more, without it
    try:
        return _ANSWERS.decode(without_infinity(body))
    except UNREADABLE as error:
        raise Unusable(f"{no_json(body)}: {str(error)[:200]}") from error


def without_infinity(body: bytes) -> bytes:
    """Returns the body in a form that the decoder accepts."""
    return body.replace(b'"+Inf"', b'"inf"').replace(b'"-Inf"', b'"-inf"')


def no_json(body: bytes) -> str:
    start = body[:200].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<")):
        return "The server returns a web page instead of JSON, as a sign-in page or a proxy does"
    return "The answer is not the JSON of a Prometheus" if body.strip() else "It answers nothing"


class Placing:
    """The device of each series of an answer. The order is mostly that of the previous answer."""

    def __init__(
        self, index: Mapping[GpuDeviceKey, int], keys: MutableMapping[bytes, GpuDeviceKey] | None = None
    ) -> None:
        """`keys` maps serialised labels of an earlier round to devices; new ones are added to it."""
        self._index = index
        self._keys = {} if keys is None else keys
        self._before: list[msgspec.Raw] = []
        self._places = array("l")
        self._timed: tuple[Sequence[LabelledSample], array, list[float]] = (), self._places, []
        self.unknown = 0  # of the answer that named most devices which the frame does not have

    def places(self, result: Sequence[LabelledSample]) -> array:
        """Returns the position of each series' device in the snapshot; -1 if it is not there."""
        metrics = [series.metric for series in result]
        if metrics != self._before:
            self._places = array("l", (self._place(series) for series in result))
            self.unknown = max(self.unknown, self._places.count(-1))
            self._before = metrics
        return self._places

    def times(self, result: Sequence[LabelledSample]) -> tuple[array, list[float]]:
        """Returns positions and values of each series. The last answer is cached."""
        if result is not self._timed[0]:
            self._timed = result, self.places(result), [series.value.value for series in result]
        return self._timed[1:]

    def _place(self, series: LabelledSample) -> int:
        written = bytes(series.metric)
        key = self._keys.get(written)
        if key is None:
            key = device_key(labels(series))
            if key in self._index:  # foreign series are dropped: there may be any number of them
                self._keys[written] = key
        return self._index.get(key, -1)


ANY = (-sys.float_info.max, sys.float_info.max)


class FillCounts(NamedTuple):
    """Counts: devices with newer values, invalid numbers, and samples from the future."""

    moved: int
    impossible: int
    ahead: int


def fill(
    column: MetricColumn,
    values: Sequence[LabelledSample],
    times: Sequence[LabelledSample],
    placing: Placing,
    *,
    factor: float = 1.0,
    bounds: tuple[float, float] = ANY,
    offset_s: float = 0.0,
    latest: float = ANY[1],
) -> FillCounts:
    """Writes newer values into a column.

    `offset_s` is added to the server's clock to get ours. A value is ignored if it is no number, out of bounds, or its
    time is unknown or in the future. A device with only such values still counts as having the series.
    """
    places = placing.places(values)
    taken = _times_of(places, times, placing)
    kept, known, moved, impossible, ahead = column.values, column.times, 0, 0, 0
    least, most = bounds
    for place, series, at in zip(places, values, taken, strict=True):
        value, when = series.value.value, at + offset_s
        # NaN is not equal to itself, and is neither newer nor older than anything.
        if place < 0 or when != when or when <= known[place] <= latest:
            continue
        if when <= latest and least <= value <= most:
            kept[place], known[place] = value * factor, when
            moved += 1
            continue
        if known[place] != known[place]:
            known[place] = WITHOUT
        if when > latest:
            ahead += 1
        else:
            impossible += value == value and value not in BLANKS
    return FillCounts(moved, impossible, ahead)


def _times_of(places: "array[int]", times: Sequence[LabelledSample], placing: Placing) -> Sequence[float]:
    """Returns the sample time at each of these positions; NaN if there is none."""
    of_times, said = placing.times(times)
    if of_times is places or of_times == places:  # the same devices in the same order
        return said
    at = dict(zip(of_times, said, strict=True))
    return [at.get(place, NEVER) for place in places]
