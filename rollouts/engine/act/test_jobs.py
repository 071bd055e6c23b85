"""Test Jobs on changed nodes: a row before each Job, the result read from the Job, and no Job left behind (Z8, Z27)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from edges.transition_errors import LostRace
from fleet.models import Node
from kube.structs import PodSeen
from operations.pool_tests import tests_of, why_no_image
from operations.test_job_tracker import TestJobTracker
from operations.test_jobs.allocated_gpus import uuids_of_whole_node
from operations.test_jobs.job_metrics import numbers_at
from operations.test_jobs.job_status import ran_s
from operations.test_jobs.node_tests import NODE_TESTS, result_of
from operations.test_jobs.test_progress import TIMED_OUT, ObservedTestJob, TestJobOutcome, TestJobProgress
from operations.test_thresholds import compared, thresholds_of
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide.acts import CreateTestJobs, TrackTestJobs
from rollouts.engine.live_state import stopped_in_cluster
from rollouts.gates.test_job import TestJobGate
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Plan, Target, TestJob
from rollouts.queries.driver_nodes import driver_daemonsets
from rollouts.queries.restraints import why_frozen


class _PlanTracker(TestJobTracker):
    """The test Jobs of a plan."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        super().__init__(
            writer.connection, guard=lambda: writer.plan.keep_lease(now=writer.clock()), clock=lambda: writer.clock()
        )

    def note(self, row: Any, what: str, sentence: str, *, now: datetime) -> None:
        self.writer.note(row.node_uid, row.node_name, what, sentence, now=now)

    def conclude(
        self, row: Any, observed: ObservedTestJob, progress: TestJobProgress, pod: PodSeen | None
    ) -> tuple[TestJobProgress, dict[str, Any]]:
        """Reads how long the container of a passed Job ran, and the numbers that it printed.

        The exit code of a template has the meaning that it has for operations: one that proves nothing fails nothing.
        """
        test, paths = NODE_TESTS.get(row.test), row.paths
        is_passed = progress.outcome is TestJobOutcome.PASSED
        columns: dict[str, Any] = {}
        if is_passed:
            columns["ran_s"] = ran_s(pod) if pod else None
        if observed.pod is None or not (test or (is_passed and paths)):
            return progress, columns
        lines, trouble = self.output_of(row, pod)
        if test and not progress.says.startswith(TIMED_OUT):
            judged = result_of(test, row.command, row.amount, observed, progress, lines)
            if judged.outcome is not TestJobOutcome.PASSED:
                return replace(judged, said=judged.said or trouble), columns
        if not (is_passed and paths):
            return progress, columns
        numbers = numbers_at(lines, paths)
        columns |= {"numbers": dict(numbers), "value": numbers.get(paths[0])}
        printed = " ".join(f"{path} is {numbers[path]:g}." for path in paths if path in numbers)
        missing = next((path for path in paths if path not in numbers), "")
        says = printed or trouble or f"Its output has no number at {missing}."
        return self.judged_by_pool(row, replace(progress, said=says), numbers), columns

    def judged_by_pool(self, row: Any, progress: TestJobProgress, numbers: Mapping[str, float]) -> TestJobProgress:
        """Compares the numbers of a template with passes of the pool, as operations do, where these are enough.

        A number that was not printed is the gate's to name.
        """
        target = Target.objects.filter(stage__plan=row.plan_id, node_uid=row.node_uid).select_related("stage").first()
        gates = target.stage.gates if target else ()
        gate = next((gate for gate in gates if isinstance(gate, TestJobGate)), None)
        found = thresholds_of(row, now=self.writer.clock(), worse_percent=gate.at_most_worse_percent if gate else 0)
        known = [each for each in found if each.limit is not None and each.metric.path in numbers]
        return compared(progress, numbers, known) if known else progress


def create_test_jobs(writer: Writer, act: CreateTestJobs) -> str:
    """Creates test Jobs, and returns why some are missing; empty means all exist."""
    targets = Target.objects.filter(stage__plan=writer.plan, stage__index=act.stage_index, node_uid__in=act.nodes)
    by_uid = {target.node_uid: target for target in targets.select_related("stage")}
    namespaces = sorted({row.namespace for row in driver_daemonsets(writer.plan)})
    for uid, _ in writer.some(act.nodes):
        if not namespaces or uid not in by_uid:
            continue
        if reason := stopped_in_cluster(writer.plan, writer.connection):
            return reason
        if reason := why_frozen(writer.plan, [uid], now=writer.clock()):
            return reason
        row = _intend(writer, by_uid[uid], namespaces[0])
        if row and not row.outcome:
            _PlanTracker(writer).create(row)
    return ""


def _intend(writer: Writer, target: Target, namespace: str) -> TestJob | None:
    """Records the test Job if nothing forbids it now. None: the node offers no GPU resource to request, or no image.

    Without an image its result is unknown at once, in one row: the next try is a minute later.

    :raises LostRace: when the plan was halted, paused or aborted, the node is no longer changed, or it has a Job
        already
    """
    gate = next((gate for gate in target.stage.gates if isinstance(gate, TestJobGate)), None)
    node = Node.objects.filter(cluster=writer.plan.cluster_id, uid=target.node_uid).first()
    resource, amount = gate.request_on(node.allocatable) if gate and node else ("", 0)
    if gate is None or node is None or not resource:
        return None
    test = gate.test
    command = gate.command or (test.command_on(amount) if test else "")
    now = writer.clock()
    image = gate.image or tests_of([node])[node.pk].image(gate.image_key)
    progress: dict[str, Any] = {"says": "The Job is not created yet."}
    if not image:
        says, ended = why_no_image(gate.image_key), {"outcome": TestJobOutcome.UNKNOWN, "told_at": now, "gone_at": now}
        progress = {"says": says, **ended}
    try:
        with transaction.atomic():
            writer.plan.keep_lease(now=now)
            promoting = Plan.objects.filter(pk=writer.plan.pk, state=PlanState.PROMOTING, epoch=writer.plan.epoch)
            if not promoting.update(state=PlanState.PROMOTING):
                raise LostRace("The plan may no longer run test Jobs.")
            same = Target.objects.filter(pk=target.pk, state=TargetState.CHANGED, state_since=target.state_since)
            if not same.update(state=TargetState.CHANGED):
                raise LostRace(f"{target.node_name} is no longer changed.")
            newest = TestJob.objects.filter(plan=writer.plan, node_uid=target.node_uid).order_by("-pk").first()
            if not image and newest and not newest.image:
                TestJob.objects.filter(pk=newest.pk).update(intended_at=now, **progress)
                return None
            return TestJob.objects.create(
                plan=writer.plan,
                node_uid=target.node_uid,
                node_name=target.node_name,
                namespace=namespace,
                image=image[:500],
                resource=resource,
                amount=amount,
                command=command,
                test=gate.template,
                metric=gate.metric or next(iter(gate.numbers), ""),
                driver_version=node.driver_version,
                gpu_product=node.gpu_product,
                gpu_uuids=uuids_of_whole_node(node, resource, amount),
                intended_at=now,
                **progress,
            )
    except IntegrityError as clash:
        raise LostRace(f"{target.node_name} already has a test Job.") from clash


def track_test_jobs(writer: Writer, act: TrackTestJobs) -> None:
    rows = list(TestJob.objects.in_the_cluster().filter(plan=writer.plan))
    _PlanTracker(writer).track(rows, writer.plan.mark, unwanted=act.unwanted)
