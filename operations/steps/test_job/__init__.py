"""Validation: a test Job on all GPUs of a cordoned node, with three outcomes. The Job is deleted afterwards.

The row of the Job is the intent. An operation that ended leaves no Job: `clean_up` deletes it.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef

from edges.transition_errors import LostRace
from fleet.models import Cluster, Node, Operand
from gpu.operands import DEVICE_PLUGIN, DRIVER
from gpu.resources.names import is_dra
from kube import client
from kube.structs import PodSeen
from operations.lifecycle import NodeProgress
from operations.models import NodeTestJob, Operation, OperationNode
from operations.pool_tests import common_image, no_image_warnings, tests_of, why_no_image
from operations.refusals import BadOperation
from operations.restraints import stop_reason
from operations.steps.base import NodeStep, NodeWork, StepResult, done_result, failed, wait
from operations.steps.options import ChoiceOption, StepOption, TextOption
from operations.steps.test_job.decision import NO_TEMPLATE, NodeToTest, sentence_of
from operations.stop_switch import stopped_by_switch
from operations.test_job_tracker import TestJobTracker
from operations.test_jobs.allocated_gpus import device_request_of, uuids_of_whole_node
from operations.test_jobs.dcgm_diag import read_diag
from operations.test_jobs.device_requests import TestedDevices
from operations.test_jobs.job_metrics import numbers_at
from operations.test_jobs.node_tests import NODE_TESTS, result_of
from operations.test_jobs.test_job import resource_of
from operations.test_jobs.test_progress import ObservedTestJob, TestJobOutcome, TestJobProgress
from operations.test_thresholds import compared, thresholds_of
from wording.lists import names
from wording.numbers import are

AGAIN_AFTER = timedelta(seconds=5)
IMAGE = TextOption(
    "image", "Image; blank: that of the pool or the settings",
    "Image of the test. Blank: the pool's, else that in `QUARTERDECK_TEST_IMAGES`.", longest=500, is_wide=True,
)  # fmt: skip
LONGEST_RESOURCE = 253
SHOWN = 32  # results of a diagnostic that failed or are unknown, on the operation's page


class _NodeTracker(TestJobTracker):
    def conclude(
        self, row: Any, observed: ObservedTestJob, progress: TestJobProgress, pod: PodSeen | None
    ) -> tuple[TestJobProgress, dict[str, Any]]:
        lines, trouble = self.output_of(row, pod) if observed.pod else ([], "")
        test = NODE_TESTS[row.test]
        result = result_of(test, row.command, row.devices or row.amount, observed, progress, lines)
        is_passed = result.outcome is TestJobOutcome.PASSED
        columns: dict[str, Any] = {}
        if is_passed and test.numbers:
            columns["numbers"] = dict(numbers_at(lines, test.numbers))
            result = compared(result, columns["numbers"], thresholds_of(row, now=self.clock()))
        if "dcgmi" in row.command and (report := read_diag(lines)) is not None:
            columns["diag"] = report.as_kept
        return TestJobProgress(result.says, result.said or trouble, result.outcome, result.has_run), columns


class TestJobStep(NodeStep):
    key: ClassVar[str] = "test_job"
    options: ClassVar[Sequence[StepOption]] = (
        ChoiceOption(
            "test", "Test", "The test that runs on all GPUs. Required for the kind test, and only allowed there.",
            is_linked=True, choices=[(test.key, test.title) for test in NODE_TESTS.values()],
        ),
        IMAGE,
        TextOption(
            "command", "Command; blank: the test's own",
            "Command of the test, as a shell splits it. Blank: the test's own.", is_wide=True,
        ),
    )  # fmt: skip
    effect: ClassVar[str] = "A test Job takes all GPUs of each node, and is deleted afterwards. No pod is evicted."
    tracker: ClassVar[type[TestJobTracker]] = _NodeTracker
    waits_for_stop: ClassVar[bool] = False  # a Job that runs is followed and deleted; `run` creates none during a stop

    def complete(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
        test = NODE_TESTS.get(options.get("test") or "")
        if test is None:
            raise BadOperation(("test", f"Choose one of {', '.join(NODE_TESTS)}."))
        image = options.get("image") or common_image(nodes, test.image)
        if image is None or any(each.isspace() for each in image):
            raise BadOperation(("image", f"Name an image of {test.title}, without blanks."))
        command = options.get("command") or test.command
        try:
            shlex.split(command)
        except ValueError:
            raise BadOperation(("command", "The command has an open quotation mark.")) from None
        return dict(options) | {"test": test.key, "image": image, "command": command}

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        if open_ones := [node.name for node in nodes if not node.is_unschedulable]:
            yield f"{names(open_ones)} {are(len(open_ones))} not cordoned: their test fails. Drain them first."
        by_dra = [node for node in nodes if is_dra(resource_of(node.allocatable, 1))]
        settings_of = tests_of(by_dra) if by_dra else {}
        yield from (f"{node.name}: {NO_TEMPLATE}" for node in by_dra if not settings_of[node.pk].claim_template)
        if busy := [node.name for node in nodes if node.gpu_allocated]:
            yield (
                f"Pods hold GPUs on {names(busy)}: the test waits for them until its deadline. Drain these nodes first."
            )

    def warnings_by_options(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> Iterable[str]:
        test = NODE_TESTS.get(options.get("test") or "")
        return () if test is None or options.get("image") else no_image_warnings(nodes, test.image)

    def run(self, work: NodeWork) -> StepResult:
        there = NodeTestJob.objects.in_the_cluster().filter(node_uid=work.node.node_uid).select_related("operation")
        earlier = next(
            (row for row in there if row.operation_id != work.operation.pk or not row.is_of(work.node)), None
        )
        if earlier is not None:
            its = _NodeTracker if earlier.test in NODE_TESTS else TestJobTracker  # another step may have left it
            tracker = its(work.connection, guard=work.guard, clock=work.clock)
            tracker.track([earlier], earlier.operation.mark, unwanted={earlier.pk})
            return wait(f"An earlier test Job is being deleted. {earlier.trouble}".strip(), again_after=AGAIN_AFTER)
        tracker = self.tracker(work.connection, guard=work.guard, clock=work.clock)
        rows = NodeTestJob.objects.filter(operation=work.operation, node_uid=work.node.node_uid)
        row = next((row for row in rows.order_by("-pk") if row.is_of(work.node)), None)
        if row is None:
            if reason := self.why_no_job_now(work):
                return wait(reason, again_after=AGAIN_AFTER)
            planned = self.plan_job(work)
            if isinstance(planned, str):
                return failed(planned)
            row = planned
        if row.made_at is None and not row.outcome:
            if reason := self.why_no_job_now(work):  # again, as the looks at the cluster took their time
                return wait(reason, again_after=AGAIN_AFTER)
            tracker.create(row)
        if row.gone_at is None:
            tracker.track([row], work.operation.mark)
        return self.result_of(row)

    def why_no_job_now(self, work: NodeWork) -> str:
        """Returns why no Job may be created now. Blank: one may."""
        return stopped_by_switch(work.operation.cluster, work.connection) or stop_reason(now=work.clock())

    def plan_job(self, work: NodeWork) -> NodeTestJob | str:
        """Records the Job that the step will create, or returns why it creates none.

        :raises ClusterError: when the cluster does not answer
        :raises LostRace: when the operation was paused or cancelled, or the node has a Job already
        """
        observed = _observe(work)
        return observed.why_not(work.node.node_name) or _intend(work, observed)

    def result_of(self, row: NodeTestJob) -> StepResult:
        return _result_of_row(row)

    def clean_up(self, operation: Operation, connection: client.Connection, *, clock: Callable[[], datetime]) -> None:
        rows = list(left_behind().filter(operation=operation))
        tracker = self.tracker(connection, guard=lambda: None, clock=clock)
        tracker.track(rows, operation.mark, unwanted={row.pk for row in rows})

    def left_behind(self) -> list[int]:
        return sorted(set(left_behind().values_list("operation_id", flat=True)))


def left_behind() -> Any:
    """Returns the test Jobs whose step is over."""
    its_node = OperationNode.objects.filter(operation=OuterRef("operation"), node_uid=OuterRef("node_uid"))
    return NodeTestJob.objects.in_the_cluster().filter(~Exists(its_node.filter(state=NodeProgress.RUNNING)))


def _observe(work: NodeWork) -> NodeToTest:
    """:raises ClusterError: when the cluster does not answer"""
    seen = client.get_node(work.connection, work.node.node_name)
    row = Node.objects.filter(cluster=work.operation.cluster_id, uid=work.node.node_uid).first()
    gpus = (row and row.gpu_allocatable) or 0
    claims = row is not None and is_dra(resource_of(row.allocatable, gpus))
    return NodeToTest(
        is_same=seen.uid == work.node.node_uid,
        is_cordoned=seen.is_unschedulable,
        is_ready=seen.ready is not None and seen.ready.status == "True",
        gpus=gpus,
        gpus_expected=(row and row.gpu_expected) or 0,
        request=device_request_of(row) if row else None,
        is_of_devices=NODE_TESTS[work.operation.options["test"]].is_of_devices,
        needs_template=claims and row is not None and not tests_of([row])[row.pk].claim_template,
    )


def _intend(work: NodeWork, observed: NodeToTest) -> NodeTestJob | str:
    """Records the test Job, or returns why the node has no image.

    :raises LostRace: when the operation was paused or cancelled, or the node has a test Job already
    """
    node = Node.objects.get(cluster=work.operation.cluster_id, uid=work.node.node_uid)
    options = work.operation.options
    test, its = NODE_TESTS[options["test"]], tests_of([node])[node.pk]
    image, request = options["image"] or its.image(test.image), observed.request
    if not image:
        return why_no_image(test.image)
    if not isinstance(request, TestedDevices):
        request = TestedDevices({resource_of(node.allocatable, observed.gpus): observed.gpus}, observed.gpus)
    resource = ", ".join(request.resources)
    return intend_job(
        work, test.deadline, image=image,
        amount=request.amount, resource=resource[:LONGEST_RESOURCE], devices=request.devices,
        requests=dict(request.resources) if len(request.resources) > 1 else None,
        claim_template=its.claim_template if is_dra(resource) else "",
        command=options["command"].replace("{gpus}", str(request.devices)),
        driver_version=node.driver_version, gpu_product=node.gpu_product,
        gpu_uuids=uuids_of_whole_node(node, resource, request.devices),
    )  # fmt: skip


def intend_job(work: NodeWork, deadline: timedelta, **columns: Any) -> NodeTestJob:
    """Records a Job on the node, with the options of the operation.

    :raises LostRace: when the operation was paused or cancelled, or the node has a test Job already
    """
    options = work.operation.options
    shared = {
        "operation": work.operation, "node_uid": work.node.node_uid, "node_name": work.node.node_name,
        "namespace": namespace_of(work.operation.cluster), "test": options["test"], "image": options["image"],
        "command": options["command"], "deadline_s": int(deadline.total_seconds()), "intended_at": work.clock(),
        "says": "The Job is not created yet.",
    }  # fmt: skip
    try:
        with transaction.atomic():
            work.guard()
            return NodeTestJob.objects.create(**shared | columns)
    except IntegrityError as clash:
        raise LostRace(f"{work.node.node_name} already has a test Job.") from clash


def namespace_of(cluster: Cluster) -> str:
    """Returns the namespace of the GPU stack, where Quarterdeck may create Jobs."""
    stack = Operand.objects.filter(cluster=cluster, operand__in=(DRIVER, DEVICE_PLUGIN)).order_by("-operand", "name")
    row = stack.first()
    return row.namespace if row else cluster.own_namespace


def _result_of_row(row: NodeTestJob) -> StepResult:
    title = NODE_TESTS[row.test].title
    if not row.outcome:
        return wait(f"{title}: {row.says} {row.said}".strip(), again_after=AGAIN_AFTER)
    sentence = sentence_of(title, row.outcome, row.says, row.said)
    if row.gone_at is None:
        return wait(f"{sentence} {row.trouble or 'The Job is being deleted.'}", again_after=AGAIN_AFTER)
    shown = {"results": (row.diag or {}).get("results", [])[:SHOWN]}
    return done_result(sentence, **shown) if row.outcome == TestJobOutcome.PASSED else failed(sentence, **shown)
