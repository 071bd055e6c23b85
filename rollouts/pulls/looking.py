"""What became of the Jobs that were made: each by its name, their pods in one list, warnings where something fails."""

from kube import client
from kube.structs import PodSeen
from kube.structs.events import EventSeen
from kube.structs.meta import find
from kube.structs.pod import ContainerStateTerminated
from rollouts.images.job import pods_for
from rollouts.images.progress import JobLook, PodLook, PullOutcome, PullProgress
from rollouts.images.progress import look as look_at
from rollouts.jobs.manifest import is_ours
from rollouts.models import PullJob
from rollouts.pulls.base import PullRound

NEVER_SEEN = "ContainerStatusUnknown"  # what a kubelet says of a container that it may not have made (pkg/kubelet)


def see(pull_round: PullRound) -> None:
    """Jobs first: what one that is gone had made meanwhile is in the list of pods, which comes after."""
    rows = list(pull_round.rows().in_the_cluster())
    pull_round.seen_at = pull_round.clock()
    for row in rows:
        pull_round.pull.keep_lease(now=pull_round.clock())
        pull_round.jobs[row.pk] = client.get_job(pull_round.connection, row.namespace, row.job_name)
    for namespace in sorted({row.namespace for row in rows}):
        pull_round.pull.keep_lease(now=pull_round.clock())
        selector = pods_for(pull_round.pull.plan.mark)
        pull_round.pods += client.list_pods(pull_round.connection, namespace=namespace, label_selector=selector)


def look(pull_round: PullRound, row: PullJob) -> None:
    if row.pk not in pull_round.jobs:
        return
    job, now = pull_round.jobs[row.pk], pull_round.clock()
    if job is None:
        if row.made_at is not None and not pull_round.pull.ends_because:
            told = PullProgress(
                "Its Job was deleted by somebody else before it was through.", outcome=PullOutcome.UNKNOWN
            )
            pull_round.write(row, told, now=now)
        return
    if not is_ours(row.wanted, job.labels, job.annotations):
        says = f"There is another Job {row.job_name} in {row.namespace}, which is not ours: delete or rename it."
        pull_round.write(row, PullProgress(says, outcome=PullOutcome.UNKNOWN), now=now)
        return
    pod = _pod_of(pull_round, row, job)
    pull_round.is_in_motion |= pod is None
    about = ("Pod", pod.name) if pod else ("Job", job.name)
    failed = find((job.status.conditions if job.status else None), "Failed")
    is_failed = failed is not None and failed.status == "True"
    seen = pod_look(pod) if pod else None
    is_plain = seen is not None and not seen.waits
    events = [] if is_plain else _events_about(pull_round, row.namespace, *about)
    told = look_at(
        JobLook(
            image=row.image,
            system=row.system,
            made_at=row.made_at or now,
            failed=(failed.reason or "Failed") if failed and is_failed else "",
            failed_message=(failed.message or "") if failed and is_failed else "",
            pod=seen,
            events=[(event.reason or "", event.message or "") for event in events],
            failing_since=row.failing_since,
        ),
        now=now,
    )
    pull_round.write(row, told, now=now, made_at=row.made_at or now)


def _pod_of(pull_round: PullRound, row: PullJob, job: client.JobSeen) -> PodSeen | None:
    """Made by this very Job, the newest: it makes another one where its first was taken from it."""
    made = [pod for pod in pull_round.pods_of(row) if pod.metadata.owner and pod.metadata.owner.uid == job.uid]
    return max(made, key=lambda pod: str(pod.metadata.creation_timestamp or ""), default=None)


def _events_about(pull_round: PullRound, namespace: str, kind: str, name: str) -> list[EventSeen]:
    """One list a round, and none while nothing fails."""
    if namespace not in pull_round.warnings:
        pull_round.pull.keep_lease(now=pull_round.clock())
        pull_round.warnings[namespace] = client.list_warnings(pull_round.connection, namespace)
    return [event for event in pull_round.warnings[namespace] if (event.about.kind, event.about.name) == (kind, name)]


def pod_look(pod: PodSeen) -> PodLook:
    statuses = pod.status.container_statuses or []
    state = statuses[0].state if statuses else None
    ended = state.terminated if state else None
    waiting = state.waiting if state else None
    scheduled = pod.scheduled
    is_homeless = scheduled is not None and scheduled.status == "False"
    return PodLook(
        phase=pod.status.phase,
        reason=pod.status.reason or "",
        message=pod.status.message or "",
        unscheduled=(scheduled.message or scheduled.reason or "no reason given") if scheduled and is_homeless else "",
        begun_at=pod.status.start_time,
        waits=(waiting.reason or "") if waiting and waiting.reason != "ContainerCreating" else "",
        waits_message=(waiting.message or "") if waiting else "",
        has_run=_has_run(ended) or bool(state and state.running),
        ran_at=ended.started_at if ended else None,
    )


def _has_run(ended: ContainerStateTerminated | None) -> bool:
    return ended is not None and ended.started_at is not None and ended.reason != NEVER_SEEN
