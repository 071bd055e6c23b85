"""Findings about external rollouts: a gate fails where a plan of ours would have halted."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from fleet.models import Cluster
from gpu.labels import UPGRADE_SKIP
from health.evaluation.finding_sources import FindingSource
from health.rules.base import Severity, Wrong
from rollouts.lifecycle import ExternalRolloutState
from rollouts.models import ExternalRollout
from rollouts.queries.external_rollouts import shown_external_rollouts, would_have_halted

LONGEST = 500  # characters that a finding keeps of a sentence


def failing_rollouts(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Wrong]]:  # noqa: ARG001
    """Yields findings as severe as a halted plan while nodes remain, since nothing stops such a rollout.

    Three queries.
    """
    rows = ExternalRollout.objects.filter(cluster=cluster, state=ExternalRolloutState.ROLLING).order_by("pk")
    for shown in shown_external_rollouts(rows):
        if not shown.failing:
            continue
        rollout, progress = shown.rollout, shown.progress
        by = rollout.driven_by or "others"
        sentence = f"{shown.what}, rolled out by {by}: {progress.sentence}. {would_have_halted(shown.failing)}"
        yield (
            f"external rollout {rollout.pk}",
            Wrong(
                Severity.CRITICAL if progress.before else Severity.WARNING,
                sentence if len(sentence) <= LONGEST else f"{sentence[: LONGEST - 1]}…",
                shown.advice,
                {"external_rollout": rollout.pk, "from": rollout.from_version, "to": rollout.to_version},
                why=" ".join(f"{each.gate} {','.join(each.nodes)}" for each in shown.failing),
            ),
        )


def page_of_external_rollout(evidence: Mapping[str, Any]) -> str:
    return reverse("external-rollout", args=[evidence["external_rollout"]])


FAILING = FindingSource(
    "external-rollout-failing",
    "Rollout by others fails",
    timedelta(0),
    failing_rollouts,
    "A rollout that others drive, in a cluster whose mode is follow, fails a gate on which a plan would have halted.",
    page_of_external_rollout,
    (
        "Open its page, and look at the nodes that the gate names, for whether the new version harms them.",
        "Where it does, tell whoever drives the rollout: they hold what has not begun, by the first command.",
        "They put the earlier version back while those are held: where the object comes from, or by the second.",
        f"Once that is done the held nodes go on: kubectl label node NODE {UPGRADE_SKIP}-, a few at a time.",
        "Where it does no harm nothing is to be done: the finding is over when the gate no longer fails.",
    ),
)
