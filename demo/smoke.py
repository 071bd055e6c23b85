"""`bin/demo --smoke`: one promotion to its end and one into its halt, seen from outside only, with what was measured.

Figures are JSON lines on stdout. What is not as it should be ends it with a sentence on stderr and a status of 1.
"""

import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection

from demo.cluster import Cluster
from demo.parts import BREAKS_WORKLOADS, FAULTY, KERNEL, NEWER, Fleet
from demo.promotion import GATES, Promotion
from demo.request_log import RequestLog, at, node_of
from demo.settings import ROOT
from demo.stack import CLUSTER, PASSWORD, Stack, StackError
from demo.visitor import RefusedError, TooSlowError, Visitor, wait_until

SPEED = 60.0  # cluster seconds per second: a node's upgrade takes two or three of ours
FEWEST_NODES = 16
CANARIES = 2
ANSWERS_AT_ONCE = {"compatibility"}  # what the matrix knows it knows before anything moves
SAMPLES = 5  # changes that are timed, each alone
QUIET_S = 3.0  # after a halt: long enough for a release that should not come


class WrongError(Exception):
    """Something is not as it should be; the sentence says what was expected and what was found."""


@dataclass(frozen=True)
class Figure:
    """One thing measured, and the most it may be; None where any value is as good."""

    name: str
    value: float
    unit: str
    target: float | None = None

    @property
    def is_ok(self) -> bool:
        return self.target is None or self.value <= self.target

    def show(self) -> None:
        told = {"name": self.name, "value": self.value, "unit": self.unit, "target": self.target, "ok": self.is_ok}
        print(json.dumps({"bench": "smoke", **told}), flush=True)


def smoke(*, nodes: int) -> int:
    """Return 0 when everything was as it should be; else what every process said is kept."""
    began = time.monotonic()
    parent = ROOT / ".data"
    parent.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="smoke-", dir=parent))
    try:
        with Stack(folder, Fleet(nodes=nodes, speed=SPEED, faults=(BREAKS_WORKLOADS,)), say=tell) as stack:
            figures = drive(stack)
    except (StackError, RefusedError, TooSlowError, WrongError, httpx.HTTPError) as error:
        tell(f"FAILED after {time.monotonic() - began:.0f} s: {error}")
        tell(f"the logs are in {folder / 'logs'}")
        return 1
    shutil.rmtree(folder)
    tell(f"all in {time.monotonic() - began:.0f} s")
    return 0 if all(figure.is_ok for figure in figures) else 1


def tell(what: str) -> None:
    """Say on stderr how far it is; stdout has figures only."""
    print(f"smoke: {what}", file=sys.stderr, flush=True)


def drive(stack: Stack) -> list[Figure]:
    """Do all of it with two people, and print each figure as soon as it is known."""
    figures: list[Figure] = []

    def measured(*found: Figure) -> None:
        for figure in found:
            figure.show()
            figures.append(figure)

    with (
        Visitor(stack.url, "operator").sign_in(PASSWORD) as operator,
        Visitor(stack.url, "approver").sign_in(PASSWORD) as approver,
        Cluster(stack.kubeconfig, stack.fleet.context) as cluster,
    ):
        objects = wait_until(lambda: settled(operator), what="a settled picture of the fleet", timeout_s=30.0)
        measured(time_to_live(operator, cluster))
        good = Promotion(operator, approver, driver_object=objects["a100"], to_version=NEWER)
        measured(*promote(good, cluster, RequestLog(stack.simulator_url)))
        bad = Promotion(operator, approver, driver_object=objects["h100"], to_version=FAULTY)
        measured(break_and_put_back(bad, cluster, RequestLog(stack.simulator_url)))
    return figures


def settled(visitor: Visitor) -> dict[str, int]:
    """Return the driver objects by name once every node of the cluster is seen Ready; empty before."""
    seen = [cluster for cluster in visitor.all("/api/v1/clusters") if cluster["name"] == CLUSTER]
    if not seen or not seen[0]["counts"]["nodes"] or seen[0]["counts"]["ready"] != seen[0]["counts"]["gpu_nodes"]:
        return {}
    found = {one["name"]: one["id"] for one in visitor.all("/api/v1/driver-objects") if one["kind"] == "NVIDIADriver"}
    return found if {"a100", "h100"} <= found.keys() else {}


def time_to_live(visitor: Visitor, cluster: Cluster) -> Figure:
    """From just before a node is changed in the API server to the message that names it in the socket."""
    name = "cpu-001"
    node = next(row["id"] for row in visitor.all("/api/v1/nodes") if row["name"] == name)
    took = []
    with visitor.listening("/live/?topics=fleet") as socket:
        socket.recv(timeout=10)  # the greeting
        for number in range(SAMPLES):
            forget_what_waits(socket)
            asked = time.monotonic()
            cluster.patch_node(name, {"spec": {"unschedulable": number % 2 == 0 or None}})
            hear_of(socket.recv, node)
            took.append((time.monotonic() - asked) * 1000)
            time.sleep(1)  # each change alone, as a person makes it
    cluster.patch_node(name, {"spec": {"unschedulable": None}})
    return Figure("time_to_live_ms", round(statistics.median(took), 1), "ms", target=1000)


def forget_what_waits(socket: ClientConnection) -> None:
    """Read what has come already: it is about earlier changes."""
    with suppress(TimeoutError):
        while True:
            socket.recv(timeout=0)


def hear_of(receive: Callable[..., Any], node: int) -> None:
    """Return when a message names the node."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        message = json.loads(receive(timeout=10))
        if message["type"] == "cluster.changed" and node in [pair[0] for pair in message["nodes"]]:
            return
    raise WrongError("A node was changed, and no message in the socket named it in 10 s.")


def promote(plan: Promotion, cluster: Cluster, log: RequestLog) -> list[Figure]:
    """Take one SKU to the newer driver, with a person's halt and resumption on the way."""
    plan.draft(canaries=CANARIES, at_once=2)
    plan.start()
    tell(f"plan {plan.id} to {plan.to_version} has started")
    plan.drive_until(lambda shown: others_have_begun(shown), what="a release in the second stage")
    halted = halt(plan, log)
    plan.tell("resumptions", "The halt was only to measure it.")
    plan.drive_until(lambda shown: running_well(shown) and shown["state"] == "promoted", what="the promotion's end")
    silent = GATES.keys() - ANSWERS_AT_ONCE - plan.gates_that_waited()
    if silent:
        raise WrongError(f"These gates never answered WAIT: {', '.join(sorted(silent))}.")
    promoted = sorted(name for name, version in cluster.loaded_versions("a100").items() if version == NEWER)
    targets = sorted(target["node"] for stage in plan.stages() for target in stage["targets"])
    expect(promoted == targets, f"{NEWER} runs on {promoted}; the plan was for {targets}")
    expect(not cluster.held_nodes(), f"still held after the promotion: {cluster.held_nodes()}")
    return [Figure("promoted_nodes", len(promoted), "nodes"), halted]


def others_have_begun(shown: dict[str, Any]) -> bool:
    """Say whether the stage after the canary has released something and has something left to release."""
    running_well(shown)
    others = next(stage for stage in shown["stages"] if stage["kind"] == "pool")["targets_by_state"]
    kept = others.get("held", 0) + others.get("not-held", 0)  # the second: its label is not on yet
    return others.get("held", 0) > 0 and sum(others.values()) > kept


def running_well(shown: dict[str, Any]) -> bool:
    """Raise when a plan that should go through was stopped."""
    if shown["state"] not in {"holding", "promoting", "promoted"}:
        answers = [said for stage in shown["stages"] for said in stage["answers"] if said["answer"] == "fail"]
        why = "; ".join(f"{said['gate']}: {said['title']}" for said in answers) or shown["reason"]
        raise WrongError(f"The plan is {shown['state']}: {why}")
    return True


def halt(plan: Promotion, log: RequestLog) -> Figure:
    """Stop it in the middle of a stage. From the halt's 204 on the API server may see no release."""
    plan.tell("halts", "To see how fast it stops.")
    answered = datetime.now(UTC)
    time.sleep(QUIET_S)
    releases = log.releases()
    expect(bool(releases), "the API server saw no release before the halt")
    after_ms = max((at(release) - answered).total_seconds() * 1000 for release in releases)
    return Figure("halt_ms", round(max(after_ms, 0.0), 1), "ms", target=1000)


def break_and_put_back(plan: Promotion, cluster: Cluster, log: RequestLog) -> Figure:
    """Try a driver under which tenants' pods crash on one kernel: it must halt in the canary and be put back."""
    before = cluster.loaded_versions("h100")
    plan.draft(canaries=CANARIES, at_once=2)
    plan.start()
    tell(f"plan {plan.id} to {plan.to_version}, which fails on {KERNEL}, has started")
    shown = plan.drive_until(lambda shown: shown["state"] in {"halted", "promoted"}, what="the halt by a gate")
    expect(shown["state"] == "halted", f"a driver that breaks {KERNEL} was promoted")
    tell(f"halted: {shown['reason']}")
    canary, others = plan.stages()
    expect(canary["state"] == "halted", f"it did not halt in the canary, which is {canary['state']}")
    expect({target["state"] for target in others["targets"]} == {"held"}, "a node after the canary was let go")
    disrupted = {node_of(release) for release in log.releases()}
    plan.tell("rollbacks", "Its workloads crash.")
    plan.drive_until(lambda shown: shown["state"] == "rolled-back", what="the rollback's end")
    after, wanted = cluster.loaded_versions("h100"), cluster.wanted_version("h100")
    expect(after == before, f"after the rollback the nodes run {after}")
    expect({wanted} == set(before.values()), f"the NVIDIADriver asks for {wanted} after the rollback")
    expect(not cluster.held_nodes(), f"still held after the rollback: {cluster.held_nodes()}")
    return Figure("nodes_disrupted_by_bad_driver", len(disrupted), "nodes", target=CANARIES)


def expect(is_so: bool, otherwise: str) -> None:  # noqa: FBT001
    """Raise with what was found instead."""
    if not is_so:
        raise WrongError(f"{otherwise[0].upper()}{otherwise[1:]}.")
