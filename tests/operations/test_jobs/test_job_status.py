"""The pod of a Job: the newest of this very Job, and none of another Job with its name."""

from types import SimpleNamespace

from operations.test_jobs.job_status import newest_pod


def a_pod(owner: str, created: str):
    return SimpleNamespace(metadata=SimpleNamespace(owner=SimpleNamespace(uid=owner), creation_timestamp=created))


def test_the_newest_pod_of_this_very_job():
    job = SimpleNamespace(uid="mine")
    older, newer = a_pod("mine", "2026-11-29T10:00:00Z"), a_pod("mine", "2026-11-29T10:05:00Z")
    theirs = a_pod("another", "2026-11-29T10:09:00Z")
    alone = SimpleNamespace(metadata=SimpleNamespace(owner=None, creation_timestamp="2026-11-29T10:09:00Z"))

    assert newest_pod(job, [older, theirs, newer, alone]) is newer  # type: ignore[arg-type]
    assert newest_pod(job, [theirs, alone]) is None  # type: ignore[arg-type]
