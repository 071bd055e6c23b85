"""A Prometheus' answers to the product's queries, for GPUs that a test describes."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

Labels = Mapping[str, str]
MATCHER = re.compile(r'(\w+)=~"([^"]*)"')
WITHOUT = re.compile(r'(\w+)=""')


@dataclass
class Playing:
    """`series`: by name, of each device's labels its value and the time of its sample."""

    now: float
    series: dict[str, list[tuple[Labels, float, float]]] = field(default_factory=dict)
    queries: list[str] = field(default_factory=list)
    instants: dict[str, str] = field(default_factory=dict)  # by query, of which it was last asked; blank: of none
    writes_down_scrapes: bool = True  # else it drops what a Prometheus says of its own targets

    def add(self, name: str, labels: Labels, value: float, *, age_s: float = 5.0) -> None:
        self.series.setdefault(name, []).append((labels, value, self.now - age_s))

    def __call__(self, to: BaseHTTPRequestHandler) -> None:
        form = parse_qs(to.server.queries[-1])  # type: ignore[attr-defined]
        query = form["query"][0]
        self.queries.append(query)
        self.instants[query] = form.get("time", [""])[0]
        body = json.dumps(
            {"status": "success", "data": {"resultType": "vector", "result": self.result(query)}}
        ).encode()
        to.send_response(200)
        to.send_header("Content-Length", str(len(body)))
        to.end_headers()
        to.wfile.write(body)

    def result(self, query: str) -> list[dict]:
        if query == "vector(time())":
            return [self.row({}, self.now)]
        if query.startswith("max by (instance) (scrape_samples"):
            given = Counter(row[0].get("instance", "") for rows in self.series.values() for row in rows)
            telling = query.rpartition('=~"')[2].split('"')[0].split("|")
            have = {row[0].get("instance", "") for name in telling for row in self.series.get(name, ())}
            return [self.row({"instance": one}, given[one]) for one in have if one and self.writes_down_scrapes]
        if query.startswith("count by (__name__, instance)"):
            most = int(query.rpartition("> ")[2])
            counted = Counter((name, row[0].get("instance", "")) for name, rows in self.series.items() for row in rows)
            if 'instance!=""' in query:
                counted = Counter({key: number for key, number in counted.items() if key[1]})
            return [
                self.row({"__name__": name, "instance": instance}, number)
                for (name, instance), number in counted.items()
                if number > most and re.fullmatch(dict(MATCHER.findall(query)).get("instance", ".*"), instance)
            ]
        if query.startswith("count by (__name__)"):
            pattern = query[query.index('=~"') + 3 :].split('"')[0]
            named = {name: rows for name, rows in self.series.items() if re.fullmatch(pattern, name)}
            return [self.row({"__name__": name}, len(rows)) for name, rows in named.items()]
        is_number, query = query.startswith("count(count by"), query.removeprefix("count(")
        kept = re.match(r"\w+ by \(([^)]*)\)", query)
        keys = kept.group(1).split(", ") if kept else []
        names = (
            query[query.index('=~"') + 3 :].split('"')[0].split("|") if "__name__=~" in query else [self.name(query)]
        )
        rows = [({"__name__": name, **row[0]}, *row[1:]) for name in names for row in self.series.get(name, ())]
        wanted = {label: values for label, values in MATCHER.findall(query) if label != "__name__"}
        wanted |= dict.fromkeys(WITHOUT.findall(query), "")
        rows = [row for row in rows if all(re.fullmatch(values, row[0].get(key, "")) for key, values in wanted.items())]
        is_time, is_some = "timestamp(" in query, query.endswith("> 0")
        of_keys: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
        for labels, value, at in rows:
            if value > 0 or not is_some:
                key = tuple((key, labels[key]) for key in keys if labels.get(key))  # as no label, where it is blank
                of_keys.setdefault(key, []).append((at, value))
        if is_number:  # of those that have more than one
            number = sum(len(of) > 1 for of in of_keys.values())
            return [self.row({}, number)] if number else []
        if "group_left" in query:  # of each device the highest of those that are about as new as the newest
            apart = float(query.rpartition(" - ")[2].rstrip(")"))
            reporting_devices = {
                key: [value for at, value in of if at >= max(of)[0] - apart] for key, of in of_keys.items()
            }
            return [self.row(dict(key), max(values)) for key, values in reporting_devices.items()]
        return [self.row(dict(key), max(at if is_time else value for at, value in of)) for key, of in of_keys.items()]

    def name(self, query: str) -> str:
        return next(name for name in self.series if f"({name}{{" in query)

    def row(self, labels: Labels, value: float) -> dict:
        return {"metric": dict(labels), "value": [self.now, str(value)]}
