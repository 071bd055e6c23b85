"""Who repairs nodes in schedules with cases: NVSentinel's janitor, Metal3, and a program that gets signed requests.

Each reboots a node that it was asked for. The program may be deaf: it has the request, and its answer is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import httpx

from benchmarks.crashing.line import Line
from benchmarks.crashing.seams import Fault
from health.telemetry.prometheus.answers import AnswerLost, Unusable
from health.telemetry.prometheus.client import PostAnswer
from maintenance.actors.metal3_reboot import Metal3Reboot
from simulator.actors.objects import annotations, name, spec, status
from simulator.actors.repairers import BARE_METAL_HOST, METAL3, REBOOT_NODE, janitor_definitions, metal3_definitions
from simulator.clock import stamp
from simulator.kinds import DEFINITION, NAMESPACE

HOSTS = "metal3"  # namespace of its hosts, which are named as their nodes
HOSTS_PATH = f"/apis/{METAL3}/v1alpha1/namespaces/{HOSTS}/baremetalhosts"
ADDRESS = "https://repairs.example.com/requests"
SECRET_PLACE = "env:QUARTERDECK_REPAIR_BENCH"  # noqa: S105
SECRETS = {  # of the cluster of the bench
    "QUARTERDECK_REPAIR_BENCH": "whsec_" + "c2VjcmV0" * 5,
    "QUARTERDECK_REPAIR_BENCH_CLUSTERS": "north",
}


class Answers(StrEnum):
    """What the program with signed requests does with one."""

    TAKES = "takes"
    IS_LOST = "is lost"  # it has the request, and nobody is told
    FAILS = "fails"  # 500: nobody knows
    REFUSES = "refuses"  # 400
    IS_AWAY = "is away"  # it never heard of it


CODES: Mapping[Answers, int] = {Answers.TAKES: 200, Answers.FAILS: 500, Answers.REFUSES: 400}


def provider_id(node: str) -> str:
    return f"metal3://{HOSTS}/{node}/machine-{node}"


@dataclass
class CaseActors:
    line: Line
    boot: Callable[[str], None]  # a node, by its name
    answers: Answers = Answers.TAKES

    def plant(self, nodes: list[str]) -> None:
        store = self.line.store
        for definition in (*janitor_definitions(), *metal3_definitions()):
            store.create(DEFINITION, definition)
        store.create(NAMESPACE, {"metadata": {"name": HOSTS}})
        for node in nodes:
            store.create(BARE_METAL_HOST, {"metadata": {"name": node}}, HOSTS)

    def step(self) -> None:
        for asked in self.line.store.list(REBOOT_NODE)[0]:
            if not status(asked).get("completionTime"):
                self._reboot_for(asked)
        for host in self.line.store.list(BARE_METAL_HOST, HOSTS)[0]:
            if Metal3Reboot.annotation in annotations(host):
                self.boot(name(host))
                body = {"metadata": {"annotations": {Metal3Reboot.annotation: None}}}
                self.line.notify("metal3", "PATCH", f"{HOSTS_PATH}/{name(host)}", body)

    def _reboot_for(self, asked: dict[str, Any]) -> None:
        at = stamp(self.line.clock())
        said = {"SignalSent": "req-1", "NodeReady": ""}
        conditions = [
            {"type": key, "status": "True", "reason": "Succeeded", "message": says, "lastTransitionTime": at}
            for key, says in said.items()
        ]
        self.boot(spec(asked)["nodeName"])
        body = {"status": {"conditions": conditions, "completionTime": at}}
        self.line.store.patch(REBOOT_NODE, name(asked), body, how="merge", subresource="status")

    def post_to(self, url: str, body: bytes, headers: Mapping[str, str], **_: object) -> PostAnswer:
        """In the place of `health.sources.posts.post_to`. Raises as that does."""
        seams, task = self.line.seams, json.loads(body)["data"]
        seams.pass_one(is_over=False)
        fault = seams.next_fault("POST", url, body)
        answers, self.answers = self.answers, Answers.TAKES  # only one request goes wrong
        if fault is Fault.RESET_BEFORE:
            answers = Answers.IS_AWAY
        elif fault in {Fault.RESET_AFTER, Fault.TIMEOUT_AFTER, Fault.LATE}:
            answers = Answers.IS_LOST
        elif fault is not None:
            answers = Answers.FAILS
        if answers is not Answers.IS_AWAY:
            self.line.note_post(url, task, code=400 if answers is Answers.REFUSES else 200)
        seams.pass_one(is_over=True)
        if answers is Answers.IS_AWAY:
            raise Unusable("Connection refused.")
        if answers is Answers.IS_LOST:
            raise AnswerLost("The connection ended before the answer.")
        return PostAnswer(CODES[answers], httpx.Headers(), "")
