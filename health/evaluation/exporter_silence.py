"""Nodes with samples in the newest telemetry snapshot, and the load of their boards."""

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
from health.telemetry.snapshot import TelemetrySnapshot


@dataclass(frozen=True)
class ReportingNodes:
    """Nodes with fresh samples, and nodes that ever had samples."""

    now: frozenset[str]
    ever: frozenset[str]
    snapshot: TelemetrySnapshot | None = None  # that it is from
    unplaced_xids: UnplacedXids = field(default_factory=dict)

    @cached_property
    def uuids(self) -> Mapping[tuple[str, int | None], str]:
        """Returns the UUIDs of boards by node name and index.

        If two boards share an index, the latest sample counts.
        """
        if self.snapshot is None:
            return {}
        pairs = zip(self.snapshot.newest, self.snapshot.devices, strict=True)
        spoke = sorted(pairs, key=lambda pair: pair[0])  # by number alone: GPUs without a number are not compared
        return {(device.node_name, device.index): device.uuid for _, device in spoke}

    def busy(self, uuids: Collection[str], *, least: float) -> set[str]:
        """Returns those boards whose load is at least `least`, or unknown."""
        return {uuid for uuid in uuids if not self._busiest.get(uuid, math.inf) < least}

    @cached_property
    def _busiest(self) -> Mapping[str, float]:
        """Returns by board the load of its busiest slice; infinite if any slice does not report it."""
        if self.snapshot is None:
            return {}
        found: dict[str, float] = {}
        pairs = zip(
            self.snapshot.devices, utilisation(self.snapshot, self.snapshot.taken_at - STALE_AFTER_S), strict=True
        )
        for device, value in pairs:
            found[device.uuid] = max(found.get(device.uuid, 0.0), value if value == value else math.inf)
        return found


def called_silent(cluster: Cluster) -> frozenset[str]:
    """Returns the nodes that were silent at the last evaluation."""
    return frozenset(of_silent_nodes().filter(cluster=cluster).values_list("node__name", flat=True))


def of_silent_nodes() -> FindingQuerySet:
    """Returns findings about existing nodes without GPU telemetry."""
    told = Finding.objects.unresolved().filter(rule=ExporterSilent.key, fingerprint=ExporterSilent.SILENT)
    return told.filter(node__isnull=False).order_by()
