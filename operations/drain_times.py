"""Durations of past drains in a cluster, by finished operations (lifecycle R45)."""

from datetime import datetime, timedelta

from django.db.models import F

from fleet.models import Cluster
from operations.lifecycle import NodeProgress
from operations.models import OperationNode
from wording.durations import spell
from wording.numbers import count, was

WITHIN = timedelta(days=90)
MOST, FEWEST = 200, 3  # drains: the newest count, and fewer than three say little


def drain_times(cluster: Cluster, *, nodes: int, at_once: int, now: datetime) -> str:
    """Returns the median and the 90th percentile of the last drains, and the time of these nodes by the median.

    Failed and cancelled drains do not count: they have no duration, and the sentence says how many failed.
    """
    rows = OperationNode.objects.of_kinds("drain").filter(
        operation__cluster=cluster, state_since__gte=now - WITHIN, step_since__isnull=False
    )
    done = rows.filter(state=NodeProgress.DONE).annotate(took=F("state_since") - F("step_since"))
    times = sorted(done.order_by("-pk").values_list("took", flat=True)[:MOST])
    failed = rows.filter(state=NodeProgress.FAILED).count()
    if len(times) < FEWEST:
        return f"No estimate: {count(len(times), 'drain')} {was(len(times))} measured in {spell(WITHIN)}."
    median, slow = times[len(times) // 2], times[min(len(times) - 1, len(times) * 9 // 10)]
    waves = -(-nodes // at_once)
    ended = f" {count(failed, 'other drain')} failed." if failed else ""
    these = f" These nodes: about {spell(median * waves)}, {at_once} at once." if waves > 1 else ""
    took = f"{count(len(times), 'drain')} took {spell(median)} in the median, {spell(slow)} at the 90th percentile."
    return f"{took}{ended}{these}"
