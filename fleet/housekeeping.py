"""What is only of use for a while goes after a while. Decisions are no part of it: they stay for good."""

from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import models, transaction

from fleet.models import CrashLog, Finding, GoneNode, NodeEvent, Pod
from people import throttle

AT_ONCE = 500  # rows a transaction: a person's halt must find a gap

log = structlog.get_logger(__name__)


def tidy(*, now: datetime) -> int:
    """How many rows went: lines of timelines, findings long resolved, logs of pods that are gone, tries to sign in."""
    before = now - timedelta(days=settings.KEEP_HISTORY_DAYS)
    gone = (
        _delete(NodeEvent.objects.filter(at__lt=before))
        + _delete(GoneNode.objects.filter(gone_at__lt=before))
        + _delete(Finding.objects.filter(resolved_at__lt=before))
        + _delete(CrashLog.objects.exclude(pod_uid__in=Pod.objects.values("uid")))
    )
    gone += throttle.forget(now=now)
    if gone:
        log.info("tidied up", rows=gone)
    return gone


def _delete(rows: models.QuerySet) -> int:
    gone = 0
    while keys := list(rows.order_by().values_list("pk", flat=True)[:AT_ONCE]):
        with transaction.atomic():
            rows.model._default_manager.filter(pk__in=keys).delete()  # noqa: SLF001 - documented, in spite of its name
        gone += len(keys)
    return gone
