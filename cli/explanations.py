"""Explanations as text: the reason why a pod waits, and the reason why a plan does not move."""

from collections.abc import Iterator
from typing import Any

import typer

from cli.failures import ExitCode, Failure
from cli.rest_types import Plan, PodAnswer, PodRow, WhyPending
from cli.server import Server
from cli.tables import Format, Kind, plain, show_document


def explain_pod(server: Server, name: str, *, cluster: str, form: Format) -> None:
    """Prints why the pod waits or does not run.

    :raises Failure: when no pod or several pods have the name
    """
    pod = _pod_named(server, name, cluster=cluster)
    answer: PodAnswer = server.get(f"{Kind.PODS}/{pod['id']}/why-pending")
    why = answer["why_pending"]
    if form is Format.TABLE:
        _print(
            [f"{pod['namespace']}/{pod['name']} in {pod['cluster']['name']}: {pod['state']}", *_lines_of_pod(pod, why)]
        )
    else:
        show_document({"pod": pod, "why_pending": why}, form)


def explain_plan(server: Server, plan_id: int, *, form: Format) -> None:
    """Prints what the plan waits for or what halted it."""
    plan: Plan = server.get(f"{Kind.PLANS}/{plan_id}")
    if form is Format.TABLE:
        _print([f"Plan {plan_id}, {plan['title']}: {plan['state']} since {plan['state_since']}", *_lines_of_plan(plan)])
    else:
        show_document(plan, form)


def _pod_named(server: Server, name: str, *, cluster: str) -> PodRow:
    namespace, has_both, pod_name = name.partition("/")
    if not has_both:
        raise Failure(f"Write NAMESPACE/NAME instead of {name}.", ExitCode.USAGE)
    where: dict[str, Any] = {"cluster": cluster} if cluster else {}
    rows: list[PodRow] = server.rows(Kind.PODS, namespace=namespace, name=pod_name, **where)  # finds parts, too
    exact = [row for row in rows if row["name"] == pod_name]
    if not exact:
        raise Failure(f"No pod {name}. List them: quarterdeck get pods -f namespace={namespace}")
    if len(exact) > 1:
        clusters = ", ".join(row["cluster"]["name"] for row in exact)
        raise Failure(f"Several clusters have this pod. Add --cluster with one of: {clusters}", ExitCode.USAGE)
    return exact[0]


def _lines_of_pod(pod: PodRow, why: WhyPending | None) -> Iterator[str]:
    if why is None:
        reason = pod["reason"]
        yield reason["sentence"] if reason else "Nothing reports a reason."
        return
    yield f"{why['title']}. {why['summary']}"
    yield from (f"  {step['title']}: {step['left']} nodes left" for step in why["funnel"])
    yield from (f"Change ({change['actor']}): {change['text']}" for change in why["changes"])
    if why["scheduler_message"]:
        yield f"Scheduler at {why['scheduler_at']}: {why['scheduler_message']}"
    yield from (f"Not checked: {item}" for item in why["not_checked"])
    yield f"Nodes as of {why['nodes_seen_at'] or 'unknown'}"


def _lines_of_plan(plan: Plan) -> Iterator[str]:
    yield plan["why"]
    yield from plan["besides"]
    if halt := plan["halted_by"]:
        yield f"Halted by {halt['gate_title']} in {halt['stage']} at {halt['at']}: {halt['title']}. {halt['summary']}"
        yield from (f"  Recommended: {step}" for step in halt["steps"])
    for stage in plan["stages"]:
        if stage["id"] == plan["current_stage"]:
            counts = ", ".join(f"{state}: {number}" for state, number in stage["targets_by_state"].items())
            yield f"Stage {stage['name']} is {stage['state']}. Nodes by state: {counts}."
            titles = {answer["gate"]: answer["gate_title"] for answer in stage["answers"]}
            fails = [answer for answer in stage["answers"] if answer["answer"] == "fail"]
            yield from (f"  {answer['gate_title']} (fail): {answer['title']}" for answer in fails)
            for wait in stage.get("waits", ()):
                yield f"  {', '.join(titles[gate] for gate in wait['gates'])} (wait): {wait['title']}"
    yield f"As of {plan['looked_at'] or 'unknown: no worker has evaluated it yet'}"


def _print(lines: list[str]) -> None:
    for line in lines:
        typer.echo(plain(line))
