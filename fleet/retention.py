"""Deletion of old rows. Decisions are never deleted."""

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import models, transaction

from edges.slices import slices
from fleet.models import DomainEvent, GoneNode, NodeEvent, NodeNote, PodPlacement
from people.models import BrowserSession
from people.roster import device_authorizations
from people.sign_in import throttle

# Registered by apps above: called with `before` and `now`, each returns its number of deleted rows.
ALSO: list[Callable[..., int]] = []

log = structlog.get_logger(__name__)


def tidy(*, now: datetime) -> int:
    """Deletes old timelines, events, notes, placements, rows of apps above and sign-in tries. Returns the number."""
    before = now - timedelta(days=settings.KEEP_HISTORY_DAYS)
    gone = delete(NodeEvent.objects.filter(at__lt=before)) + delete(GoneNode.objects.filter(gone_at__lt=before))
    gone += delete(NodeNote.objects.filter(at__lt=before)) + delete(PodPlacement.objects.filter(until__lt=before))
    gone += delete(DomainEvent.objects.filter(at__lt=before).exclude(routed_at=None))  # else nobody would be notified
    gone += sum(tidy_more(before=before, now=now) for tidy_more in ALSO)
    gone += throttle.forget(now=now) + device_authorizations.forget(now=now)
    gone += delete(BrowserSession.objects.filter(expire_date__lt=now))
    if gone:
        log.info("tidied up", rows=gone)
    return gone


def delete(rows: models.QuerySet) -> int:
    """Deletes rows in short transactions and returns the number."""
    manager = rows.model._default_manager  # noqa: SLF001 - documented, in spite of its name
    keys = list(rows.order_by().values_list("pk", flat=True))
    for some in slices(keys):
        with transaction.atomic():
            manager.filter(pk__in=some.whole()).delete()
    return len(keys)
