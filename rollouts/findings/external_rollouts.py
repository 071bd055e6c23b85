"""Findings about external rollouts: a gate fails where a plan of ours would have halted."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from fleet.models import Cluster
from gpu.labels import UPGRADE_SKIP
from health.evaluation.finding_sources import FindingSource
from health.rules.base import Problem, Severity
from rollouts.lifecycle import ExternalRolloutState
from rollouts.models import ExternalRollout
from rollouts.queries.external_rollouts import shown_external_rollouts, would_have_halted
from wording.reports import LONGEST_SUMMARY, EvidenceItem, first_items, fit


def failing_rollouts(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:  # noqa: ARG001
    """Yields findings as severe as a halted plan while nodes remain, since nothing stops such a rollout.

    Three queries.
    """
    rows = ExternalRollout.objects.filter(cluster=cluster, state=ExternalRolloutState.ROLLING).order_by("pk")
    for shown in shown_external_rollouts(rows):
        if not shown.failing:
            continue
        rollout, progress = shown.rollout, shown.progress
        failing = first_items(EvidenceItem(f"Gate {each.gate}", each.sentence) for each in shown.failing)
        yield (
            f"external rollout {rollout.pk}",
            Problem(
                severity=Severity.CRITICAL if progress.before else Severity.WARNING,
                title=fit("Rollout of {} {} fails a gate", rollout.object_kind, rollout.object_name),
                summary=fit("{}", would_have_halted(shown.failing), longest=LONGEST_SUMMARY),
                evidence=(
                    EvidenceItem("Rollout", shown.what),
                    EvidenceItem("Driven by", rollout.driven_by or "others"),
                    EvidenceItem("Progress", progress.sentence),
                    *failing,
                ),
                steps=(FAILING_STEPS[0], *filter(None, (shown.advice,)), *FAILING_STEPS[2:]),
                facts={"external_rollout": rollout.pk},
                identity=" ".join(f"{each.gate} {','.join(each.nodes)}" for each in shown.failing),
            ),
        )


def page_of_external_rollout(facts: Mapping[str, Any]) -> str:
    return reverse("external-rollout", args=[facts["external_rollout"]])


FAILING_STEPS = (
    "Open the rollout's page. Check whether the new version harms the nodes that the gate names.",
    "If it does, tell the owner of the rollout to hold the queued nodes and to restore the earlier version.",
    f"After that, release the held nodes a few at a time: kubectl label node NODE {UPGRADE_SKIP}-",
    "If it does no harm, do nothing. The finding is resolved when the gate no longer fails.",
)
FAILING = FindingSource(
    "external-rollout-failing",
    "Rollout by others fails",
    timedelta(0),
    failing_rollouts,
    "A rollout that others drive fails a gate on which a plan would have halted. The cluster's mode is follow.",
    page_of_external_rollout,
    FAILING_STEPS,
)
