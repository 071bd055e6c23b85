"""Log bundle: the node's kernel log and the logs of its GPU stack, before a repair loses them (lifecycle R13).

A pod reads the ring buffer of the kernel by dmesg, with CAP_SYSLOG alone (capabilities(7)): it mounts nothing of the
node and takes no GPU, so that it also starts where the driver is broken. The logs of the GPU stack come from the API
server. All of it is bounded, and likely secrets are redacted.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from django.db import IntegrityError, transaction

from edges.transition_errors import LostRace
from fleet.models import Node
from fleet.observer.mirror.rows.pod import pod_row
from kube import client
from kube.client.single_requests import last_lines
from kube.redaction import redacted
from kube.structs import PodSeen
from operations.models import NodeTestJob
from operations.pool_tests import common_image
from operations.refusals import BadOperation
from operations.steps.base import NodeWork, StepResult, done_result, failed, wait
from operations.steps.options import StepOption
from operations.steps.test_job import AGAIN_AFTER, TestJobStep, namespace_of
from operations.test_job_tracker import TestJobTracker
from operations.test_jobs.test_job import KERNEL_LOG
from operations.test_jobs.test_progress import ObservedTestJob, TestJobOutcome, TestJobProgress
from wording.numbers import count

DEADLINE = timedelta(minutes=5)  # the pull of its image included: a repair waits for it
KERNEL_AT_MOST, PODS_AT_MOST = 48 * 1024, 80 * 1024  # characters
CONTAINERS_AT_MOST = 20
# The API server gives 200 lines: those of GPUs, PCIe and memory, then the last ones of all.
OF_HARDWARE = "NVRM|Xid|nvidia|nvlink|nvswitch|pcieport|AER|mce|EDAC|hung|oom"
COMMAND = (
    f'sh -c \'uname -r; dmesg -T > /tmp/k || exit; grep -iE "{OF_HARDWARE}" /tmp/k | tail -n 150; '
    'echo "-- last lines"; tail -n 45 /tmp/k\''
)


class _LogTracker(TestJobTracker):
    def conclude(
        self, row: Any, observed: ObservedTestJob, progress: TestJobProgress, pod: PodSeen | None
    ) -> tuple[TestJobProgress, dict[str, Any]]:
        lines, trouble = self.output_of(row, pod) if observed.pod else ([], "")
        kernel = _bounded(lines, KERNEL_AT_MOST) or f"None: {trouble or progress.said or progress.says}"
        return progress, {"output": "\n".join([f"== kernel log of {row.node_name}", kernel, *self._pod_log_parts(row)])}

    def _pod_log_parts(self, row: Any) -> Iterable[str]:
        """Yields the ends of the logs of the GPU stack on the node, each with its title, or why there is none."""
        self.guard()
        pods = [pod for pod in client.list_pods_on(self.connection, row.node_name) if pod_row(pod)["operand"]]
        of = [(pod, container.name) for pod in pods for container in pod.spec.containers or ()][:CONTAINERS_AT_MOST]
        for pod, container in of:
            yield f"== {pod.namespace}/{pod.name} {container}"
            self.guard()
            try:
                lines = last_lines(self.connection, pod.namespace, pod.name, container, crashed=False)
            except (client.Absent, client.Forbidden, client.Refused) as refusal:
                yield f"None: {refusal}"
            except (client.InternalError, client.Silent) as failing:
                yield f"None: the kubelet does not give the log: {failing}"
                return
            else:
                yield _bounded(lines, PODS_AT_MOST // len(of)) or "None: it is empty."


class LogBundleStep(TestJobStep):
    key: ClassVar[str] = KERNEL_LOG
    options: ClassVar[Sequence[StepOption]] = ()
    effect: ClassVar[str] = "A pod without GPUs reads the kernel log, and is deleted afterwards. No pod is evicted."
    takes_node: ClassVar[bool] = False
    tracker: ClassVar[type[TestJobTracker]] = _LogTracker
    progress: ClassVar[str] = "For a log bundle: `output`."

    def complete(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
        image = common_image(nodes, "logs") or common_image(nodes, "debug")
        if not image:
            raise BadOperation(("image", "QUARTERDECK_TEST_IMAGES and the pools name no common image of debug."))
        return dict(options) | {"test": self.key, "image": image, "command": COMMAND}

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        return ()

    def plan_job(self, work: NodeWork) -> NodeTestJob | str:
        seen = client.get_node(work.connection, work.node.node_name)
        if seen.uid != work.node.node_uid:
            return f"{work.node.node_name} is now a different node with the same name."
        if seen.ready is None or seen.ready.status != "True":
            return "Logs: none, because the node is not Ready: no pod starts there, and its kubelet gives no log."
        options, now = work.operation.options, work.clock()
        try:
            with transaction.atomic():
                work.guard()
                return NodeTestJob.objects.create(
                    operation=work.operation, node_uid=work.node.node_uid, node_name=work.node.node_name,
                    image=options["image"], namespace=namespace_of(work.operation.cluster), resource="", amount=0,
                    command=options["command"], test=self.key, intended_at=now,
                    deadline_s=int(DEADLINE.total_seconds()), says="Its pod is not made yet.",
                )  # fmt: skip
        except IntegrityError as clash:
            raise LostRace(f"{work.node.node_name} has a test Job already.") from clash

    def result_of(self, row: NodeTestJob) -> StepResult:
        if not row.outcome:
            return wait(f"Logs: {row.says} {row.said}".strip(), again_after=AGAIN_AFTER)
        if row.gone_at is None:
            return wait(f"{row.says} {row.trouble or 'The pod is being deleted.'}", again_after=AGAIN_AFTER)
        if not row.output:
            return failed(f"Logs: none, because: {row.says} {row.said}".strip())
        parts = count(row.output.count("\n== "), "log") if row.outcome == TestJobOutcome.PASSED else "other logs"
        kernel = "Kernel log" if row.outcome == TestJobOutcome.PASSED else f"No kernel log ({row.says})"
        return done_result(f"{kernel} and {parts} of the GPU stack.", output=row.output)


def _bounded(lines: Sequence[str], most: int) -> str:
    """Returns the end of the lines, redacted."""
    return "\n".join(map(redacted, lines))[-most:].replace("\x00", "").strip()
