"""Log bundle: the node's kernel log and the logs of its GPU stack, before a repair loses them (lifecycle R13).

A pod reads the ring buffer of the kernel by dmesg, with CAP_SYSLOG alone (capabilities(7)): it mounts nothing of the
node and takes no GPU, so that it also starts where the driver is broken. The logs of the GPU stack come from the API
server. All of it is bounded, and likely secrets are redacted.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from fleet.models import Node
from fleet.observer.mirror.rows.pod import pod_row
from kube import client
from kube.client.single_requests import last_lines
from kube.redaction import redacted
from kube.structs import PodSeen
from operations.models import NodeTestJob
from operations.pool_tests import PoolTests, common_image, no_image_warnings, tests_of, why_no_image
from operations.refusals import BadOperation
from operations.steps.base import NodeWork, StepResult, done_result, failed, wait
from operations.steps.options import StepOption
from operations.steps.test_job import AGAIN_AFTER, TestJobStep, intend_job
from operations.test_job_tracker import TestJobTracker
from operations.test_jobs.test_job import KERNEL_LOG
from operations.test_jobs.test_progress import ObservedTestJob, TestJobOutcome, TestJobProgress
from wording.numbers import count

DEADLINE = timedelta(minutes=5)  # the pull of its image included: a repair waits for it
IMAGES = ("logs", "debug")  # keys, the first that is set
KERNEL_AT_MOST, PODS_AT_MOST = 48 * 1024, 80 * 1024  # characters
LOGS_AT_MOST = 20
TIME_FOR_LOGS = timedelta(seconds=20)
TITLE = "=== "  # before the name of a log. No line of a log begins with it
# The API server gives 200 lines: the last ones of all, then those of GPUs, PCIe and memory.
OF_HARDWARE = "NVRM|Xid|nvidia|nvlink|nvswitch|pcieport|AER|mce|EDAC|hung|oom"
COMMAND = (
    "sh -c '(dmesg -T || dmesg) > /tmp/k 2> /tmp/e; test -s /tmp/k || { cat /tmp/e; exit 1; }; uname -r; "
    f'tail -n 45 /tmp/k; echo "-- lines of hardware"; grep -iE "{OF_HARDWARE}" /tmp/k | tail -n 150; true\''
)  # BusyBox has no -T


class _LogTracker(TestJobTracker):
    def conclude(
        self, row: Any, observed: ObservedTestJob, progress: TestJobProgress, pod: PodSeen | None
    ) -> tuple[TestJobProgress, dict[str, Any]]:
        lines, trouble = self.output_of(row, pod) if observed.pod else ([], "")
        kernel = _bounded(lines, KERNEL_AT_MOST)
        unread = [] if kernel else [f"kernel log: {trouble or progress.said or progress.says}"]
        if progress.outcome != TestJobOutcome.PASSED and kernel:
            unread, kernel = [f"kernel log: {kernel}"], ""
        logs = {f"kernel log of {row.node_name}": kernel} if kernel else {}
        self._read_pods(row, logs, unread)
        parts = [f"{TITLE}{name}\n{text}" for name, text in logs.items()]
        if unread:
            parts.append("\n".join(["Not read:", *unread]))
        return progress, {"output": "\n".join(parts)}

    def _read_pods(self, row: Any, logs: dict[str, str], unread: list[str]) -> None:
        """Adds the ends of the logs of the GPU stack on the node, by name, and why others are missing."""
        self.guard()
        pods = [pod for pod in client.list_pods_on(self.connection, row.node_name) if pod_row(pod)["operand"]]
        runs = [
            # A crashed container tells why in the log of its last run.
            (not crashed, is_init, pod.namespace, pod.name, status.name)
            for pod in pods
            for is_init, statuses in enumerate((pod.status.container_statuses, pod.status.init_container_statuses))
            for status in statuses or ()
            for crashed in ((True, False) if status.restart_count else (False,))
        ]
        wanted = sorted(runs)  # last runs, then main containers, then init containers
        until = self.clock() + TIME_FOR_LOGS
        for number, (is_current, _, namespace, pod, container) in enumerate(wanted):
            name = f"{namespace}/{pod} {container}{'' if is_current else ' before its restart'}"
            if number >= LOGS_AT_MOST or self.clock() >= until:
                unread.append(f"{count(len(wanted) - number, 'more log')}: there are too many, or they took too long")
                return
            self.guard()
            try:
                lines = last_lines(self.connection, namespace, pod, container, crashed=not is_current)
            except (client.Absent, client.Forbidden, client.Refused) as refusal:
                unread.append(f"{name}: {refusal}")
            except (client.InternalError, client.Silent) as failing:
                unread.append(f"{name} and the logs after it: the kubelet does not give them: {failing}")
                return
            else:
                text = _bounded(lines, PODS_AT_MOST // min(len(wanted), LOGS_AT_MOST))
                logs.update({name: text} if text else {})
                unread.extend([] if text else [f"{name}: it is empty"])


class LogBundleStep(TestJobStep):
    key: ClassVar[str] = KERNEL_LOG
    options: ClassVar[Sequence[StepOption]] = ()
    effect: ClassVar[str] = "A pod without GPUs reads the kernel log, and is deleted afterwards. No pod is evicted."
    takes_node: ClassVar[bool] = False
    tracker: ClassVar[type[TestJobTracker]] = _LogTracker
    progress: ClassVar[str] = "For a log bundle: `output`."

    def complete(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
        image = common_image(nodes, *IMAGES)
        if image is None:
            raise BadOperation(("image", why_no_image(" or ".join(IMAGES))))
        return dict(options) | {"test": self.key, "image": image, "command": COMMAND}

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        yield from no_image_warnings(nodes, *IMAGES)

    def plan_job(self, work: NodeWork) -> NodeTestJob | str:
        seen = work.read_node()
        if seen.ready is None or seen.ready.status != "True":
            return "Logs: none, because the node is not Ready: no pod starts there, and its kubelet gives no log."
        image = work.operation.options["image"] or _image_of(work)
        if not image:
            return f"Logs: none. {why_no_image(' or '.join(IMAGES))}"
        return intend_job(work, DEADLINE, image=image, resource="", amount=0, says="Its pod is not created yet.")

    def result_of(self, row: NodeTestJob) -> StepResult:
        if not row.outcome:
            return wait(f"Logs: {row.says} {row.said}".strip(), again_after=AGAIN_AFTER)
        if row.gone_at is None:
            return wait(f"{row.says} {row.trouble or 'The pod is being deleted.'}", again_after=AGAIN_AFTER)
        logs = [part.partition("\n")[0] for part in f"\n{row.output}".split(f"\n{TITLE}")[1:]]
        has_kernel = any(name.startswith("kernel log") for name in logs)
        of_pods = count(len(logs) - has_kernel, "log")
        if not logs:
            return failed(f"Logs: none could be read. {row.says} {row.said}".strip(), output=row.output)
        if not has_kernel:
            return failed(f"No kernel log, but {of_pods} of the GPU stack. {row.says} {row.said}", output=row.output)
        return done_result(f"Kernel log and {of_pods} of the GPU stack.", output=row.output)


def _image_of(work: NodeWork) -> str:
    node = Node.objects.filter(cluster=work.operation.cluster_id, uid=work.node.node_uid).first()
    return tests_of([node])[node.pk].image(*IMAGES) if node else PoolTests({}).image(*IMAGES)


def _bounded(lines: Sequence[str], most: int) -> str:
    """Returns the end of the lines, redacted. No line looks like the title of a log."""
    text = "\n".join(map(redacted, lines))[-most:].replace("\x00", "").strip()
    return f"\n{text}".replace(f"\n{TITLE}", f"\n {TITLE}")[1:]
