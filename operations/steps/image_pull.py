"""Image pull: a pod pulls one image on the node and ends at once, beside whatever runs there (Z36, docs/design/0006).

Anybody may name an image. A plan names an image of its driver for each node, by `DriverPull`: it is pulled as the
node's driver pod would be, with its pull secrets and service account. These, and the image's repository and system,
are read again just before the Job is created.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, ClassVar

from fleet.models import Node, Operand, Pod
from gpu.driver_images import image_for, system_of
from gpu.operands import DRIVER
from kube import client
from kube.structs import DaemonSetSeen, PodSeen
from kube.structs.meta import find
from operations.lifecycle import NodeProgress, OperationState
from operations.models import NodeTestJob, OperationNode
from operations.refusals import BadOperation
from operations.restraints import freezes_of
from operations.steps.base import IS_EXPECTED, NodeWork, StepResult, done_result, failed, wait, waits_for
from operations.steps.options import StepOption, TextOption
from operations.steps.test_job import TestJobStep, intend_job
from operations.test_job_tracker import TestJobTracker
from operations.test_jobs.job_status import failure_of, newest_pod, pod_look
from operations.test_jobs.pull_job import DEADLINE, MOST_DRIVER_NODES, DriverPull, PullPod, like_driver, pull_job_for
from operations.test_jobs.pull_progress import JobLook, PullOutcome, progress_of_pull
from operations.test_jobs.test_progress import TestJobOutcome, TestJobProgress

LONGEST_IMAGE = 500
DRIVER_CONTAINER = "nvidia-driver-ctr"  # gpu-operator, manifests/state-driver/0500_daemonset.yaml
AGAIN_AFTER = timedelta(seconds=5)
# RBAC's own words (kubernetes, pkg/endpoints/handlers/responsewriters). Quotas and webhooks answer 403, too.
NO_RIGHT = 'cannot create resource "jobs"'
OUTCOMES = {
    PullOutcome.PULLED: TestJobOutcome.PASSED,
    PullOutcome.FAILED: TestJobOutcome.FAILED,
    PullOutcome.UNKNOWN: TestJobOutcome.UNKNOWN,
}


class _PullTracker(TestJobTracker):
    def manifest(self, row: Any) -> dict[str, Any]:
        return pull_job_for(row.wanted, row.image, PullPod(**row.pull_pod))

    def progress_of(
        self, row: Any, job: client.JobSeen, pods: Sequence[PodSeen], *, now: datetime
    ) -> tuple[TestJobProgress, dict[str, Any]]:
        driver, pod = DriverPull.of(row.operation.options), newest_pod(job, pods)
        failed_reason, failed_message = failure_of(job)
        seen = pod_look(pod) if pod else None
        is_plain = seen is not None and not seen.waits
        progress = progress_of_pull(
            JobLook(
                image=row.image,
                system=system_of(row.image, driver.to_version) if driver else "",
                made_at=row.made_at or now,
                failed=failed_reason,
                failed_message=failed_message,
                pod=seen,
                events=[] if is_plain else self._events(row.namespace, ("Pod", pod.name) if pod else ("Job", job.name)),
                failing_since=row.failing_since,
                operand=DRIVER if driver else "",
            ),
            now=now,
        )
        outcome = OUTCOMES[progress.outcome] if progress.outcome else None
        failing_since = (row.failing_since or now) if progress.is_failing else None
        return TestJobProgress(progress.says, progress.said, outcome), {"failing_since": failing_since}

    def _events(self, namespace: str, about: tuple[str, str]) -> list[tuple[str, str]]:
        self.guard()
        warnings = client.list_warnings(self.connection, namespace)
        its = [event for event in warnings if (event.about.kind, event.about.name) == about]
        return [(event.reason or "", event.message or "") for event in its]


class ImagePullStep(TestJobStep):
    key: ClassVar[str] = "image_pull"
    options: ClassVar[Sequence[StepOption]] = (
        TextOption(
            "pulled_image", "Image", "Image to pull. Required for the kind pull-image, and ignored elsewhere.",
            longest=LONGEST_IMAGE, is_wide=True,
        ),
    )  # fmt: skip
    effect: ClassVar[str] = "A pod without GPUs pulls the image and ends. On a full disk the kubelet evicts pods."
    takes_node: ClassVar[bool] = False
    at_once: ClassVar[int] = 5  # the registry and its mirrors serve everybody else, too
    tracker: ClassVar[type[TestJobTracker]] = _PullTracker
    progress: ClassVar[str] = "For an image pull: `image`, and `outcome` (`pulled`, `failed`, `unknown`)."

    def complete(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
        given = dict(options) | {"test": self.key, "image": options.get("pulled_image") or "", "command": ""}
        if driver := DriverPull.of(options):
            if len(nodes) > MOST_DRIVER_NODES or {node.uid for node in nodes} != set(driver.images):
                raise BadOperation(("nodes", f"Name an image for each node, at most {MOST_DRIVER_NODES} nodes."))
            return given
        image = given["image"]
        if not image or len(image) > LONGEST_IMAGE or not all("!" <= character <= "~" for character in image):
            wanted = f"Name the image to pull, without blanks and at most {LONGEST_IMAGE} characters long."
            raise BadOperation(("pulled_image", wanted))
        return given

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        return ()

    def why_no_job_now(self, work: NodeWork) -> str:
        if reason := super().why_no_job_now(work):
            return reason
        frozen = freezes_of(work.operation.cluster_id, [work.node.node_uid], now=work.clock())
        return frozen.get(work.node.node_uid, "")

    def run(self, work: NodeWork) -> StepResult:
        if other := _waiting_operation(work.node):
            why = f"Operation {other} waits for the node. Pull the image again after it."
            return failed(why, outcome=PullOutcome.UNKNOWN, **{IS_EXPECTED: True})
        return super().run(work)

    def plan_job(self, work: NodeWork) -> NodeTestJob | str:
        seen = work.read_node()
        if seen.ready is None or seen.ready.status != "True":
            return "The node is not Ready: no pod starts there."
        pressure = find(seen.status.conditions, "DiskPressure")
        if pressure is not None and pressure.status != "False":
            return "The node reports DiskPressure: the kubelet evicts pods, and a further image would need more space."
        driver, columns = DriverPull.of(work.operation.options), {"pull_pod": asdict(PullPod())}
        if driver is not None:
            found = _pull_of_driver(work, driver)
            if isinstance(found, str):
                return found
            columns = found
        return intend_job(work, DEADLINE, resource="", amount=0, **columns)

    def result_of(self, row: NodeTestJob) -> StepResult:
        said = f"{row.image}: {row.says} {row.said}".strip()
        if not row.outcome:
            return wait(said, again_after=AGAIN_AFTER, image=row.image)
        if row.gone_at is None:
            return wait(f"{said} {row.trouble or 'The Job is being deleted.'}", again_after=AGAIN_AFTER)
        outcome = next(key for key, value in OUTCOMES.items() if value == row.outcome)
        found = {"image": row.image, "outcome": outcome}
        if outcome is PullOutcome.PULLED:
            return done_result(said, **found)
        return failed(_grant(row.namespace) if NO_RIGHT in row.said else said, **found)


def _waiting_operation(node: OperationNode) -> int | None:
    """Returns the operation that waits for this one. Another pull does not count. None: none waits."""
    rows = OperationNode.objects.filter(node_uid=node.node_uid, state=NodeProgress.PENDING)
    waiting = rows.filter(operation__state=OperationState.RUNNING, reason=waits_for(node.operation_id))
    waiting = waiting.exclude(operation__steps=[ImagePullStep.key])
    return waiting.values_list("operation_id", flat=True).order_by("operation_id").first()


def _pull_of_driver(work: NodeWork, driver: DriverPull) -> dict[str, Any] | str:
    """Returns the columns of a Job that pulls as the node's driver pod would, or why that is unknown.

    :raises ClusterError: when the cluster does not answer
    """
    cluster, connection = work.operation.cluster_id, work.connection
    pods = Pod.objects.filter(cluster=cluster, node_name=work.node.node_name, operand=DRIVER, deleted_at=None)
    daemonsets = Operand.objects.filter(cluster=cluster, operand=DRIVER, uid__in=pods.values("owner_uid"))
    operand = daemonsets.order_by("-pk").first()
    daemonset = client.get_daemonset(connection, operand.namespace, operand.name) if operand else None
    if operand is None or daemonset is None or daemonset.uid != operand.uid:
        return f"{work.node.node_name} has no driver pod, so the image and its pull secrets are unknown."
    containers = daemonset.template.spec.containers or []
    current = next((each.image or "" for each in containers if each.name == DRIVER_CONTAINER), "")
    image = image_for(current, from_version=driver.from_version, to_version=driver.to_version)
    if not image:
        return f"DaemonSet {operand.name} no longer shows the image that the operator would use."
    spec = _spec_of_driver_pod(connection, daemonset, work.node.node_name)
    if spec is None:
        return f"{work.node.node_name} has no driver pod, so its pull secrets are unknown."
    like = asdict(like_driver(daemonset.template, spec))
    return {"image": image[:LONGEST_IMAGE], "namespace": operand.namespace, "pull_pod": like}


def _spec_of_driver_pod(
    connection: client.Connection, daemonset: DaemonSetSeen, node_name: str
) -> dict[str, Any] | None:
    """Returns the whole spec of the driver's newest pod on the node. None: there is none."""
    pods = client.list_pods_on(connection, node_name, namespace=daemonset.namespace)
    drivers = [pod for pod in pods if pod.metadata.owner and pod.metadata.owner.uid == daemonset.uid]
    newest = max(drivers, key=lambda pod: str(pod.metadata.creation_timestamp or ""), default=None)
    try:
        return client.get_pod_spec(connection, daemonset.namespace, newest.name) if newest else None
    except client.Absent:
        return None


def _grant(namespace: str) -> str:
    return (
        f"Quarterdeck may not create Jobs in {namespace}. Grant the rule for jobs there (apiGroups: [batch], verbs: "
        "[create, delete]), as in deploy/rbac/quarterdeck.yaml. Everything else continues."
    )
