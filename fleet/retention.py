"""What is only of use for a while goes after a while. Decisions are no part of it: they stay for good."""

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import models, transaction

from fleet.models import GoneNode, NodeEvent, NodeNote, PodPlacement
from people.sign_in import throttle

AT_ONCE = 500  # rows a transaction: a person's halt must find a gap
# What the apps above have that gets old: given `before` and `now`, each says how many rows went.
ALSO: list[Callable[..., int]] = []

log = structlog.get_logger(__name__)


def tidy(*, now: datetime) -> int:
    """How many rows went: timelines, notes, placements of pods, what the apps above have, tries to sign in."""
    before = now - timedelta(days=settings.KEEP_HISTORY_DAYS)
    gone = delete(NodeEvent.objects.filter(at__lt=before)) + delete(GoneNode.objects.filter(gone_at__lt=before))
    gone += delete(NodeNote.objects.filter(at__lt=before)) + delete(PodPlacement.objects.filter(until__lt=before))
    gone += sum(tidy_more(before=before, now=now) for tidy_more in ALSO)
    gone += throttle.forget(now=now)
    if gone:
        log.info("tidied up", rows=gone)
    return gone


def delete(rows: models.QuerySet) -> int:
    """How many rows went, in short transactions."""
    gone = 0
    while keys := list(rows.order_by().values_list("pk", flat=True)[:AT_ONCE]):
        with transaction.atomic():
            rows.model._default_manager.filter(pk__in=keys).delete()  # noqa: SLF001 - documented, in spite of its name
        gone += len(keys)
    return gone
