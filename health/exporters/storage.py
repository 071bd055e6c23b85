"""Exporter readings as rows. An answer replaces all rows of its node; a failed read leaves them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from fleet.models import Cluster, ExporterReading, ExporterRound, Pod
from fleet.models.exporter import ROUND_LEASE
from health.exporters.requests import ExporterAnswer
from health.telemetry.exporter import ExporterDevice, ExporterPod

RESULT_COLUMNS = ("devices", "read_at", "tried_at", "refused", "refused_since")
REFUSED = ("tried_at", "refused", "refused_since")
Uids = Mapping[tuple[str, str, str], list[str]]  # by node, namespace and name of the pod; the newest first


@dataclass
class Keeper:
    cluster: Cluster
    epoch: int
    known: dict[str, ExporterReading] = field(default_factory=dict)  # by node
    answered: int = 0
    has_changed: bool = False  # a change that a page shows

    @classmethod
    def of(cls, cluster: Cluster, epoch: int) -> "Keeper":
        rows = ExporterReading.objects.filter(cluster=cluster)
        return cls(cluster, epoch, {row.node_name: row for row in rows})

    def keep(self, answers: Sequence[ExporterAnswer], *, now: datetime) -> None:
        """Stores answers.

        :raises LostLease: when another worker has taken the round over
        """
        uids = _uids(self.cluster, answers)
        samples = [self._reading(answer, uids, now=now) for answer in answers if not answer.refused]
        refused = [self._refused(answer, now=now) for answer in answers if answer.refused]
        with transaction.atomic():
            ExporterRound.keep(self.cluster.pk, epoch=self.epoch, lease_until=now + ROUND_LEASE)
            _upsert(samples, RESULT_COLUMNS)
            _upsert(refused, REFUSED)
        self.answered += len(samples)

    def _reading(self, answer: ExporterAnswer, uids: Uids, *, now: datetime) -> ExporterReading:
        devices = [_device_as_dict(device, answer.node_name, uids) for device in answer.devices]
        before = self.known.get(answer.node_name)
        self.has_changed |= before is None or before.devices != devices or bool(before.refused)
        return self._row(answer, devices=devices, read_at=now, tried_at=now)

    def _refused(self, answer: ExporterAnswer, *, now: datetime) -> ExporterReading:
        before = self.known.get(answer.node_name)
        self.has_changed |= before is None or not before.refused
        since = before.refused_since if before and before.refused_since else now
        return self._row(answer, tried_at=now, refused=answer.refused[:500], refused_since=since)

    def _row(self, answer: ExporterAnswer, **columns: Any) -> ExporterReading:
        return ExporterReading(cluster=self.cluster, node_name=answer.node_name, **columns)


def _upsert(rows: list[ExporterReading], columns: Sequence[str]) -> None:
    if rows:
        ExporterReading.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["cluster", "node_name"], update_fields=columns
        )


def _device_as_dict(device: ExporterDevice, node_name: str, uids: Uids) -> dict[str, Any]:
    pods = [
        {"uid": _uid(pod, node_name, uids), "namespace": pod.namespace, "name": pod.name, "container": pod.container}
        for pod in device.pods
    ]
    written = {
        "uuid": device.uuid,
        "index": device.index,
        "gi_id": device.gi_id,
        "profile": device.profile,
        "pods": pods,
    }
    return written | {"jobs": list(device.jobs)} if device.jobs else written


def _uid(pod: ExporterPod, node_name: str, uids: Uids) -> str:
    """Returns the UID of the current pod of that name. A departed pod of the same name holds no GPU."""
    seen = uids.get((node_name, pod.namespace, pod.name), [])
    return (pod.uid if pod.uid in seen else "") if pod.uid else next(iter(seen), "")


def _uids(cluster: Cluster, answers: Sequence[ExporterAnswer]) -> Uids:
    names = {pod.name for answer in answers for device in answer.devices for pod in device.pods}
    if not names:
        return {}
    rows = Pod.objects.filter(cluster=cluster, node_name__in=[answer.node_name for answer in answers], name__in=names)
    found: dict[tuple[str, str, str], list[str]] = {}
    newest_first = rows.not_done().order_by("-created_at")
    for place in newest_first.values_list("node_name", "namespace", "name", "uid"):
        found.setdefault(place[:3], []).append(place[3])
    return found
