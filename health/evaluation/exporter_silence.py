"""Of which nodes the newest frame has samples, and how busy their boards are."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from fleet.models import Cluster
from health.models import Finding
from health.models.finding import FindingQuerySet
from health.rules.exporter_silent import ExporterSilent
from health.telemetry.base import STALE_AFTER_S, UnplacedXids
from health.telemetry.hours import utilisation
from health.telemetry.snapshot import Frame


@dataclass(frozen=True)
class Hearing:
    """Of which nodes samples come in now, and of which any ever did."""

    now: frozenset[str]
    ever: frozenset[str]
    frame: Frame | None = None  # that it is from
    unplaced_xids: UnplacedXids = field(default_factory=dict)

    @cached_property
    def uuids(self) -> Mapping[tuple[str, int | None], str]:
        """Of boards, by their node's name and their index: where two have one, of the one that spoke last."""
        if self.frame is None:
            return {}
        pairs = zip(self.frame.newest, self.frame.devices, strict=True)
        spoke = sorted(pairs, key=lambda pair: pair[0])  # by that alone: what has no number is compared with none
        return {(device.node_name, device.index): device.uuid for _, device in spoke}

    def busy(self, uuids: Collection[str], *, least: float) -> set[str]:
        """Those of these boards that are so busy now, or of which nothing says it."""
        return {uuid for uuid in uuids if not self._busiest.get(uuid, math.inf) < least}

    @cached_property
    def _busiest(self) -> Mapping[str, float]:
        """By board, what the busiest of its slices says. Infinite: one says nothing."""
        if self.frame is None:
            return {}
        found: dict[str, float] = {}
        pairs = zip(self.frame.devices, utilisation(self.frame, self.frame.taken_at - STALE_AFTER_S), strict=True)
        for device, value in pairs:
            found[device.uuid] = max(found.get(device.uuid, 0.0), value if value == value else math.inf)
        return found


def called_silent(cluster: Cluster) -> frozenset[str]:
    """Nodes that were silent when somebody last listened."""
    return frozenset(of_silent_nodes().filter(cluster=cluster).values_list("node__name", flat=True))


def of_silent_nodes() -> FindingQuerySet:
    """What says of nodes that are there that nothing is heard of their GPUs."""
    told = Finding.objects.unresolved().filter(rule=ExporterSilent.key, cause=ExporterSilent.SILENT)
    return told.filter(node__isnull=False).order_by()
