"""Deletes old rehearsals of drafts."""

from datetime import datetime

from fleet.retention import delete
from rollouts.models import Rehearsal


def tidy(*, before: datetime, now: datetime) -> int:  # noqa: ARG001
    """Returns the number of deleted rows. A rehearsal that a worker has still to run stays."""
    return delete(Rehearsal.objects.filter(finished_at__lt=before))
