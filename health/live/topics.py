"""`telemetry`: every cluster one may see. `telemetry-7`: one of them. Each has news when a round was answered."""

from dataclasses import dataclass

from edges.digits import whole
from fleet.live.topics import OpenedTopic
from fleet.models import Cluster, ExporterRound
from health import announce
from health.models import TelemetrySource
from people.models import User


@dataclass(frozen=True)
class TelemetryTopics:
    def open(self, user: User, name: str) -> OpenedTopic | None:
        visible = Cluster.objects.visible_to(user)
        if name == announce.TELEMETRY_GROUP:
            keys = frozenset(map(announce.telemetry_group, visible.values_list("pk", flat=True)))
            return OpenedTopic((announce.TELEMETRY_GROUP,), keys)
        kind, _, key = name.partition("-")
        if kind != announce.TELEMETRY_GROUP or (pk := whole(key)) is None or not visible.filter(pk=pk).exists():
            return None
        return OpenedTopic((announce.telemetry_group(pk),), frozenset({announce.telemetry_group(pk)}))

    def sequences(self) -> dict[str, int]:
        """By when each was last answered: its Prometheus, and where none is asked, its exporters."""
        sources = dict(TelemetrySource.objects.filter(is_on=True).order_by().values_list("cluster_id", "answered_at"))
        answered = dict(ExporterRound.objects.values_list("cluster_id", "read_at")) | sources
        return {announce.telemetry_group(pk): announce.number_of(at) for pk, at in answered.items() if at}

    def heard(self) -> dict[str, str]:
        return {}
