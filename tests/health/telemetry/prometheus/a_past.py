"""A Prometheus that remembers: it answers queries at a time and ranges, for series that a test describes."""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from operator import itemgetter
from typing import Any
from urllib.parse import parse_qs

LOOKBACK_S = 300
NAMED = re.compile(r'__name__=~"([^"]*)"')
PLAIN = re.compile(r"\(([A-Za-z_]+)\{")
MATCHER = re.compile(r'(\w+)=~"([^"]*)"')
Sample = tuple[float, float | None]  # when, and what; None: a stale marker, as where its exporter says it no more


@dataclass
class Remembering:
    """`series`: by name and labels its samples, the oldest first."""

    now: float
    series: dict[tuple[str, tuple[tuple[str, str], ...]], list[Sample]] = field(default_factory=dict)
    refuses: Callable[[float], bool] = lambda _: False  # of an instant that is asked for
    asked: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)  # of each answer

    def add(self, name: str, labels: Mapping[str, str], samples: list[Sample]) -> None:
        self.series[name, tuple(sorted(labels.items()))] = samples

    def __call__(self, to: BaseHTTPRequestHandler) -> None:
        form = {key: values[0] for key, values in parse_qs(to.server.queries[-1]).items()}  # type: ignore[attr-defined]
        self.asked.append(form["query"])
        if "start" in form:
            first, last, step = (float(form[key]) for key in ("start", "end", "step"))
            times = [first + step * number for number in range(int((last - first) / step) + 1)]
            status, said = self._matrix(form["query"], times)
        else:
            status, said = self._vector(form["query"], float(form.get("time", self.now)))
        body = json.dumps(said).encode()
        to.send_response(status)
        to.send_header("Content-Length", str(len(body)))
        to.end_headers()
        to.wfile.write(body)

    def _matrix(self, query: str, times: list[float]) -> tuple[int, dict[str, Any]]:
        if any(map(self.refuses, times)):
            return 422, {"status": "error", "errorType": "execution", "error": "too many samples"}
        found: dict[tuple[tuple[str, str], ...], list[list[Any]]] = {}
        for at in times:
            for labels, value in self._said(query, at):
                found.setdefault(labels, []).append([at, str(value)])
        rows = [{"metric": dict(labels), "values": values} for labels, values in found.items()]
        self.rows.append(len(rows))
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": rows}}

    def _vector(self, query: str, at: float) -> tuple[int, dict[str, Any]]:
        rows = [{"metric": dict(labels), "value": [at, str(value)]} for labels, value in self._said(query, at)]
        self.rows.append(len(rows))
        return 200, {"status": "success", "data": {"resultType": "vector", "result": rows}}

    def _said(self, query: str, at: float) -> Iterator[tuple[tuple[tuple[str, str], ...], float]]:
        if query == "vector(time())":
            yield (), self.now
            return
        if query.endswith("> 1)"):
            return
        query, _, besides = query.partition(" unless on ")
        keys = besides[1:].partition(")")[0].split(", ") if besides else []
        others = {_by(keys, labels) for labels in self._those(besides, at)} if besides else set()
        within = re.search(r"\[(\d+)s\]", query)
        kept = (re.match(r"\w+ by \(([^)]*)\)", query) or ["", ""])[1].split(", ")
        named = NAMED.search(query)
        names = set(named[1].split("|")) if named else {(PLAIN.search(query) or ["", ""])[1]}
        wanted = {label: values for label, values in MATCHER.findall(query) if label != "__name__"}
        highest: dict[tuple[tuple[str, str], ...], float] = {}
        for (name, labels), samples in self.series.items():
            since = at - (float(within[1]) if within else LOOKBACK_S)
            place = bisect_right(samples, at, key=itemgetter(0))
            while within and place and samples[place - 1][1] is None:  # in a range there are no markers
                place -= 1
            if name not in names or not place or samples[place - 1][0] <= since:
                continue
            if not all(re.fullmatch(values, dict(labels).get(label, "")) for label, values in wanted.items()):
                continue
            sampled, said = samples[place - 1]
            if said is None or (besides and _by(keys, labels) in others):
                continue
            value = sampled if "timestamp(" in query else said
            if query.endswith("> 0") and value <= 0:
                continue
            key = tuple((key, text) for key, text in (("__name__", name), *labels) if key in kept)
            highest[key] = max(value, highest.get(key, value))
        yield from highest.items()

    def _those(self, query: str, at: float) -> Iterator[tuple[tuple[str, str], ...]]:
        """The labels of series that have a sample in the time before."""
        names, within = (NAMED.search(query) or ["", ""])[1].split("|"), re.search(r"\[(\d+)s\]", query)
        since = at - float(within[1] if within else LOOKBACK_S)
        for (name, labels), samples in self.series.items():
            if name in names and any(since < when <= at and said is not None for when, said in samples):
                yield labels


def _by(keys: list[str], labels: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    said = dict(labels)
    return tuple(said.get(key, "") for key in keys)
