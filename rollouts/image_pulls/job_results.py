"""Reads the results of created Jobs: Jobs by name, their pods in one list, Events where something fails."""

from kube import client
from kube.structs.events import EventSeen
from operations.test_jobs.job_manifest import is_ours
from operations.test_jobs.job_status import failure_of, newest_pod, pod_look
from operations.test_jobs.pull_job import pods_for
from operations.test_jobs.pull_progress import JobLook, PullOutcome, PullProgress
from operations.test_jobs.pull_progress import progress_of_pull as look_at
from rollouts.image_pulls.base import PullRound
from rollouts.models import PullJob


def observe_pull_jobs(pull_round: PullRound) -> None:
    """Reads Jobs before the list of pods, so that a pod of a deleted Job is still in the list."""
    rows = list(pull_round.rows().in_the_cluster())
    pull_round.seen_at = pull_round.clock()
    for row in rows:
        pull_round.pull.keep_lease(now=pull_round.clock())
        pull_round.jobs[row.pk] = client.get_job(pull_round.connection, row.namespace, row.job_name)
    for namespace in sorted({row.namespace for row in rows}):
        pull_round.pull.keep_lease(now=pull_round.clock())
        selector = pods_for(pull_round.pull.plan.mark)
        pull_round.pods += client.list_pods(pull_round.connection, namespace=namespace, label_selector=selector)


def record_job_progress(pull_round: PullRound, row: PullJob) -> None:
    if row.pk not in pull_round.jobs:
        return
    job, now = pull_round.jobs[row.pk], pull_round.clock()
    if job is None:
        if row.made_at is not None and not pull_round.pull.ends_reason:
            told = PullProgress("Somebody else deleted the Job before it finished.", outcome=PullOutcome.UNKNOWN)
            pull_round.write(row, told, now=now)
        return
    if not is_ours(row.wanted, job.labels, job.annotations):
        says = (
            f"{row.namespace} has another Job with the name {row.job_name}, not created by Quarterdeck. "
            "Delete or rename it."
        )
        pull_round.write(row, PullProgress(says, outcome=PullOutcome.UNKNOWN), now=now)
        return
    pod = newest_pod(job, pull_round.pods_of(row))
    pull_round.is_in_motion |= pod is None
    about = ("Pod", pod.name) if pod else ("Job", job.name)
    failed, failed_message = failure_of(job)
    seen = pod_look(pod) if pod else None
    is_plain = seen is not None and not seen.waits
    events = [] if is_plain else _events_about(pull_round, row.namespace, *about)
    told = look_at(
        JobLook(
            image=row.image,
            system=row.system,
            made_at=row.made_at or now,
            failed=failed,
            failed_message=failed_message,
            pod=seen,
            events=[(event.reason or "", event.message or "") for event in events],
            failing_since=row.failing_since,
        ),
        now=now,
    )
    pull_round.write(row, told, now=now, made_at=row.made_at or now)


def _events_about(pull_round: PullRound, namespace: str, kind: str, name: str) -> list[EventSeen]:
    """Returns the Events. One list per round, none while nothing fails."""
    if namespace not in pull_round.warnings:
        pull_round.pull.keep_lease(now=pull_round.clock())
        pull_round.warnings[namespace] = client.list_warnings(pull_round.connection, namespace)
    return [event for event in pull_round.warnings[namespace] if (event.about.kind, event.about.name) == (kind, name)]
