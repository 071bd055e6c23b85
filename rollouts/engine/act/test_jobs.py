"""Test Jobs on changed nodes: a row before each Job, the result read from the Job, and no Job left behind (Z8, Z27)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from edges.transition_errors import LostRace
from fleet.models import Node
from kube import client
from kube.client.single_requests import last_lines
from kube.redaction import redacted
from kube.structs import PodSeen
from kube.structs.meta import find
from operations.test_jobs.job_manifest import is_ours
from operations.test_jobs.job_metrics import number_at
from operations.test_jobs.job_status import failure_of, newest_pod, said_of, state_of
from operations.test_jobs.test_job import CONTAINER, job_for, pods_for, resource_of
from operations.test_jobs.test_progress import ObservedTestJob, ObservedTestPod, TestJobOutcome, TestJobProgress, look
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide.acts import CreateTestJobs, TrackTestJobs
from rollouts.engine.live_state import stopped_in_cluster
from rollouts.gates.test_job import TestJobGate
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Plan, Target, TestJob
from rollouts.queries.driver_nodes import driver_daemonsets
from rollouts.queries.restraints import why_frozen

LONGEST = 500  # of what others say
LANDED_BY = timedelta(minutes=1)  # a request that we gave up may still reach the API server


def create_test_jobs(writer: Writer, act: CreateTestJobs) -> str:
    """Creates test Jobs, and returns why some are missing; empty means all exist."""
    targets = Target.objects.filter(stage__plan=writer.plan, stage__index=act.stage_index, node_uid__in=act.nodes)
    by_uid = {target.node_uid: target for target in targets.select_related("stage")}
    namespaces = sorted({row.namespace for row in driver_daemonsets(writer.plan)})
    for uid, name in writer.some(act.nodes):
        if not namespaces or uid not in by_uid:
            continue
        if reason := stopped_in_cluster(writer.plan, writer.connection):
            return reason
        if reason := why_frozen(writer.plan, [uid], now=writer.clock()):
            return reason
        row = _intend(writer, by_uid[uid], namespaces[0])
        if row is None:
            continue
        try:
            client.create_job(writer.connection, row.namespace, job_for(row.wanted))
        except client.Conflict:
            pass  # Ours of a try that was lost, or somebody else's: the next look at its labels tells which.
        except (client.Forbidden, client.Refused) as refusal:
            now = writer.clock()
            told = TestJobProgress("The API server does not take it.", str(refusal), TestJobOutcome.UNKNOWN)
            _write(writer, row, told, now=now, gone_at=now)
        else:
            now = writer.clock()
            _write(writer, row, TestJobProgress("Its Job has no pod yet."), now=now, made_at=now)
            writer.note(uid, name, "test-made", f"Test Job {row.namespace}/{row.job_name}, on {_asked(row)}.", now=now)
    return ""


def _asked(row: TestJob) -> str:
    return f"{row.amount} {row.resource}, of {row.image}"


def _intend(writer: Writer, target: Target, namespace: str) -> TestJob | None:
    """Records the test Job if nothing forbids it now. None means that the node offers no GPU resource to request.

    :raises LostRace: when the plan was halted, paused or aborted, the node is no longer changed, or it has a Job
        already
    """
    gate = next((gate for gate in target.stage.gates if isinstance(gate, TestJobGate)), None)
    node = Node.objects.filter(cluster=writer.plan.cluster_id, uid=target.node_uid).first()
    resource = resource_of(node.allocatable, gate.gpus) if gate and node else ""
    if gate is None or not resource:
        return None
    now = writer.clock()
    try:
        with transaction.atomic():
            writer.plan.keep_lease(now=now)
            promoting = Plan.objects.filter(pk=writer.plan.pk, state=PlanState.PROMOTING, epoch=writer.plan.epoch)
            if not promoting.update(state=PlanState.PROMOTING):
                raise LostRace("The plan may not test anything any more.")
            same = Target.objects.filter(pk=target.pk, state=TargetState.CHANGED, state_since=target.state_since)
            if not same.update(state=TargetState.CHANGED):
                raise LostRace(f"{target.node_name} is no longer changed.")
            return TestJob.objects.create(
                plan=writer.plan,
                node_uid=target.node_uid,
                node_name=target.node_name,
                namespace=namespace,
                image=(gate.image or settings.TEST_JOB_IMAGE)[:500],
                resource=resource,
                amount=gate.gpus,
                command=gate.command,
                metric=gate.metric,
                intended_at=now,
                says="Its Job is not made yet.",
            )
    except IntegrityError as clash:
        raise LostRace(f"{target.node_name} has a test Job already.") from clash


def track_test_jobs(writer: Writer, act: TrackTestJobs) -> None:
    """Reads the Jobs before the list of pods, so that a pod of a deleted Job is still in the list."""
    rows = list(TestJob.objects.in_the_cluster().filter(plan=writer.plan))
    began = writer.clock()
    jobs: dict[int, client.JobSeen | None] = {}
    for row in rows:
        writer.plan.keep_lease(now=writer.clock())
        jobs[row.pk] = client.get_job(writer.connection, row.namespace, row.job_name)
    pods: list[PodSeen] = []
    for namespace in sorted({row.namespace for row in rows}):
        writer.plan.keep_lease(now=writer.clock())
        selector = pods_for(writer.plan.mark)
        pods += client.list_pods(writer.connection, namespace=namespace, label_selector=selector)
    for row in rows:
        _follow(writer, row, jobs[row.pk], pods, is_wanted=row.pk not in act.unwanted, began=began)


def _follow(
    writer: Writer,
    row: TestJob,
    job: client.JobSeen | None,
    pods: Sequence[PodSeen],
    *,
    is_wanted: bool,
    began: datetime,
) -> None:
    its = [pod for pod in pods if pod.namespace == row.namespace and is_ours(row.wanted, pod.labels, pod.annotations)]
    if job is None or not is_ours(row.wanted, job.labels, job.annotations):
        may_land = job is None and row.made_at is None and began - row.intended_at < LANDED_BY
        if not may_land and not its:
            _is_gone(writer, row, is_there=job is not None)
        return
    if not row.outcome:
        now = writer.clock()
        told = look(_job_look(row, job, its, now=now), now=now)
        if told.outcome is None and not is_wanted:
            told = TestJobProgress(
                "It was not through when it was no longer needed.", told.said, TestJobOutcome.UNKNOWN
            )
        value = None
        if told.outcome is TestJobOutcome.PASSED and row.metric:
            value, trouble = _read_number(writer, row, newest_pod(job, its))
            told = replace(told, said=trouble)
        _write(writer, row, told, now=now, made_at=row.made_at or now, value=value)
    if row.outcome and job.metadata.deletion_timestamp is None:
        _delete(writer, row, job)


def _read_number(writer: Writer, row: TestJob, pod: PodSeen | None) -> tuple[float | None, str]:
    """Returns the number that the Job printed, or why there is none. The log goes with the pod, so it is read once.

    :raises ClusterError: when the API server does not answer; the next round asks again
    """
    if pod is None:
        return None, "Its pod is gone, and its output with it."
    writer.plan.keep_lease(now=writer.clock())
    try:
        lines = last_lines(writer.connection, row.namespace, pod.metadata.name, CONTAINER, crashed=False)
    except (client.Absent, client.Forbidden, client.Refused) as refusal:
        return None, f"Its output cannot be read: {refusal}"
    value = number_at(lines, row.metric)
    return value, f"{row.metric} is {value:g}." if value is not None else f"Its output has no number at {row.metric}."


def _is_gone(writer: Writer, row: TestJob, *, is_there: bool) -> None:
    now = writer.clock()
    if row.outcome:
        TestJob.objects.in_the_cluster().filter(pk=row.pk).update(gone_at=now, trouble="")
        return
    if is_there:
        says = f"There is another Job {row.job_name} in {row.namespace}, which is not ours: delete or rename it."
    elif row.made_at is None:
        says = "Its Job never came to be."
    else:
        says = "Its Job was deleted by somebody else before it was through."
    _write(writer, row, TestJobProgress(says, outcome=TestJobOutcome.UNKNOWN), now=now, gone_at=now)


def _delete(writer: Writer, row: TestJob, job: client.JobSeen) -> None:
    writer.plan.keep_lease(now=writer.clock())
    try:
        client.delete_job(writer.connection, job)
    except (client.Absent, client.Conflict):
        return  # It is gone, or another by now: the next look tells.
    except (client.Forbidden, client.Refused) as refusal:
        by_hand = f"kubectl -n {row.namespace} delete job {row.job_name}"
        trouble = _bounded(f"Its Job may not be deleted: {refusal} By hand: {by_hand}")
        TestJob.objects.in_the_cluster().filter(pk=row.pk).update(trouble=trouble)


def _write(
    writer: Writer,
    row: TestJob,
    told: TestJobProgress,
    *,
    now: datetime,
    made_at: datetime | None = None,
    gone_at: datetime | None = None,
    value: float | None = None,
) -> None:
    columns: dict[str, Any] = {"says": told.says[:1000], "said": _bounded(told.said)}
    columns["has_run"] = row.has_run or told.has_run
    columns |= {"outcome": told.outcome.value, "told_at": now} if told.outcome else {}
    columns |= {"made_at": made_at} if made_at else {}
    columns |= {"value": value} if value is not None else {}
    columns |= {"gone_at": gone_at} if gone_at else {}
    with transaction.atomic():
        writer.plan.keep_lease(now=now)
        if not TestJob.objects.filter(pk=row.pk, outcome="").update(**columns):
            return
        if told.outcome:
            said = f" It said: {columns['said']}" if columns["said"] else ""
            writer.note(row.node_uid, row.node_name, f"test-{told.outcome}", f"Test Job: {told.says}{said}", now=now)
    for name, value in columns.items():
        setattr(row, name, value)


def _job_look(row: TestJob, job: client.JobSeen, pods: Sequence[PodSeen], *, now: datetime) -> ObservedTestJob:
    newest = newest_pod(job, pods)
    complete = find(job.status.conditions if job.status else None, "Complete")
    failed, failed_message = failure_of(job)
    return ObservedTestJob(
        made_at=row.made_at or now,
        has_run=row.has_run,
        is_complete=complete is not None and complete.status == "True",
        failed=failed,
        failed_message=failed_message,
        pod=_pod_look(newest) if newest else None,
    )


def _pod_look(pod: PodSeen) -> ObservedTestPod:
    state = state_of(pod)
    ended = state.terminated if state else None
    return ObservedTestPod(
        **said_of(pod),
        is_going=pod.metadata.deletion_timestamp is not None,
        is_running=bool(state and state.running),
        exit_code=ended.exit_code if ended else None,
        words=(ended.message or ended.reason or "") if ended else "",
    )


def _bounded(words: str) -> str:
    """Returns the text in one line, redacted, and cut from the front: a failing program gives its reason last."""
    return redacted(" ".join(words[-4 * LONGEST :].split()))[-LONGEST:]
