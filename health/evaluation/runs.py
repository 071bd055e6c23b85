"""The times in which a cluster was evaluated. While Quarterdeck did not run, nobody saw a fault come and go."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Min

from fleet.models import Cluster
from health.models import EvaluationRun

ENDS_AFTER = timedelta(minutes=5)  # without a round: a restart and a slow round are shorter
WRITTEN_EVERY = timedelta(minutes=1)


def record_round(cluster: Cluster, *, now: datetime) -> None:
    """Extends the current run, or begins one. One query, and a second one each minute."""
    newest = EvaluationRun.objects.filter(cluster=cluster).order_by("-until").first()
    if newest is None or now - newest.until > ENDS_AFTER:
        EvaluationRun.objects.create(cluster=cluster, began_at=now, until=now)
    elif now - newest.until >= WRITTEN_EVERY:
        EvaluationRun.objects.filter(pk=newest.pk, until__lt=now).update(until=now)


def first_round_at(cluster_id: int) -> datetime | None:
    """Returns when the first recorded run began; None: no run is recorded. One query."""
    return EvaluationRun.objects.filter(cluster=cluster_id).aggregate(first=Min("began_at"))["first"]


def spans_without_rounds(cluster_id: int, *, since: datetime, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yields the times between `since` and `now` in which no round ran. Two queries.

    Nothing is known of the time before the first run: it is no gap.
    """
    runs = EvaluationRun.objects.filter(cluster=cluster_id)
    earlier = runs.filter(until__lte=since).order_by("-until")[:1]
    known = [*earlier, *runs.filter(until__gt=since).order_by("began_at")]
    reached = known[0].until if known else now
    for run in known[1:]:
        if run.began_at > max(reached, since):
            yield max(reached, since), run.began_at
        reached = max(reached, run.until)
    if now - reached > ENDS_AFTER:
        yield max(reached, since), now
