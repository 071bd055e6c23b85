"""Creates test Jobs, reads their results, and deletes them: no Job without a row, and none left behind (Z8, Z27)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from kube import client
from kube.client.single_requests import last_lines
from kube.redaction import redacted
from kube.structs import PodSeen
from operations.models.test_job import TestJobOnNode
from operations.test_jobs.allocated_gpus import uuids_of_pod
from operations.test_jobs.job_manifest import is_ours
from operations.test_jobs.job_status import finished_at, newest_pod, observed_test_job
from operations.test_jobs.test_job import CONTAINER, job_for, pods_for
from operations.test_jobs.test_progress import ObservedTestJob, TestJobOutcome, TestJobProgress, progress_of_test_job

LONGEST = 500  # characters of a foreign message
OUTPUT_WITHIN = timedelta(minutes=3)  # after the end of its container; the Job and its log exist longer
LANDED_BY = timedelta(minutes=1)  # a request that we gave up may still reach the API server


class OutputLater(Exception):
    """The kubelet does not give the output now. The text says why."""


class TestJobTracker:
    """The test Jobs of one owner in one cluster.

    `guard` runs before each request and in each write, and raises LostRace if the caller has lost its turn.
    """

    def __init__(
        self, connection: client.Connection, *, guard: Callable[[], None], clock: Callable[[], datetime]
    ) -> None:
        self.connection, self.guard, self.clock = connection, guard, clock

    def note(self, row: TestJobOnNode, what: str, sentence: str, *, now: datetime) -> None:
        """Records an event of a Job."""

    def conclude(
        self, row: TestJobOnNode, observed: ObservedTestJob, progress: TestJobProgress, pod: PodSeen | None
    ) -> tuple[TestJobProgress, dict[str, Any]]:
        """Returns the final result of a Job that is over, and columns to store with it."""
        return progress, {}

    def manifest(self, row: TestJobOnNode) -> dict[str, Any]:
        """Returns the Job to create."""
        return job_for(row.wanted)

    def progress_of(
        self, row: TestJobOnNode, job: client.JobSeen, pods: Sequence[PodSeen], *, now: datetime
    ) -> tuple[TestJobProgress, dict[str, Any]]:
        """Returns the progress of a Job without a result yet, and columns to store with it."""
        observed = observed_test_job(
            job, pods, made_at=row.made_at or now, has_run=row.has_run, deadline=row.wanted.deadline
        )
        progress, pod = progress_of_test_job(observed, now=now), newest_pod(job, pods)
        if progress.outcome is not None:
            try:
                return self.conclude(row, observed, progress, pod)
            except OutputLater as later:
                return TestJobProgress("The test ended. Its output is read again.", str(later), has_run=True), {}
        if row.gpu_uuids is None and row.amount and pod and observed.pod and observed.pod.is_running:
            return progress, {"gpu_uuids": uuids_of_pod(row.node_uid, pod.metadata.uid, now=now)}
        return progress, {}

    def create(self, row: TestJobOnNode) -> None:
        """Creates the Job of a row."""
        self.guard()
        try:
            client.create_job(self.connection, row.namespace, self.manifest(row))
        except client.Conflict:
            pass  # Ours of a try that was lost, or somebody else's: the next look at its labels tells which.
        except (client.Forbidden, client.Refused) as refusal:
            now = self.clock()
            refused = TestJobProgress("The API server rejects the Job.", str(refusal), TestJobOutcome.UNKNOWN)
            self._write(row, refused, now=now, gone_at=now)
        else:
            now = self.clock()
            self._write(row, TestJobProgress("The Job has no pod yet."), now=now, made_at=now)
            asked = f"{row.amount} {row.resource}, of {row.image}"
            self.note(row, "test-made", f"Test Job {row.namespace}/{row.job_name}, on {asked}.", now=now)

    def track(self, rows: Sequence[TestJobOnNode], owner: str, *, unwanted: Collection[int] = ()) -> None:
        """Reads the Jobs before the list of pods, so that a pod of a deleted Job is still in the list.

        `unwanted`: keys of Jobs that are deleted before their end.
        """
        began = self.clock()
        jobs: dict[int, client.JobSeen | None] = {}
        for row in rows:
            self.guard()
            jobs[row.pk] = client.get_job(self.connection, row.namespace, row.job_name)
        pods: list[PodSeen] = []
        for namespace in sorted({row.namespace for row in rows}):
            self.guard()
            pods += client.list_pods(self.connection, namespace=namespace, label_selector=pods_for(owner))
        for row in rows:
            self._follow(row, jobs[row.pk], pods, is_wanted=row.pk not in unwanted, began=began)

    def output_of(self, row: TestJobOnNode, pod: PodSeen | None) -> tuple[list[str], str]:
        """Returns the last lines of the Job's output, or why there are none. The log goes with the pod: read it once.

        A kubelet that does not answer costs this Job alone: the API server answers 500 in its place, or is silent.

        :raises OutputLater: when the kubelet does not answer, and is asked again
        :raises ClusterError: when the API server does not answer; the next round asks again
        """
        if pod is None:
            return [], "The pod is deleted, and its output with it."
        self.guard()
        try:
            return last_lines(self.connection, row.namespace, pod.metadata.name, CONTAINER, crashed=False), ""
        except (client.Absent, client.Forbidden, client.Refused) as refusal:
            return [], f"The output cannot be read: {refusal}"
        except (client.InternalError, client.Silent) as failing:
            ended = finished_at(pod)
            if ended is not None and self.clock() - ended < OUTPUT_WITHIN:
                raise OutputLater(str(failing)) from failing
            return [], f"The kubelet does not give the output: {failing}"

    def _follow(
        self,
        row: TestJobOnNode,
        job: client.JobSeen | None,
        pods: Sequence[PodSeen],
        *,
        is_wanted: bool,
        began: datetime,
    ) -> None:
        wanted = row.wanted
        its = [pod for pod in pods if pod.namespace == row.namespace and is_ours(wanted, pod.labels, pod.annotations)]
        if job is None or not is_ours(wanted, job.labels, job.annotations):
            may_land = job is None and row.made_at is None and began - row.intended_at < LANDED_BY
            if not may_land and not its:
                self._end(row, is_there=job is not None)
            return
        if not row.outcome:
            now = self.clock()
            progress, columns = self.progress_of(row, job, its, now=now)
            if progress.outcome is None and not is_wanted:
                says = "The test was ended early, because it is no longer needed."
                progress = TestJobProgress(says, progress.said, TestJobOutcome.UNKNOWN)
            self._write(row, progress, now=now, made_at=row.made_at or now, **columns)
        if row.outcome and job.metadata.deletion_timestamp is None:
            self._delete(row, job)

    def _end(self, row: TestJobOnNode, *, is_there: bool) -> None:
        now = self.clock()
        if row.outcome:
            type(row).objects.in_the_cluster().filter(pk=row.pk).update(gone_at=now, trouble="")
            row.gone_at = now
            return
        if is_there:
            says = (
                f"{row.namespace} has another Job with the name {row.job_name}, not created by Quarterdeck. "
                "Delete or rename it."
            )
        elif row.made_at is None:
            says = "The Job was never created."
        else:
            says = "Somebody else deleted the Job before it finished."
        self._write(row, TestJobProgress(says, outcome=TestJobOutcome.UNKNOWN), now=now, gone_at=now)

    def _delete(self, row: TestJobOnNode, job: client.JobSeen) -> None:
        self.guard()
        try:
            client.delete_job(self.connection, job)
        except (client.Absent, client.Conflict):
            return  # Deleted, or replaced by another Job: the next round finds out.
        except (client.Forbidden, client.Refused) as refusal:
            by_hand = f"kubectl -n {row.namespace} delete job {row.job_name}"
            trouble = in_one_line(f"Quarterdeck may not delete the Job: {refusal} By hand: {by_hand}")
            type(row).objects.in_the_cluster().filter(pk=row.pk).update(trouble=trouble)

    def _write(self, row: TestJobOnNode, progress: TestJobProgress, *, now: datetime, **more: Any) -> None:
        """Stores the progress of a Job without a result yet."""
        columns: dict[str, Any] = {"says": progress.says[:1000], "said": in_one_line(progress.said)}
        columns["has_run"] = row.has_run or progress.has_run
        columns |= {"outcome": progress.outcome.value, "told_at": now} if progress.outcome else {}
        columns |= more
        with transaction.atomic():
            self.guard()
            if not type(row).objects.filter(pk=row.pk, outcome="").update(**columns):
                return
            if progress.outcome:
                said = f" It said: {columns['said']}" if columns["said"] else ""
                self.note(row, f"test-{progress.outcome}", f"Test Job: {progress.says}{said}", now=now)
        for name, value in columns.items():
            setattr(row, name, value)


def in_one_line(words: str) -> str:
    """Returns the text in one line, redacted, and cut from the front: a failing program gives its reason last."""
    return redacted(" ".join(words[-4 * LONGEST :].split()))[-LONGEST:]
