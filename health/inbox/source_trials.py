"""Trying a source before it is saved: a person asks, a worker asks the source, and what came of it is read here.

A worker does it, as it is who would ask it from then on: from where it runs, with the secrets and the CA that it has.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction

from fleet.models import Cluster, LostLease
from health import wake
from health.inbox.telemetry_sources import BadSource, Trial, checked, trial_with, try_source
from health.models import TelemetryTrial, TrialState
from health.sources.exported_metrics import Exporting
from people.models import AuditEntry

TRIED = ("url", "matchers", "user", "secret_from", "ca_file")
OVER = frozenset({TrialState.ANSWERED, TrialState.TROUBLED, TrialState.LOST})
log = structlog.get_logger(__name__)


class TrialOpen(Exception):
    """Another of the cluster is on its way."""

    def __init__(self, trial: TelemetryTrial) -> None:
        super().__init__(f"{trial.asked_by} has {trial.url} tried for {trial.cluster.name}: wait for what it says.")
        self.trial = trial


def ask_trial(cluster: Cluster, *, actor: str, now: datetime, **given: Any) -> TelemetryTrial:
    """Have a worker try it: nothing of the cluster's source changes. One of a cluster at a time.

    It is kept as a decision, as a saved one is: a secret of ours is sent to where somebody says.

    :raises BadSource: naming the field; TrialOpen
    """
    fields = checked({name: given[name] for name in TRIED if name in given})
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)  # two that ask at once
        other = TelemetryTrial.objects.open_at(now).filter(cluster=cluster).select_related("cluster").first()
        if other is not None:
            raise TrialOpen(other)
        trial = TelemetryTrial.objects.create(cluster=cluster, asked_by=actor, asked_at=now, **fields)
        AuditEntry.record(f"cluster:{cluster.pk}", verb="telemetry.try", actor=actor, evidence=fields, now=now)
        wake.wake_telemetry_trial(trial.pk)
    return trial


def run_trial(trial_id: int, *, clock: Callable[[], datetime]) -> None:
    """Ask its source once, in a worker. One that another worker has begun, or nobody waits for, is left alone."""
    trial = TelemetryTrial.take(trial_id, now=clock())
    if trial is None:
        return
    try:
        said = try_source(trial.cluster, **{name: getattr(trial, name) for name in TRIED})
    except BadSource as refusal:  # here, and not where it was asked for: this worker has other settings
        said = Trial(str(refusal))
    try:
        trial.end(
            now=clock(), trouble=said.trouble, devices=said.devices,
            exported=[metric.key for metric in said.exported], notes=list(said.notes),
            nodes=said.exporting.written() if said.exporting else None,
        )  # fmt: skip
    except LostLease as lost:
        log.warning("a source was tried for too long", reason=str(lost))


def told_of(trial: TelemetryTrial, *, now: datetime) -> str:
    """How far it is, or what came of it, in one sentence."""
    match trial.state_at(now):
        case TrialState.WAITING:
            return "No worker has begun to ask it yet."
        case TrialState.ASKING:
            return "A worker asks it."
        case TrialState.LOST if trial.begun_at is None:
            return "No worker has asked it: is one running that works off the queue “default”?"
        case TrialState.LOST:
            return "The worker that asked it has not said what came of it: it was stopped, or died. Try it again."
    said = trial_with(trial.devices, trial.exported, trial.notes, exporting_by(trial))
    return trial.trouble or said.sentence


def exporting_by(trial: TelemetryTrial) -> Exporting | None:
    """As it was when it was tried. None: nobody has counted."""
    return None if trial.nodes is None else Exporting.read(trial.exported, trial.nodes)
