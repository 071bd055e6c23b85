"""The commands: each reads its arguments, asks the server, and prints the answer."""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from cli import explanations, tables
from cli.credentials import (
    MOST_TOKEN,
    TOKEN,
    Credentials,
    checked_address,
    checked_token,
    forget,
    load_credentials,
    read_token,
    store,
)
from cli.device_login import token_from_browser
from cli.durations import read_seconds
from cli.node_operations import NodeOperation, run_operation
from cli.plan_documents import apply_document, read_document, show_differences
from cli.server import Server
from cli.tables import Format, Kind
from cli.usage_report import show_report
from cli.waits import look_at_plan, wait_for

app = typer.Typer(
    name="quarterdeck", no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
    help="Shows a GPU fleet and moves driver changes through it, by the REST API of Quarterdeck.",
)  # fmt: skip
plan = typer.Typer(no_args_is_help=True, help="Draft, start, halt, resume or roll back a plan.")
finding = typer.Typer(no_args_is_help=True, help="Acknowledge or mute a finding.")
node = typer.Typer(no_args_is_help=True, help="Quarantine, drain or release nodes.")
why = typer.Typer(no_args_is_help=True, help="Explain why a pod waits, or why a plan does not move.")
for group, name in ((plan, "plan"), (finding, "finding"), (node, "node"), (why, "why")):
    app.add_typer(group, name=name)

Filters = Annotated[
    list[str] | None, typer.Option("-f", "--filter", metavar="KEY=VALUE", help="Filter of REST: severity=critical.")
]
Output = Annotated[Format, typer.Option("-o", "--output", help="Format of the answer.")]
Reason = Annotated[str, typer.Option("--reason", help="The reason, stored permanently.")]
Key = Annotated[str, typer.Option("--key", help="Your own Idempotency-Key, so that a script may repeat the command.")]
Wait = Annotated[bool, typer.Option("--wait", help="Return at the end, or when a person must act.")]
Timeout = Annotated[int, typer.Option(parser=read_seconds, metavar="DURATION", help="Longest time of --wait.")]
File = Annotated[str, typer.Argument(help="A plan as YAML or JSON. -: standard input.", metavar="FILE")]
PlanId = Annotated[int, typer.Argument(help="The number of the plan.", metavar="PLAN")]
FindingId = Annotated[int, typer.Argument(help="The number of the finding.", metavar="FINDING")]
Names = Annotated[list[str], typer.Argument(help="Names of nodes.", metavar="NODE…")]
Cluster = Annotated[str, typer.Option("--cluster", help="Name of the cluster.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
Count = Annotated[int, typer.Option("--count", help="Number of nodes, to confirm an operation on many.")]
HALF_AN_HOUR: Any = "30m"  # as the parser of the option reads it
RESOURCES = {"start": "starts", "halt": "halts", "resume": "resumptions", "rollback": "rollbacks"}


@app.command()
def login(
    server: Annotated[str, typer.Option(help="Address, as https://quarterdeck.example.com.")],
    token_file: Annotated[str, typer.Option(help="File with the token, mode 600. -: standard input.")] = "",
    ca_file: Annotated[str, typer.Option(help="Certificates of your CA, PEM.")] = "",
) -> None:
    """Sign in by your browser, or with a token of a file or of QUARTERDECK_TOKEN, and store the token."""
    server = checked_address(server)
    ca_file = str(Path(ca_file).resolve()) if ca_file else ""
    token = _token(token_file) or token_from_browser(server, ca_file)
    credentials = Credentials(server, token, ca_file)
    me = Server(credentials).get("me")
    expires_at = me["token"]["expires_at"]
    ends = f"{datetime.fromisoformat(expires_at):%Y-%m-%d %H:%M} UTC" if expires_at else "never"
    typer.echo(f"Signed in to {credentials.server} as {me['username']}. The token is in {store(credentials)}.")
    typer.echo(f"The token expires: {ends}")


@app.command()
def logout() -> None:
    """Remove the stored token from this machine. The token stays valid until it is revoked."""
    typer.echo("The stored token is removed." if forget() else "No token was stored.")


@app.command()
def get(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    number: Annotated[int | None, typer.Argument(help="The id of one object.", metavar="[ID]")] = None,
    filters: Filters = None,
    limit: Annotated[int, typer.Option(min=0, help="Rows, at most. 0: all.")] = 0,
    output: Output = Format.TABLE,
) -> None:  # fmt: skip
    """List objects, or show one."""
    server = _server()
    if number is None:
        tables.show(kind, server.rows(kind, most=limit, **dict(_pair(text) for text in filters or [])), output)
        return
    row = server.get(f"{kind}/{number}")
    tables.show(kind, [row], output) if output is Format.TABLE else tables.show_document(row, output)


@why.command("pod")
def why_pod(
    name: Annotated[str, typer.Argument(help="The pod.", metavar="NAMESPACE/NAME")],
    cluster: Annotated[str, typer.Option(help="Name of the cluster, if several have this pod.")] = "",
    output: Output = Format.TABLE,
) -> None:
    """Explain why a pod waits or does not run."""
    explanations.explain_pod(_server(), name, cluster=cluster, form=output)


@why.command("plan")
def why_plan(plan_id: PlanId, output: Output = Format.TABLE) -> None:
    """Explain why a plan waits or halted."""
    explanations.explain_plan(_server(), plan_id, form=output)


@plan.command()
def start(
    plan_id: PlanId,
    *,
    reason: Reason,
    revision: Annotated[int, typer.Option(help="The revision that you reviewed. Without it: the current one.")] = 0,
    key: Key = "",
    wait: Wait = False,
    timeout: Timeout = HALF_AN_HOUR,
) -> None:
    """Start a draft. A worker checks the cluster first; approvals follow."""
    server = _server()
    body = {"reason": reason, "expected_revision": revision or server.get(f"plans/{plan_id}")["revision"]}
    _command_plan(server, plan_id, "start", body, key=key, timeout_s=timeout if wait else None)


@plan.command()
def halt(
    plan_id: PlanId, *, reason: Reason, key: Key = "", wait: Wait = False, timeout: Timeout = HALF_AN_HOUR
) -> None:
    """Halt a plan at once. Nodes that have not begun are held again."""
    _command_plan(_server(), plan_id, "halt", {"reason": reason}, key=key, timeout_s=timeout if wait else None)


@plan.command()
def resume(
    plan_id: PlanId, *, reason: Reason, key: Key = "", wait: Wait = False, timeout: Timeout = HALF_AN_HOUR
) -> None:
    """End a pause, or continue after a halt. Every gate is evaluated again."""
    _command_plan(_server(), plan_id, "resume", {"reason": reason}, key=key, timeout_s=timeout if wait else None)


@plan.command()
def rollback(
    plan_id: PlanId, *, reason: Reason, key: Key = "", wait: Wait = False, timeout: Timeout = HALF_AN_HOUR
) -> None:
    """Restore the old version and return every changed node to it, in waves."""
    _command_plan(_server(), plan_id, "rollback", {"reason": reason}, key=key, timeout_s=timeout if wait else None)


@plan.command()
def diff(file: File, output: Output = Format.TABLE) -> None:
    """Show what a document would change of the draft. Changes nothing."""
    show_differences(_server(), read_document(file), form=output)


@plan.command()
def apply(file: File, *, yes: Yes = False, output: Output = Format.TABLE) -> None:
    """Create a draft from a document, or edit its draft. Starts nothing."""
    apply_document(_server(), read_document(file), is_confirmed=yes, form=output)


@app.command()
def report(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Workloads, most idle first.")] = 20,
    output: Output = Format.TABLE,
) -> None:
    """Show reserved and idle GPU-hours of the last 7 days by workload, with advice."""
    show_report(_server(), limit=limit, form=output)


@finding.command()
def ack(
    finding_id: FindingId,
    reason: Annotated[str, typer.Option(help="A note, stored permanently.")] = "",
    key: Key = "",
) -> None:
    """Acknowledge a finding. An unassigned finding is assigned to you."""
    _server().post(f"findings/{finding_id}/acknowledgements", {"reason": reason}, key=key or str(uuid4()))
    typer.echo(f"Finding {finding_id} is acknowledged.")


@finding.command()
def mute(
    finding_id: FindingId,
    reason: Reason,
    duration: Annotated[int, typer.Option("--for", parser=read_seconds, metavar="DURATION", help="At most 14d.")],
    key: Key = "",
    output: Output = Format.TABLE,
) -> None:
    """Mute a finding for a time, with its later occurrences."""
    until = (datetime.now(UTC) + timedelta(seconds=duration)).replace(microsecond=0).isoformat()
    body = {"finding": finding_id, "reason": reason, "until": until}
    made = _server().post("mutes", body, key=key or str(uuid4()))
    if output is not Format.TABLE:
        tables.show_document(made, output)
        return
    typer.echo(f"Finding {finding_id} is muted until {made['until']}.")


@node.command()
def quarantine(
    names: Names, *, cluster: Cluster, reason: Reason, yes: Yes = False, count: Count = 0, key: Key = "",
    wait: Wait = False, timeout: Timeout = HALF_AN_HOUR, output: Output = Format.TABLE,
) -> None:  # fmt: skip
    """Cordon nodes, so that no new pods are scheduled on them."""
    asked = NodeOperation("quarantine", cluster, names, reason, count=count)
    run_operation(_server(), asked, is_confirmed=yes, key=key, timeout_s=timeout if wait else None, form=output)


@node.command()
def drain(
    names: Names, *, cluster: Cluster, reason: Reason, yes: Yes = False, count: Count = 0, key: Key = "",
    unmanaged: Annotated[bool, typer.Option("--unmanaged", help="Evict pods without a controller.")] = False,
    empty_dir: Annotated[bool, typer.Option("--empty-dir", help="Lose the data of emptyDir volumes.")] = False,
    wait: Wait = False, timeout: Timeout = HALF_AN_HOUR, output: Output = Format.TABLE,
) -> None:  # fmt: skip
    """Cordon nodes and evict their pods, within the budgets."""
    options = {"unmanaged": unmanaged, "empty_dir": empty_dir}
    asked = NodeOperation("drain", cluster, names, reason, count=count, options=options)
    run_operation(_server(), asked, is_confirmed=yes, key=key, timeout_s=timeout if wait else None, form=output)


@node.command()
def release(
    names: Names, *, cluster: Cluster, reason: Reason, yes: Yes = False, count: Count = 0, key: Key = "",
    wait: Wait = False, timeout: Timeout = HALF_AN_HOUR, output: Output = Format.TABLE,
) -> None:  # fmt: skip
    """Uncordon nodes that Quarterdeck cordoned."""
    asked = NodeOperation("release", cluster, names, reason, count=count)
    run_operation(_server(), asked, is_confirmed=yes, key=key, timeout_s=timeout if wait else None, form=output)


def _command_plan(
    server: Server, plan_id: int, verb: str, body: dict[str, Any], *, key: str, timeout_s: int | None
) -> None:
    answer = server.post(f"plans/{plan_id}/{RESOURCES[verb]}", body, key=key or str(uuid4()))
    typer.echo(answer["detail"] if answer else f"Plan {plan_id}: {verb} is recorded.")
    if timeout_s is not None:
        wait_for(lambda: look_at_plan(server, plan_id, verb=verb), timeout_s=timeout_s)


def _server() -> Server:
    return Server(load_credentials())


def _token(file: str) -> str:
    """Returns the token of a file or variable. Blank: neither is given. It is never an argument, since other users see
    arguments."""
    if file == "-":
        return checked_token(sys.stdin.read(MOST_TOKEN * 2).strip(), source="Standard input")
    if file:
        return read_token(Path(file))
    token = os.environ.get(TOKEN, "").strip()
    return checked_token(token, source=TOKEN) if token else ""


def _pair(text: str) -> tuple[str, str]:
    name, is_there, value = text.partition("=")
    if not is_there:
        raise typer.BadParameter(f"{text} is not a filter. Write KEY=VALUE, as severity=critical.")
    return name, value
