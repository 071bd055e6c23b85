"""When the telemetry of each cluster was last answered, as the number that pages and messages count it by."""

from collections.abc import Collection

from fleet.models import Cluster
from health.announce import number_of, telemetry_group

COLUMNS = ("pk", "telemetry_source__is_on", "telemetry_source__answered_at", "exporter_round__read_at")


def numbers(clusters: Collection[int] | None = None) -> dict[str, int]:
    """By topic: of its Prometheus, and where none is asked, of its exporters. None: of every cluster. One query.

    While a Prometheus is on no exporter is asked, also before it has answered for the first time.
    """
    seen = Cluster.objects.all() if clusters is None else Cluster.objects.filter(pk__in=clusters)
    answered = {
        key: answered_at if is_on else read_at
        for key, is_on, answered_at, read_at in seen.order_by().values_list(*COLUMNS)
    }
    return {telemetry_group(key): number_of(at) for key, at in answered.items() if at}
