"""Deletes what is old: resolved findings, tried sources, logs of gone pods, hours, minutes and usage of GPUs."""

from datetime import datetime, timedelta

from django.conf import settings

from fleet.models import Pod
from fleet.retention import delete
from health.models import (
    CrashLog,
    EvaluationRun,
    Finding,
    NamespaceUsage,
    OwnerUsage,
    TelemetryTrial,
    UsageDay,
    WorkloadActivity,
)
from health.sources import hours, minutes

USAGE = (UsageDay, NamespaceUsage, OwnerUsage, WorkloadActivity)
KEEP_TRIALS = timedelta(days=1)  # decisions are in the audit chain


def tidy(*, before: datetime, now: datetime) -> int:
    """Returns the number of deleted rows; partitions of hours count as one each."""
    oldest = now - timedelta(days=settings.KEEP_GPU_HOURS_DAYS)
    gone = hours.forget_before(oldest)
    gone += sum(delete(model.objects.filter(day__lt=before.date())) for model in USAGE)
    tried = TelemetryTrial.objects.filter(asked_at__lt=now - KEEP_TRIALS)
    old = Finding.objects.filter(resolved_at__lt=before)
    gone += delete(minutes.too_old(now=now)) + delete(EvaluationRun.objects.filter(until__lt=before))
    return gone + delete(old) + delete(tried) + delete(CrashLog.objects.exclude(pod_uid__in=Pod.objects.values("uid")))
