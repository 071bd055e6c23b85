"""Findings long resolved and logs of pods that are gone go with what else gets old."""

from datetime import datetime, timedelta

from django.conf import settings

from fleet.housekeeping import delete
from fleet.models import Pod
from health.models import CrashLog, Finding
from health.sources import hours


def tidy(*, before: datetime, now: datetime) -> int:
    """How many rows went; partitions of hours count as one each."""
    gone = hours.forget_before(now - timedelta(days=settings.KEEP_GPU_HOURS_DAYS))
    old = Finding.objects.filter(resolved_at__lt=before)
    return gone + delete(old) + delete(CrashLog.objects.exclude(pod_uid__in=Pod.objects.values("uid")))
