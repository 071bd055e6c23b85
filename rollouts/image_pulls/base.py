from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from kube import client
from kube.redaction import redacted
from kube.structs import PodSeen
from kube.structs.events import EventSeen
from operations.test_jobs.job_manifest import is_ours
from operations.test_jobs.pull_progress import PullProgress
from operations.writer_lease import take_writer_lease
from rollouts.models import ImagePull, PullJob
from rollouts.models.transitions import record_event

LONGEST = 500  # characters of a foreign message
LANDED_BY = timedelta(minutes=1)  # a request that we gave up may still reach the API server
BY_ITSELF = "quarterdeck"


@dataclass
class PullRound:
    """The common state of a round: the turn, and what the cluster showed at its begin."""

    pull: ImagePull
    connection: client.Connection
    clock: Callable[[], datetime]
    may_write: bool = False
    is_in_motion: bool = False  # Jobs start or end, so the next round is soon
    seen_at: datetime | None = None
    jobs: dict[int, client.JobSeen | None] = field(default_factory=dict)  # by their rows
    pods: list[PodSeen] = field(default_factory=list)
    warnings: dict[str, list[EventSeen]] = field(default_factory=dict)  # by namespace

    def learn_whether_it_ends(self) -> None:
        self.pull.refresh_from_db(fields=["ends_reason"])

    def rows(self):
        return PullJob.objects.filter(pull=self.pull).select_related("pull").order_by("position")

    def pods_of(self, row: PullJob) -> list[PodSeen]:
        """Returns the pods with the row's labels since its request, of any Job."""
        return [
            pod
            for pod in self.pods
            if pod.namespace == row.namespace and is_ours(row.wanted, pod.labels, pod.annotations)
        ]

    def may_still_land(self, row: PullJob) -> bool:
        """Returns whether a request for the Job may still arrive."""
        if row.intended_at is None or row.made_at is not None:
            return False
        return self.seen_at is None or self.seen_at - row.intended_at < LANDED_BY

    def write(
        self,
        row: PullJob,
        told: PullProgress,
        *,
        now: datetime,
        made_at: datetime | None = None,
        gone_at: datetime | None = None,
    ) -> None:
        outcome = told.outcome.value if told.outcome else ""
        columns: dict[str, Any] = {
            "says": told.says[:1000],
            "said": redacted_line(told.said),
            "took": told.took,
            "outcome": outcome,
        }
        columns["told_at"] = now if outcome else None
        columns["failing_since"] = (row.failing_since or now) if told.is_failing else None
        columns |= {"made_at": made_at} if made_at else {}
        columns |= {"gone_at": gone_at} if gone_at else {}
        with transaction.atomic():
            self.pull.keep_lease(now=now)
            if PullJob.objects.filter(pk=row.pk, outcome="").update(**columns) and outcome:
                reason = f"{row.node_name}, {row.image}: {told.says}"
                self.tell(f"image-{outcome}", reason, now=now)

    def tell(self, to: str, reason: str, *, now: datetime) -> None:
        record_event(plan=self.pull.plan, what="note", was="", to=to, now=now, actor="engine", reason=reason)

    def take_writer_lease(self) -> None:
        if not self.may_write:
            take_writer_lease(self.connection, self.pull.plan.cluster, now=self.clock())
            self.may_write = True


def redacted_line(words: str) -> str:
    """Returns the text in one line, redacted."""
    return redacted(" ".join(words[: 4 * LONGEST].split()))[:LONGEST]
