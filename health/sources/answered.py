"""When the telemetry of each cluster was last answered, as the number that pages and messages count it by."""

from collections.abc import Collection

from fleet.models import ExporterRound
from health.announce import number_of, telemetry_group
from health.models import TelemetrySource


def numbers(clusters: Collection[int] | None = None) -> dict[str, int]:
    """By topic: of its Prometheus, and where none is asked, of its exporters. None: of every cluster. Two queries."""
    sources, rounds = TelemetrySource.objects.filter(is_on=True), ExporterRound.objects.all()
    if clusters is not None:
        sources, rounds = sources.filter(cluster__in=clusters), rounds.filter(cluster__in=clusters)
    answered = dict(rounds.values_list("cluster_id", "read_at"))
    answered |= dict(sources.order_by().values_list("cluster_id", "answered_at"))
    return {telemetry_group(key): number_of(at) for key, at in answered.items() if at}
