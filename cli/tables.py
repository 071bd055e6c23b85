"""The lists of `get`: the columns of each kind, and a table, JSON or YAML of its rows."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import typer
import yaml

from cli.rest_types import Gpu, NodeRow

Row = Mapping[str, Any]
Column = str | Callable[[Any], str | None]  # a field, "field.part", or a function of the row
FRACTION = re.compile(r"(?<=T[0-9]{2}:[0-9]{2}:[0-9]{2})\.[0-9]+Z$")  # of a second; JSON and YAML have it
LONGEST_CELL = 100  # characters, in tables only


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class Kind(StrEnum):
    """The kinds of `get`. Each is a resource of REST."""

    NODES = "nodes"
    GPUS = "gpus"
    FINDINGS = "findings"
    PLANS = "plans"
    PODS = "pods"
    CASES = "cases"
    OPERATIONS = "operations"
    EVENTS = "events"


def _gpus_of(node: NodeRow) -> str:
    parts = [_cell(number) for number in (node["gpu_allocated"], node["gpu_allocatable"], node["gpu_capacity"])]
    return "/".join(parts) if node["is_gpu_node"] else ""


def _driver_of(node: NodeRow) -> str | None:
    return node["driver_version"] if node["is_gpu_node"] else ""


def _pods_of(gpu: Gpu) -> str | None:
    if gpu["allocations"] is None:
        return None
    pods = [item["pod"] for item in gpu["allocations"] if item["is_current"]]
    return ", ".join(f"{pod['namespace']}/{pod['name']}" for pod in pods)


COLUMNS: Mapping[Kind, Mapping[str, Column]] = {
    Kind.NODES: {
        "NAME": "name", "CLUSTER": "cluster.name", "STATE": "state", "USED/USABLE/GPUS": _gpus_of,
        "PRODUCT": "gpu_product", "DRIVER": _driver_of, "FINDINGS": "unresolved", "HELD BY": "held_by",
    },
    Kind.GPUS: {
        "NODE": "node.name", "GPU": "index", "CLUSTER": "cluster.name", "PRODUCT": "product", "UUID": "uuid",
        "PODS": _pods_of,
    },
    Kind.FINDINGS: {
        "ID": "id", "SEVERITY": "severity", "STATE": "state", "CLUSTER": "cluster.name", "NODE": "node.name",
        "SINCE": "since", "TITLE": "title",
    },
    Kind.PLANS: {
        "ID": "id", "CLUSTER": "cluster.name", "OBJECT": "object_name", "FROM": "from_version", "TO": "to_version",
        "STATE": "state", "SINCE": "state_since", "TITLE": "title",
    },
    Kind.PODS: {
        "ID": "id", "NAMESPACE": "namespace", "NAME": "name", "CLUSTER": "cluster.name", "STATE": "state",
        "NODE": "node.name", "GPUS": "gpus", "REASON": "reason.title",
    },
    Kind.CASES: {
        "ID": "id", "CLUSTER": "cluster.name", "NODE": "node_name", "STATE": "state", "SINCE": "state_since",
        "REASON": "reason",
    },
    Kind.OPERATIONS: {
        "ID": "id", "CLUSTER": "cluster.name", "KIND": "kind", "STATE": "state", "SINCE": "state_since",
        "ASKED BY": "asked_by", "REASON": "reason",
    },
    Kind.EVENTS: {
        "AT": "at", "CLUSTER": "cluster.name", "SEVERITY": "severity", "KIND": "kind", "OBJECT": "object",
        "NODE": "node", "BY": "actor", "EVENT": "sentence",
    },
}  # fmt: skip


def show(kind: Kind, rows: Sequence[Row], form: Format) -> None:
    """Prints the rows. A table names on stderr each cluster whose rows are not live."""
    if form is not Format.TABLE:
        show_document(rows, form)
        return
    columns = COLUMNS[kind]
    typer.echo(table(list(columns), [[_cell(_value(row, column)) for column in columns.values()] for row in rows]))
    stale = {row["cluster"]["name"]: row["seen_at"] for row in rows if row.get("freshness", "live") != "live"}
    for cluster, seen_at in stale.items():
        typer.echo(f"Not live: {cluster} was last seen at {_cell(seen_at)}.", err=True)


def show_document(content: Any, form: Format) -> None:
    """Prints an answer of the server as JSON or YAML, unchanged."""
    is_json = form is Format.JSON
    typer.echo(json.dumps(content, indent=2) if is_json else yaml.safe_dump(content, sort_keys=False).rstrip())


def table(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Returns the rows in aligned columns, without trailing spaces."""
    lines = [headings, *cells]
    widths = [max(len(line[number]) for line in lines) for number in range(len(headings))]
    aligned = ("   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in aligned)


def plain(text: str) -> str:
    """Returns the text in one line, without control characters: pods of others must not write to the terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


def _value(row: Row, column: Column) -> Any:
    if callable(column):
        return column(row)
    value: Any = row
    for part in column.split("."):
        if value is None:
            return ""  # the row has no such object, as a pod without a node
        value = value[part]
    return value


def _cell(value: Any) -> str:
    if value is None:
        return "unknown"
    text = FRACTION.sub("Z", plain(str(value)))
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
