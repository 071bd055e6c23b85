"""Adds, changes, tries and removes a cluster's telemetry source. All but the trial are recorded as decisions."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from edges import concurrent_edits
from fleet.models import Cluster
from health.inbox.orphaned_findings import is_reporting, mark_telemetry_lost, resolve_gpu_findings
from health.models import SourceState, TelemetrySource
from health.sources import snapshots, source_round
from health.sources.addresses import check_ca
from health.sources.exported_metrics import Exporting, exporting_in
from health.sources.secrets import SOURCE_SECRETS, NoSecret
from health.telemetry.metrics import METRICS, Metric
from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.client import Client
from health.telemetry.prometheus.hosts import check_host
from health.telemetry.prometheus.source import Prometheus
from health.telemetry.promql import BadMatchers, Matchers
from people.models import AuditEntry
from wording.numbers import count

GIVEN = ("url", "matchers", "user", "secret_from", "ca_file", "is_on")
WORDS = {"url": "address", "matchers": "label matchers", "secret_from": "secret", "ca_file": "CA", "is_on": "asked"}


class BadSource(ValueError):
    """Invalid input for a source; `field` names the invalid field."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field

    @property
    def problems(self) -> list[dict[str, str]]:
        return [{"field": self.field, "sentence": str(self)}]


@dataclass(frozen=True)
class Trial:
    """The result of one query of a source. An empty `trouble` means that it answers."""

    trouble: str
    devices: int = 0
    exported: tuple[Metric, ...] = ()
    notes: tuple[str, ...] = ()
    exporting: Exporting | None = None  # None: not counted yet

    @property
    def sentence(self) -> str:
        if self.trouble:
            return self.trouble
        said = (
            f"The source answers with {count(self.devices, 'device')} of this cluster and "
            f"{count(len(self.exported), 'metric')}."
        )
        return " ".join([said, *self._silent(), *self.notes])

    def _silent(self) -> Iterator[str]:
        if self.exporting is not None and self.exporting.never_reported:
            nodes = count(self.exporting.of, "node")
            yield f"It has no series for {self.exporting.never_reported} of {nodes} with GPUs."


def put_source(cluster: Cluster, *, actor: str, now: datetime, was: str = "", **given: Any) -> TelemetrySource:
    """Adds or changes the source. It is queried at once; its findings end if it is switched off.

    `was` is the `mark_of` the source when it was shown; empty means whatever is saved.

    :raises BadSource: naming the field
    :raises LostRace: when it changed since it was shown
    """
    fields = validated_settings(given)
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)  # two that add one at once
        source = TelemetrySource.objects.select_for_update().filter(cluster=cluster).first()  # a worker may take it up
        concurrent_edits.refuse_unseen(source, GIVEN, was=was, to=fields, labels=WORDS)
        before = {name: getattr(source, name) for name in GIVEN} if source else None
        source = source or TelemetrySource(cluster=cluster, added_by=actor, added_at=now)
        for name, value in fields.items():
            setattr(source, name, value)
        # Whoever asks the old one keeps nothing: their epoch is over.
        source.epoch, source.lease_until, source.next_look_at = source.epoch + 1, now, now
        source.changed_at, source.state_since, source.message, source.notes = now, now, "", []
        source.state = SourceState.WAITING if source.is_on else SourceState.OFF
        source.save()
        evidence = {"before": before, "after": {name: getattr(source, name) for name in GIVEN}}
        _record_in_audit(source, "telemetry.put", actor=actor, now=now, evidence=evidence)
        is_over = bool(before and before["is_on"]) and not is_reporting(cluster, now=now)
        if is_over:
            mark_telemetry_lost(cluster, now=now)
            transaction.on_commit(lambda: _forget(cluster.pk), robust=True)
    if is_over:
        resolve_gpu_findings(cluster, now=now)
    return source


def mark_of(source: TelemetrySource | None) -> str:
    """Returns a digest of all settings of the source, also of a missing one."""
    return concurrent_edits.mark_of(source, GIVEN)


def remove_source(source: TelemetrySource, *, actor: str, now: datetime, was: str = "") -> None:
    """Removes the source, its data and its findings. Findings stay if the exporters are read directly instead.

    :raises LostRace: when it changed since the mark `was`
    """
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update(no_key=True).get(pk=source.cluster_id)
        row = TelemetrySource.objects.filter(pk=source.pk).first()
        if row is None:
            return
        concurrent_edits.refuse_unseen(row, GIVEN, was=was, to={}, labels=WORDS)
        TelemetrySource.objects.filter(pk=source.pk).delete()
        _record_in_audit(
            source, "telemetry.remove", actor=actor, now=now, evidence={name: getattr(row, name) for name in GIVEN}
        )
        is_over = not is_reporting(cluster, now=now)
        if is_over:
            mark_telemetry_lost(cluster, now=now)
        transaction.on_commit(lambda: _forget(source.cluster_id), robust=True)
    if is_over:
        resolve_gpu_findings(cluster, now=now)


def _forget(cluster_id: int) -> None:
    snapshots.forget(cluster_id)


def try_source(cluster: Cluster, **given: Any) -> Trial:
    """Queries the source once and saves nothing.

    :raises BadSource: naming the field
    """
    now = timezone.now()
    source = TelemetrySource(
        cluster=cluster, lease_until=now, next_look_at=now, state_since=now, **validated_settings(given)
    )
    try:
        asked = source_round.round_of(source)
        with Client(asked.address) as client:
            taken = Prometheus(client, asked.matchers, asked.where).take(None, now=now.timestamp())
    except (Unusable, NoSecret) as error:
        return Trial(str(error))
    return trial_with(len(taken.snapshot.devices), taken.exported, taken.notes, exporting_in(taken, cluster))


def trial_with(
    devices: int, exported: Collection[str], notes: Iterable[str], exporting: Exporting | None = None
) -> Trial:
    """Returns the result of a source that answers. `exported` holds keys of metrics."""
    has = tuple(metric for key, metric in METRICS.items() if key in exported)
    return Trial("", devices, has, tuple(notes), exporting)


def validated_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Returns the validated settings.

    :raises BadSource: naming the field
    """
    fields = {name: given[name] for name in GIVEN if name in given}
    if "url" in fields:
        fields["url"] = fields["url"].strip()
        _check("url", check_host, fields["url"], may_be_loopback=settings.TELEMETRY_LOOPBACK)
    if "matchers" in fields:
        fields["matchers"] = _check("matchers", Matchers.read, fields["matchers"]).text
    if fields.get("secret_from"):
        _check("secret_from", SOURCE_SECRETS.check, fields["secret_from"])
    if fields.get("ca_file"):
        _check("ca_file", check_ca, fields["ca_file"])
    if fields.get("user") and not fields.get("secret_from"):
        raise BadSource("secret_from", "A user name needs a password. Name the place of the password.")
    if fields.get("secret_from") and fields.get("url", "").startswith("http://") and not settings.TELEMETRY_LOOPBACK:
        raise BadSource("url", "Use https:// with a password or token. Over http:// others could read it.")
    return fields


def _check(field: str, check: Any, *args: Any, **named: Any) -> Any:
    try:
        return check(*args, **named)
    except (Unusable, BadMatchers, NoSecret) as error:
        raise BadSource(field, str(error)) from error


def _record_in_audit(source: TelemetrySource, verb: str, *, actor: str, now: datetime, evidence: Any) -> None:
    AuditEntry.record(f"cluster:{source.cluster_id}", verb=verb, actor=actor, evidence=evidence, now=now)
