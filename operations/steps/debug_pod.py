"""A debug pod: runs nvidia-smi and deviceQuery on a node and shows their output. The pod is deleted afterwards.

It requests one free GPU as a tenant's pod does. If none is free it requests none, and sees the GPUs only by a runtime
class, so that it takes nothing from running pods.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from fleet.models import Node, Pod
from kube.redaction import redacted
from kube.structs import PodSeen
from operations.models import NodeTestJob
from operations.node_writer import remade
from operations.pool_tests import common_image, no_image_warnings, tests_of, why_no_image
from operations.refusals import BadOperation
from operations.steps.base import NodeWork, StepResult, done_result, failed, wait
from operations.steps.test_job import AGAIN_AFTER, IMAGE, TestJobStep, intend_job
from operations.test_job_tracker import TestJobTracker
from operations.test_jobs.test_job import resource_of
from operations.test_jobs.test_progress import ObservedTestJob, TestJobOutcome, TestJobProgress

DEADLINE = timedelta(minutes=10)  # the pull of its image included
OUTPUT_AT_MOST = 64 * 1024  # characters of at most 200 lines
NVIDIA = "nvidia.com/"
# GPUs, memory and processes, what a CUDA program sees, then the devices of the container. It ends with the exit code of
# nvidia-smi. Images of the CUDA samples have their programs in /cuda-samples.
COMMAND = (
    "sh -c 'nvidia-smi; s=$?; nvidia-smi -L; PATH=$PATH:/cuda-samples; "
    'if command -v deviceQuery > /dev/null; then deviceQuery; else echo "deviceQuery: not in this image"; fi; '
    "ls -l /dev | grep -i nvidia; free -m; ulimit -l; exit $s'"
)


class _DebugTracker(TestJobTracker):
    def conclude(
        self, row: Any, observed: ObservedTestJob, progress: TestJobProgress, pod: PodSeen | None
    ) -> tuple[TestJobProgress, dict[str, Any]]:
        """Keeps the output, also of a failed nvidia-smi: that is an answer."""
        lines, trouble = self.output_of(row, pod) if observed.pod else ([], "")
        output = "\n".join(map(redacted, lines))[-OUTPUT_AT_MOST:].replace("\x00", "")
        said = "" if output.strip() else progress.said or trouble
        return TestJobProgress(progress.says, said, progress.outcome, progress.has_run), {"output": output}


class DebugPodStep(TestJobStep):
    key: ClassVar[str] = "debug_pod"
    options = (IMAGE,)
    effect: ClassVar[str] = "A debug pod takes one free GPU or none, and is deleted afterwards. No pod is evicted."
    tracker: ClassVar[type[TestJobTracker]] = _DebugTracker
    progress: ClassVar[str] = "For a debug pod: `output`."

    def complete(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
        image = options.get("image") or common_image(nodes, "debug")
        if image is None or any(each.isspace() for each in image):
            raise BadOperation(("image", "Name an image with a shell, without blanks."))
        return dict(options) | {"test": self.key, "image": image, "command": COMMAND}

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        for node in nodes:
            if free_resource(node):
                continue
            if runtime_class := runtime_class_on(node):
                sees = f"The pod requests none, and sees all by runtime class {runtime_class}."
                yield f"{node.name} has no free GPU. {sees}"
            else:
                yield f"{node.name}: {WITHOUT_GPU}"

    def warnings_by_options(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> Iterable[str]:
        return () if options.get("image") else no_image_warnings(nodes, "debug")

    def plan_job(self, work: NodeWork) -> NodeTestJob | str:
        seen = work.read_node()
        node = Node.objects.filter(cluster=work.operation.cluster_id, uid=work.node.node_uid).first()
        if node is None:
            return remade(work.node.node_name)
        if seen.ready is None or seen.ready.status != "True":
            return "The node is not Ready: no pod starts there."
        resource, runtime_class = free_resource(node), ""
        if not resource:
            runtime_class = runtime_class_on(node)
            if not runtime_class:
                return WITHOUT_GPU
        image = work.operation.options["image"] or tests_of([node])[node.pk].image("debug")
        if not image:
            return why_no_image("debug")
        amount = 1 if resource else 0
        return intend_job(
            work, DEADLINE, image=image, resource=resource, amount=amount, runtime_class=runtime_class,
            says="Its pod is not created yet.",
        )  # fmt: skip

    def result_of(self, row: NodeTestJob) -> StepResult:
        how = f"on 1 {row.resource}" if row.amount else f"without a GPU request, runtime class {row.runtime_class}"
        if not row.outcome:
            return wait(f"Debug pod {how}: {row.says} {row.said}".strip(), again_after=AGAIN_AFTER)
        if row.gone_at is None:
            return wait(f"{row.says} {row.trouble or 'The pod is being deleted.'}", again_after=AGAIN_AFTER)
        if not row.output:
            return failed(f"Debug pod {how}: no output. {row.says} {row.said}".strip())
        result = "nvidia-smi works" if row.outcome == TestJobOutcome.PASSED else "nvidia-smi failed"
        return done_result(f"Debug pod {how}: {result}. {row.says}", output=row.output)


WITHOUT_GPU = (
    "No NVIDIA GPU of the node is free, and no pod of the GPU stack there uses a runtime class: "
    "a pod without a GPU would see none."
)


def free_resource(node: Node) -> str:
    """Returns an NVIDIA resource of which one is free, whole GPUs first. Blank: none."""
    free = {name: number - node.requested.get(name, 0) for name, number in node.allocatable.items()}
    return resource_of({name: number for name, number in free.items() if name.startswith(NVIDIA)}, 1)


def runtime_class_on(node: Node) -> str:
    """Returns the runtime class by which pods of the GPU stack on the node see its GPUs. Blank: none."""
    pods = Pod.objects.filter(node=node).exclude(operand="").exclude(runtime_class="")
    return pods.order_by("runtime_class").values_list("runtime_class", flat=True).first() or ""
