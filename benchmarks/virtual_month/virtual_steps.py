"""The steps of operations in virtual time: they change rows at once or after a while, and ask no API server.

All else of an operation is the product's: its rounds, the ledger, the vetoes before a release, and its results.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any
from unittest import mock

from fleet.models import Node
from operations import operation_round
from operations.models import NodeTestJob, Quarantine
from operations.steps.base import NodeWork, StepResult, done_result, failed, wait
from operations.steps.cordon import CordonStep
from operations.steps.drain import DEADLINE, DrainStep
from operations.steps.test_job import TestJobStep
from operations.steps.uncordon import UncordonStep

BLOCKED_RATIO = 0.05  # of drains: a budget allows nothing until the deadline
DRAIN_S, TEST_S = (60, 1500), (300, 1200)


class VirtualSteps:
    """`is_sick` tells whether the fault of a node is still there: its test fails."""

    def __init__(self, dice: random.Random, is_sick: Callable[[str], bool]) -> None:
        self.dice, self.is_sick = dice, is_sick

    def cordon(self, _step: CordonStep, work: NodeWork) -> StepResult:
        work.guard()
        Quarantine.objects.of_nodes([work.node.node_uid]).filter(placed_at=None).update(placed_at=work.clock())
        Node.objects.filter(uid=work.node.node_uid).update(is_unschedulable=True)
        return done_result("Cordoned.")

    def uncordon(self, _step: UncordonStep, work: NodeWork) -> StepResult:
        work.guard()
        for row in Quarantine.objects.of_nodes([work.node.node_uid]).select_related("operation"):
            row.end(now=work.clock())
        Node.objects.filter(uid=work.node.node_uid).update(is_unschedulable=False)
        return done_result("Uncordoned.")

    def drain(self, _step: DrainStep, work: NodeWork) -> StepResult:
        takes = work.node.progress.get("takes_s") or self._drain_takes_s()
        if self._left(work, takes) > timedelta(0):
            return wait("Pods are left.", again_after=self._left(work, takes), takes_s=takes)
        return failed("Drain blocked.") if takes > DEADLINE.total_seconds() else done_result("Drained.")

    def test(self, _step: TestJobStep, work: NodeWork) -> StepResult:
        takes = work.node.progress.get("takes_s") or self.dice.randint(*TEST_S)
        if self._left(work, takes) > timedelta(0):
            return wait("The test runs.", again_after=self._left(work, takes), takes_s=takes)
        outcome = "failed" if self.is_sick(work.node.node_uid) else "passed"
        node, now, options = work.node, work.clock(), work.operation.options
        NodeTestJob.objects.create(
            operation=work.operation, node_uid=node.node_uid, node_name=node.node_name, outcome=outcome,
            test=options["test"], command=options["command"], namespace="gpu-operator", image="x",
            resource="nvidia.com/gpu", amount=8, deadline_s=3600, says="It ended.",
            intended_at=now - timedelta(seconds=takes), told_at=now, gone_at=now,
        )  # fmt: skip
        return done_result("Passed.") if outcome == "passed" else failed("Failed.")

    def _drain_takes_s(self) -> int:
        is_blocked = self.dice.random() < BLOCKED_RATIO
        return int(DEADLINE.total_seconds()) + 1 if is_blocked else self.dice.randint(*DRAIN_S)

    def _left(self, work: NodeWork, takes_s: int) -> timedelta:
        return (work.node.step_since or work.clock()) + timedelta(seconds=takes_s) - work.clock()

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Runs operations on them, and without a cluster."""
        nothing: Callable[..., Any] = lambda *_, **__: ""  # noqa: E731
        instead = {CordonStep: self.cordon, UncordonStep: self.uncordon, DrainStep: self.drain, TestJobStep: self.test}
        with ExitStack() as stack:
            for step, run in instead.items():
                stack.enter_context(mock.patch.object(step, "run", lambda its, work, run=run: run(its, work)))
            for name in ("take_writer_lease", "stopped_by_switch"):
                stack.enter_context(mock.patch.object(operation_round, name, nothing))
            stack.enter_context(mock.patch.object(operation_round.client, "connect", mock.MagicMock()))
            yield
