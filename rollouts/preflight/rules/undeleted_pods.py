"""Pods with GPUs that the operator does not delete; one of them on a node keeps all others there."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu.evictions import Hindrance
from rollouts.checks import Check, each
from rollouts.preflight.facts import PodFacts, PreflightFacts
from rollouts.preflight.rules.eviction_outcomes import is_drained, once_refused
from wording.lists import one_or_count
from wording.reports import EvidenceItem, fit

CAUSES: Mapping[Hindrance, str] = {
    Hindrance.NO_CONTROLLER: "No controller, and podDeletion.force is off",
    Hindrance.EMPTY_DIR: "Local files (emptyDir), and podDeletion.deleteEmptyDir is off",
    Hindrance.DAEMON_SET: "The operator never deletes pods of a DaemonSet, nor other pods of such a node",
}
STEPS: Mapping[Hindrance, str] = {
    Hindrance.NO_CONTROLLER: "Let the pods end, or delete them before the turn of their node.",
    Hindrance.EMPTY_DIR: "Let the pods end, or delete them before the turn of their node.",
    Hindrance.DAEMON_SET: "Keep the DaemonSet off these nodes until they have changed.",
}


def fail_their_node(facts: PreflightFacts) -> Iterator[Check]:
    """Yields blockers where no drain removes them either. A person may override them with a reason."""
    for hindrance, pods in _refused(facts).items():
        if not is_drained(facts.policy, pods):
            yield Check(f"not-deleted-{hindrance}", may_be_overridden=True, **_report(facts, hindrance, pods))


def are_drained(facts: PreflightFacts) -> Iterator[Check]:
    for hindrance, pods in _refused(facts).items():
        if is_drained(facts.policy, pods):
            yield Check(f"not-deleted-{hindrance}", is_grave=True, **_report(facts, hindrance, pods))


def _refused(facts: PreflightFacts) -> Mapping[Hindrance, Sequence[PodFacts]]:
    refused: dict[Hindrance, list[PodFacts]] = {hindrance: [] for hindrance in CAUSES}
    for pod in facts.evicted:
        for hindrance in facts.policy.pods.hindrances(owner_kind=pod.owner_kind, has_empty_dir=pod.has_empty_dir):
            refused[hindrance].append(pod)
    return {hindrance: pods for hindrance, pods in refused.items() if pods}


def _report(facts: PreflightFacts, hindrance: Hindrance, pods: Sequence[PodFacts]) -> dict[str, Any]:
    return {
        "title": fit("The operator does not delete {}", one_or_count([pod.name for pod in pods], "pod")),
        "summary": once_refused(facts.policy, pods),
        "evidence": (
            EvidenceItem("Cause", CAUSES[hindrance]),
            *each((pod.name, f"node {pod.node}") for pod in pods),
        ),
        "steps": (STEPS[hindrance],),
    }
