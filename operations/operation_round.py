"""One round of an operation: run the steps of its running nodes, then start the next ones. Safe to stop anywhere.

Each step has its intent in a row before its first write, and is repeated until it was read back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from datetime import datetime, timedelta
from functools import partial

import structlog
from django.db import IntegrityError, transaction

from edges.failures import failure_sentence
from edges.transition_errors import LostRace
from fleet.models import GoneNode
from kube import client
from operations.ledger.disruptions import NoPlace, record_disruptions
from operations.lifecycle import AT_ONCE_MOST, NEW_NODE, NodeProgress, OperationState
from operations.models import Operation, OperationNode, Quarantine
from operations.models.operation import HELD_SINCE
from operations.node_writer import NotWritten, Vetoed
from operations.restraints import freezes_of, reasons_of, stop_reason, why_no_write
from operations.steps import STEPS
from operations.steps.base import HELD, IS_EXPECTED, NodeStep, NodeWork, StepOutcome, StepResult, waits_for
from operations.steps.nodes_in_progress import NodesInProgress
from operations.stop_switch import stopped_by_switch
from operations.writer_lease import Forfeit, take_writer_lease
from wording.numbers import count
from wording.reports import clip
from wording.sentences import with_period

log = structlog.get_logger()

NOT_SOON, AT_ONCE = timedelta(seconds=10), timedelta(seconds=1)
AFTER_A_BUG = timedelta(seconds=30)
TRIES, WINDOW = 4, 200  # pending nodes that are tried for each that may begin, and that are read together
LONGEST = timedelta(seconds=12)  # of a round's steps; the lease is longer
LONGEST_CAUSE = 300  # characters of a node's failure in the reason of a pause
FAILURES, FAILURES_RATIO = 2, 0.05  # as many failed nodes, or as large a share, pause an operation: 1 of 20, 2 of more


def run_operation(operation_id: int, *, owner: str, clock: Callable[[], datetime]) -> None:
    found = Operation.objects.filter(pk=operation_id, state=OperationState.RUNNING).select_related("cluster")
    operation = found.first()
    if operation is None or not operation.take_lease(owner=owner, now=clock()):
        return
    try:
        waiting_for, again_after = _look_and_act(operation, clock=clock)
    except Exception as bug:
        reason = f"{failure_sentence(bug)} No node is changed until this is solved."
        operation.end_lease(now=clock(), next_look_at=clock() + AFTER_A_BUG, waiting_for=reason)
        raise
    operation.end_lease(now=clock(), next_look_at=clock() + again_after, waiting_for=waiting_for)


def clean_up_operation(operation_id: int, *, clock: Callable[[], datetime]) -> None:
    """Removes what the steps of ended nodes left in the cluster. A cluster that does not answer is asked again."""
    operation = Operation.objects.select_related("cluster").get(pk=operation_id)
    cluster = operation.cluster
    with (
        suppress(client.ClusterError, Forfeit),
        closing(client.connect(cluster.kubeconfig, cluster.context)) as connection,
    ):
        take_writer_lease(connection, cluster, now=clock())
        for key in operation.steps:
            STEPS[key].clean_up(operation, connection, clock=clock)


def end_gone_quarantines(*, now: datetime) -> None:
    """Ends the quarantines of nodes that left their cluster. Nobody can release them, and they need no place."""
    left = GoneNode.objects.values("uid")
    for row in Quarantine.objects.in_force().filter(node_uid__in=left).select_related("operation"):
        row.end(now=now, left_reason=f"{row.node_name} left the cluster.")


def _look_and_act(operation: Operation, *, clock: Callable[[], datetime]) -> tuple[str, timedelta]:
    """Returns why the operation does not continue, and when the next round is due."""
    cluster = operation.cluster
    try:
        with closing(client.connect(cluster.kubeconfig, cluster.context)) as connection:
            take_writer_lease(connection, cluster, now=clock())
            stopped = stop_reason(now=clock()) or stopped_by_switch(cluster, connection)
            return OperationRound(operation, connection, clock, stopped).go()
    except client.ClusterError as error:
        log.warning("an operation does not continue", operation=operation.pk, cluster=cluster.name, error=str(error))
        return f"{cluster.name}: {error}", timedelta(seconds=error.retry_after_s or NOT_SOON.total_seconds())
    except Forfeit as forfeit:
        return str(forfeit), NOT_SOON
    except LostRace as lost:
        return str(lost), AT_ONCE


class OperationRound:
    def __init__(
        self, operation: Operation, connection: client.Connection, clock: Callable[[], datetime], stopped: str
    ) -> None:
        self.operation, self.connection, self.clock, self.stopped = operation, connection, clock, stopped
        self.steps = [STEPS[key] for key in operation.steps]
        self.began = clock()
        self.waits: list[timedelta] = []

    def go(self) -> tuple[str, timedelta]:
        running = self._in_turns(list(self._nodes(NodeProgress.RUNNING)))
        frozen, beside = self._frozen(running), NodesInProgress(self.operation, running)
        for node in running:
            self._run(node, frozen, beside)
        if not self._pause_after_failures():
            self._start_next(beside.running)
        if not OperationNode.objects.filter(operation=self.operation).unfinished().exists():
            self._finish()
        return self.stopped, min(self.waits, default=NOT_SOON)

    def _nodes(self, state: NodeProgress):
        return OperationNode.objects.filter(operation=self.operation, state=state).order_by("position")

    def _in_turns(self, nodes: list[OperationNode]) -> list[OperationNode]:
        """Returns the nodes from another one each second: the first may take all evictions of a round."""
        first = int(self.began.timestamp()) % len(nodes) if nodes else 0
        return [*nodes[first:], *nodes[:first]]

    def _frozen(self, nodes: Collection[OperationNode]) -> dict[str, str]:
        if not any(step.waits_for_freeze for step in self.steps):
            return {}
        return freezes_of(self.operation.cluster_id, [node.node_uid for node in nodes], now=self.clock())

    def _held_back(self, step: NodeStep, node: OperationNode, frozen: dict[str, str]) -> str:
        """Returns why the step waits now; empty if it may go on. A veto is not waited for."""
        if step.waits_for_stop and self.stopped:
            return self.stopped
        return frozen.get(node.node_uid, "") if step.waits_for_freeze else ""

    def _run(self, node: OperationNode, frozen: dict[str, str], beside: NodesInProgress) -> None:
        """Runs the node's steps until one waits. One node's error never stops the others."""
        while node.state == NodeProgress.RUNNING and self.clock() - self.began < LONGEST:
            step = self.steps[node.step]
            if held_back := self._held_back(step, node, {} if step.outlasts_freeze else frozen):
                node.note(held_back)
                self.waits.append(timedelta(seconds=2))
                return
            guard = partial(self._guard, step, node)
            work = NodeWork(self.operation, node, self.connection, self.clock, guard, beside)
            try:
                result = step.run(work)
            except client.Absent:
                result = StepResult(StepOutcome.FAILED, f"{node.node_name} is gone.")
            except Vetoed as veto:
                result = StepResult(StepOutcome.FAILED, str(veto), {IS_EXPECTED: True})
            except NotWritten as trouble:
                result = StepResult(StepOutcome.FAILED, str(trouble))
            self._record(node, result)
            if result.outcome is StepOutcome.WAIT:
                self.waits.append(result.again_after)
                return

    def _guard(self, step: NodeStep, node: OperationNode) -> None:
        """Checks, before each write, everything that could forbid it.

        :raises LostRace: when the operation was paused or cancelled, a stop or freeze is in force, or another worker
            has the turn
        :raises Vetoed: when a veto is in force. The step fails: another operation on the node may have to end it
        """
        now = self.clock()
        self.operation.keep_lease(now=now)
        if step.waits_for_stop and (reason := stop_reason(now=now)):
            raise LostRace(reason)
        vetoes = reasons_of(step.vetoes, [node.node_uid])
        if reason := vetoes.get(node.node_uid, "") or why_no_write(self.operation, node.node_uid, now=now):
            raise Vetoed(reason)
        if (step.waits_for_freeze and not step.outlasts_freeze) and (
            reason := freezes_of(self.operation.cluster_id, [node.node_uid], now=now).get(node.node_uid, "")
        ):
            raise LostRace(reason)

    def _record(self, node: OperationNode, result: StepResult) -> None:
        """Writes the result of a step under the lease, with the intent of the next step.

        :raises LostRace: when another worker has the turn, or the operation was cancelled
        """
        now = self.clock()
        with transaction.atomic():
            self.operation.keep_lease(now=now)
            if result.outcome is StepOutcome.WAIT:
                node.note(result.reason, progress=result.progress)
            elif result.outcome is StepOutcome.YIELD:
                node.move(NodeProgress.PENDING, now=now, reason=result.reason, step=0, step_since=None, progress={})
            elif result.outcome is StepOutcome.FAILED:
                node.move(NodeProgress.FAILED, now=now, reason=result.reason, progress=result.progress)
            elif node.step + 1 < len(self.steps):
                self._begin_step(node, node.step + 1, now=now)
            else:
                node.move(NodeProgress.DONE, now=now, reason=result.reason, progress=result.progress)
            if node.state != NodeProgress.RUNNING:
                self.operation.give_back([node.node_uid], now=now)

    def _begin_step(self, node: OperationNode, index: int, *, now: datetime) -> None:
        self.steps[index].intend(self.operation, node, now=now)
        columns = {"step": index, "step_since": now, "progress": {}, "reason": ""}
        OperationNode.objects.filter(pk=node.pk, state=NodeProgress.RUNNING).update(**columns)
        for name, value in columns.items():
            setattr(node, name, value)

    def _start_next(self, running: Sequence[OperationNode]) -> None:
        """Starts as many nodes as run at once and have a place in their failure domains."""
        is_disruptive = any(step.needs_place for step in self.steps)
        quiet = min(step.at_once for step in self.steps)
        most = self.operation.options.get("at_once", AT_ONCE_MOST) if is_disruptive else quiet
        room = most - len(running)
        tries = max(0, room) * TRIES
        started: list[OperationNode] = []
        for node in self._startable() if room > 0 else ():
            if room <= 0 or tries <= 0 or self.clock() - self.began >= LONGEST:
                self.waits.extend([AT_ONCE] if room > 0 else [])
                break
            tries -= 1
            if self._start(node):
                room -= 1
                started.append(node)
        beside, frozen = NodesInProgress(self.operation, [*running, *started]), self._frozen(started)
        for node in started:  # after all have begun: a job ends on its nodes together
            self._run(node, frozen, beside)

    def _startable(self) -> Iterator[OperationNode]:
        """Yields the pending nodes that nothing holds back, in order, and records why the others wait.

        Nodes that are held back use up no try: those behind them have a turn.
        """
        last = -1
        while self.clock() - self.began < LONGEST:
            pending = list(self._nodes(NodeProgress.PENDING).filter(position__gt=last)[:WINDOW])
            if not pending:
                return
            last, frozen = pending[-1].position, self._frozen(pending)
            self.waits.append(timedelta(seconds=5))
            held = [(step, step.why_not_begin(pending, now=self.clock())) for step in self.steps]
            for node in pending:
                held_back = (self._held_back(step, node, frozen) or why.get(node.node_uid, "") for step, why in held)
                if reason := next(filter(None, held_back), ""):
                    self._note_pending(node, reason)
                else:
                    yield node
            if self.stopped:  # no node begins under it
                return

    def _start(self, node: OperationNode) -> bool:
        """Records that the node is being changed, and takes its place in the ledger. False: there is no place now."""
        now = self.clock()
        try:
            with transaction.atomic():
                self.operation.keep_lease(now=now)
                node.move(NodeProgress.RUNNING, now=now, step=0, step_since=now, progress={})
                self.steps[0].intend(self.operation, node, now=now)
                self._take_place(node, now=now)
        except NoPlace as reason:
            node.refresh_from_db()
            self._note_pending(node, str(reason))
            return False
        except IntegrityError:
            node.refresh_from_db()
            other = OperationNode.objects.filter(node_uid=node.node_uid, state=NodeProgress.RUNNING).first()
            if other is None:
                raise
            self._note_pending(node, waits_for(other.operation_id))
            return False
        return True

    def _take_place(self, node: OperationNode, *, now: datetime) -> None:
        """:raises NoPlace: when another owner has the node, or a domain is full"""
        if not any(step.takes_node for step in self.steps):
            return
        quarantine = Quarantine.objects.of_nodes([node.node_uid]).select_related("operation").first()
        owner = quarantine.operation.mark if quarantine else self.operation.mark
        is_budgeted = any(step.needs_place for step in self.steps)
        taking = {node.node_uid: node.node_name}
        if any(step.key == "uncordon" for step in self.steps) and quarantine is None:
            return
        record_disruptions(
            self.operation.cluster_id, taking, by=owner, is_budgeted=is_budgeted,
            was_in_service=not self.operation.options.get(NEW_NODE), now=now,
        )  # fmt: skip

    def _note_pending(self, node: OperationNode, reason: str) -> None:
        """Records why the node does not begin, and since when another controller has held it."""
        since = node.progress.get(HELD_SINCE) or self.clock().isoformat()
        progress = {HELD_SINCE: since} if reason.startswith(HELD) else {}
        if (node.reason, node.progress) != (reason, progress):
            rows = OperationNode.objects.filter(pk=node.pk, state=NodeProgress.PENDING)
            rows.update(reason=reason, progress=progress)

    def _pause_after_failures(self) -> bool:
        """Pauses the operation after its first surprises; returns whether it did."""
        nodes = OperationNode.objects.filter(operation=self.operation)
        surprises = nodes.filter(**{"state": NodeProgress.FAILED, f"progress__{IS_EXPECTED}__isnull": True})
        failed, total = surprises.count(), nodes.count()
        to_come = nodes.filter(state=NodeProgress.PENDING).count()
        if not to_come or failed < min(FAILURES, math.ceil(total * FAILURES_RATIO)):
            return False
        seen = self.operation.options.get("failures_accepted", 0)
        if failed <= seen:
            return False
        first = surprises.order_by("-state_since", "position")[0]
        cause = f"{first.node_name}: {with_period(clip(first.reason, LONGEST_CAUSE))}"
        reason = (
            f"{count(failed, 'node')} of {total} failed. {cause} Check the failed nodes, then resume, retry or cancel."
        )
        with transaction.atomic():
            self.operation.keep_lease(now=self.clock())
            self.operation.move(OperationState.PAUSED, now=self.clock(), reason=reason)
        return True

    def _finish(self) -> None:
        with transaction.atomic():
            self.operation.keep_lease(now=self.clock())
            self.operation.move(OperationState.FINISHED, now=self.clock())
