"""The end of a plan or an operation, for --wait."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import typer

from cli.failures import ExitCode, Failure
from cli.rest_types import Answer, NewestLiveCheck, Operation, OperationNode, Plan
from cli.server import Server
from cli.tables import plain

POLL_S = 2.0
FINAL = {"promoted", "rolled-back", "aborted", "discarded"}


@dataclass(frozen=True)
class Look:
    """One state on the way."""

    sentence: str
    is_end: bool
    is_good: bool = True


def wait_for(look: Callable[[], Look], *, timeout_s: int) -> None:
    """Prints each new state on stderr until the end.

    :raises Failure: when the end is not the wanted one, or the time is up
    """
    until, last = time.monotonic() + timeout_s, ""
    while True:
        now = look()
        if now.is_end and not now.is_good:
            raise Failure(plain(now.sentence), ExitCode.UNFINISHED)
        if now.sentence != last:
            typer.echo(plain(now.sentence), err=True)
            last = now.sentence
        if now.is_end:
            return
        if time.monotonic() >= until:
            raise Failure(f"--timeout passed. {now.sentence} It continues in the background.", ExitCode.TIMEOUT)
        time.sleep(POLL_S)


def look_at_plan(server: Server, plan_id: int, *, verb: str) -> Look:
    """Returns where the plan is on the way to the end of the verb."""
    plan: Plan = server.get(f"plans/{plan_id}")
    state, why = plan["state"], plan["why"]
    sentence = f"Plan {plan_id} is {state}{f': {why}' if why else '.'}"
    if verb == "halt":
        return Look(sentence, is_end=state == "halted" or state in FINAL, is_good=state == "halted")
    if state in FINAL:
        return Look(sentence, is_end=True, is_good=state == ("rolled-back" if verb == "rollback" else "promoted"))
    if state == "draft":
        newest: NewestLiveCheck = server.get(f"plans/{plan_id}/live-checks")
        check = newest["live_check"]
        refusal = check["outcome"] if check and check["is_start"] else ""  # blank: a worker still asks the cluster
        return Look(refusal or sentence, is_end=bool(refusal), is_good=False)
    needs_person = state == "halted" or plan["pause"] is not None or _waits_for_approval(plan)
    return Look(sentence, is_end=needs_person, is_good=False)


def look_at_operation(server: Server, operation_id: int) -> Look:
    """Returns where the operation is, with the number of nodes by state."""
    operation: Operation = server.get(f"operations/{operation_id}")
    nodes: list[OperationNode] = server.rows(f"operations/{operation_id}/nodes")
    counts = {state: sum(node["state"] == state for node in nodes) for state in sorted({n["state"] for n in nodes})}
    numbers = ", ".join(f"{state}: {number}" for state, number in counts.items())
    waits = operation["waiting_for"]
    sentence = (
        f"Operation {operation_id} is {operation['state']}. Nodes by state: {numbers}.{f' {waits}' if waits else ''}"
    )
    is_good = operation["state"] == "finished" and set(counts) <= {"done"}
    return Look(sentence, is_end=operation["state"] in {"finished", "cancelled", "paused"}, is_good=is_good)


def _waits_for_approval(plan: Plan) -> bool:
    current = next((stage for stage in plan["stages"] if stage["id"] == plan["current_stage"]), None)
    answers: list[Answer] = current["answers"] if current and current["state"] == "opening" else []
    return any(answer["gate"] == "approval" and answer["answer"] == "wait" for answer in answers)
