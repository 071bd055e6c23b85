"""Deletes Jobs; a row is done only when Job and pod were read back as deleted."""

from kube import client
from operations.test_jobs.job_manifest import is_ours
from operations.test_jobs.pull_progress import PullOutcome, PullProgress
from rollouts.image_pulls.base import PullRound, redacted_line
from rollouts.models import PullJob


def record_unfinished_pulls(pull_round: PullRound) -> None:
    told = PullProgress(
        f"The pull on this node was not finished. {pull_round.pull.ends_reason}", outcome=PullOutcome.UNKNOWN
    )
    for row in pull_round.rows().in_the_cluster().filter(outcome=""):
        pull_round.write(row, told, now=pull_round.clock())


def delete(pull_round: PullRound, row: PullJob) -> str:
    """Deletes a Job, and returns why it cannot be deleted; empty means deleted or deleting."""
    pull_round.is_in_motion = True
    if row.pk not in pull_round.jobs:
        return ""  # It was made in this round: the next one sees it.
    job = pull_round.jobs[row.pk]
    if job is None or not is_ours(row.wanted, job.labels, job.annotations):
        if not pull_round.may_still_land(row) and not pull_round.pods_of(row):
            PullJob.objects.filter(pk=row.pk, gone_at=None).update(gone_at=pull_round.clock(), trouble="")
        return ""
    if job.metadata.deletion_timestamp is not None:
        return ""
    pull_round.take_writer_lease()
    pull_round.pull.keep_lease(now=pull_round.clock())
    try:
        client.delete_job(pull_round.connection, job)
    except (client.Absent, client.Conflict):
        return ""  # Deleted, or replaced by another Job: the next round finds out.
    except client.Forbidden as refusal:
        by_hand = f"kubectl -n {row.namespace} delete job {row.job_name}"
        PullJob.objects.filter(pk=row.pk).update(
            trouble=redacted_line(f"Quarterdeck may not delete the Job: {refusal} By hand: {by_hand}")
        )
        return f"Quarterdeck may not delete a Job. By hand: {by_hand}"
    return ""
