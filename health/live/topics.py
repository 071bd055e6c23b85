"""Topics of telemetry: `telemetry` for all visible clusters, `telemetry-7` for one.

A message follows each answered round.
"""

from dataclasses import dataclass

from edges.digits import whole_number
from fleet.live.topics import OpenedTopic
from fleet.models import Cluster
from health import announce
from health.sources.cluster_telemetry import numbers
from people.models import User


@dataclass(frozen=True)
class TelemetryTopics:
    def open(self, user: User, name: str) -> OpenedTopic | None:
        visible = Cluster.objects.visible_to(user)
        if name == announce.TELEMETRY_GROUP:
            keys = frozenset(map(announce.telemetry_group, visible.values_list("pk", flat=True)))
            return OpenedTopic((announce.TELEMETRY_GROUP,), keys)
        kind, _, key = name.partition("-")
        if kind != announce.TELEMETRY_GROUP or (pk := whole_number(key)) is None or not visible.filter(pk=pk).exists():
            return None
        return OpenedTopic((announce.telemetry_group(pk),), frozenset({announce.telemetry_group(pk)}))

    def sequences(self) -> dict[str, int]:
        return numbers()

    def last_seen(self) -> dict[str, str]:
        return {}
