"""Operations on nodes: the impact first, then the confirmation, then the command."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import typer

from cli import tables
from cli.failures import ExitCode, Failure
from cli.rest_types import NodeRow, Operation
from cli.server import Server
from cli.tables import Format, Kind, plain
from cli.waits import look_at_operation, wait_for

NAMED = {
    "vetoes": "Barred", "approvals": "Needs the approval of another person", "losses": "Cannot be undone",
    "jobs": "Jobs that end", "services": "Services", "unmanaged": "Pods without a controller",
    "empty_dir": "Pods that lose emptyDir data", "budgets": "Budgets that allow no eviction now",
    "pending": "Evicted pods that find no room", "products": "GPUs by product", "pools": "Pools",
    "domains": "Failure domains", "waits": "Nodes wait", "warnings": "Warnings",
}  # fmt: skip


@dataclass(frozen=True)
class NodeOperation:
    kind: str
    cluster: str
    names: Sequence[str]
    reason: str
    count: int = 0  # that the person typed; 0: none
    options: Mapping[str, Any] = field(default_factory=dict)


def run_operation(
    server: Server, asked: NodeOperation, *, is_confirmed: bool, key: str, timeout_s: int | None, form: Format
) -> None:
    """Starts the operation after its impact was shown and confirmed. `timeout_s` None: does not wait for its end.

    The server refuses an impact other than the shown one. With pods to evict this is not compared: their cost grows.

    :raises Failure: when a node is unknown, nobody confirms, or the server refuses
    """
    target = _target_of(server, asked)
    impact = server.post("operations/previews", target)
    _show_impact(impact)
    if impact["needs_typed_count"] and asked.count != (number := len(target["nodes"])):
        raise Failure(f"Nothing was changed. To confirm so many nodes, add --count {number}.", ExitCode.USAGE)
    _confirm(asked, is_confirmed=is_confirmed)
    body = {**target, "reason": asked.reason, **asked.options}
    if asked.count:
        body["typed_count"] = asked.count
    if not impact["gpu_pods"]:
        body["seen"] = impact["sentence"]
    operation: Operation = server.post("operations", body, key=key or str(uuid4()))
    if form is Format.TABLE:
        typer.echo(f"Operation {operation['id']} is {operation['state']}: {asked.kind} of {len(target['nodes'])}.")
    if timeout_s is not None:
        wait_for(lambda: look_at_operation(server, operation["id"]), timeout_s=timeout_s)
    if form is not Format.TABLE:
        tables.show_document(server.get(f"{Kind.OPERATIONS}/{operation['id']}"), form)


def _target_of(server: Server, asked: NodeOperation) -> dict[str, Any]:
    """Returns cluster, kind and UIDs. Costs a request for each name."""
    nodes: list[NodeRow] = []
    for name in dict.fromkeys(asked.names):
        rows: list[NodeRow] = server.rows(Kind.NODES, cluster=asked.cluster, name=name)  # finds parts of names, too
        exact = [row for row in rows if row["name"] == name]
        if not exact:
            raise Failure(
                f"{asked.cluster} has no node {name}. List them: quarterdeck get nodes -f cluster={asked.cluster}"
            )
        nodes += exact
    return {"cluster": nodes[0]["cluster"]["id"], "kind": asked.kind, "nodes": [node["uid"] for node in nodes]}


def _show_impact(impact: Mapping[str, Any]) -> None:
    """Prints the impact on stderr, so that stdout has only the answer."""
    typer.echo(plain(impact["sentence"]), err=True)
    for name, label in NAMED.items():
        if impact.get(name):  # an older server does not have every list
            typer.echo(f"  {label}: {plain(', '.join(impact[name]))}", err=True)


def _confirm(asked: NodeOperation, *, is_confirmed: bool) -> None:
    if is_confirmed:
        return
    if not sys.stdin.isatty():
        raise Failure("Nothing was changed. To confirm this impact, add --yes.", ExitCode.USAGE)
    typer.confirm(f"{asked.kind.capitalize()} {len(asked.names)} nodes of {asked.cluster}?", abort=True, err=True)
