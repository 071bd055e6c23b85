"""Pods with GPUs that the operator does not delete; one of them on a node keeps all others there."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from gpu.evictions import Hindrance
from rollouts.checks import Check, each
from rollouts.preflight.facts import PodFacts, PreflightFacts
from rollouts.preflight.rules.eviction_outcomes import is_drained, once_refused
from wording.lists import names
from wording.numbers import either

SENTENCES: Mapping[Hindrance, Callable[[int], str]] = {
    Hindrance.NO_CONTROLLER: lambda number: (
        f"{either(number, 'has', 'have')} no controller, and podDeletion.force is off: "
        f"the operator does not delete {either(number, 'it', 'them')}."
    ),
    Hindrance.EMPTY_DIR: lambda number: (
        f"{either(number, 'keeps', 'keep')} files on the node (emptyDir), and podDeletion.deleteEmptyDir is off: "
        f"the operator does not delete {either(number, 'it', 'them')}."
    ),
    Hindrance.DAEMON_SET: lambda number: (
        f"{either(number, 'requests', 'request')} GPUs and {either(number, 'is', 'are')} a DaemonSet's: "
        "the operator deletes no such pod, and none of its node then."
    ),
}
FIXES: Mapping[Hindrance, str] = {
    Hindrance.NO_CONTROLLER: "Let it end or delete it before its node's turn.",
    Hindrance.EMPTY_DIR: "Let it end or delete it before its node's turn.",
    Hindrance.DAEMON_SET: "Keep the DaemonSet off these nodes until they are through.",
}


def fail_their_node(facts: PreflightFacts) -> Iterator[Check]:
    """Yields blockers where no drain removes them either. A person may override them with a reason."""
    for hindrance, pods in _refused(facts).items():
        if not is_drained(facts.policy, pods):
            sentence, fix, about = _said(facts, hindrance, pods)
            yield Check(f"not-deleted-{hindrance}", sentence, fix, may_be_overridden=True, about=about)


def are_drained(facts: PreflightFacts) -> Iterator[Check]:
    for hindrance, pods in _refused(facts).items():
        if is_drained(facts.policy, pods):
            sentence, fix, about = _said(facts, hindrance, pods)
            yield Check(f"not-deleted-{hindrance}", sentence, fix, is_grave=True, about=about)


def _refused(facts: PreflightFacts) -> Mapping[Hindrance, Sequence[PodFacts]]:
    refused: dict[Hindrance, list[PodFacts]] = {hindrance: [] for hindrance in SENTENCES}
    for pod in facts.evicted:
        for hindrance in facts.policy.pods.hindrances(owner_kind=pod.owner_kind, has_empty_dir=pod.has_empty_dir):
            refused[hindrance].append(pod)
    return {hindrance: pods for hindrance, pods in refused.items() if pods}


def _said(facts: PreflightFacts, hindrance: Hindrance, pods: Sequence[PodFacts]) -> tuple[str, str, tuple[str, ...]]:
    sentence = f"{names(sorted(pod.name for pod in pods))} {SENTENCES[hindrance](len(pods))}"
    fix = f"{once_refused(facts.policy, pods)} {FIXES[hindrance]}"
    return sentence, fix, each(f"{pod.name} on {pod.node}" for pod in pods)
