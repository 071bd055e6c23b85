"""Findings long resolved and logs of pods that are gone go with what else gets old."""

from datetime import datetime

from fleet.housekeeping import delete
from fleet.models import Pod
from health.models import CrashLog, Finding


def tidy(*, before: datetime) -> int:
    """How many rows went."""
    old = Finding.objects.filter(resolved_at__lt=before)
    return delete(old) + delete(CrashLog.objects.exclude(pod_uid__in=Pod.objects.values("uid")))
