"""Work that the operator's policy would destroy (Z12); starting such a plan needs a reason."""

from collections.abc import Iterator, Sequence

from gpu.evictions import Deletion
from rollouts.checks import Check, each
from rollouts.preflight.facts import PodFacts, PreflightFacts
from rollouts.preflight.rules.eviction_outcomes import is_left, is_refused
from wording.lists import names
from wording.numbers import either

FIX = "Let it end first; or start the plan with a reason of its own, which is kept and which approvers see."


def is_lost(facts: PreflightFacts) -> Iterator[Check]:
    deleted, stuck = _parted(facts)
    yield from _lost("podDeletion", facts.policy.pods, deleted)
    if facts.policy.drain is not None:
        yield from _lost("drain", facts.policy.drain, _drained(facts, facts.policy.drain, stuck), code="drain-loses")


def _parted(facts: PreflightFacts) -> tuple[list[PodFacts], set[str]]:
    """Returns the deleted pods, and the nodes where one pod cannot be deleted so that none is."""
    stuck = {pod.node for pod in facts.evicted if is_refused(facts.policy.pods, pod)}
    return [pod for pod in facts.evicted if pod.node not in stuck], stuck


def _drained(facts: PreflightFacts, drain: Deletion, nodes: set[str]) -> list[PodFacts]:
    """Returns the pods that a drain removes; none on nodes where one pod is refused."""
    there = [pod for pod in facts.pods if pod.node in nodes and not is_left(drain, pod)]
    refusing = {pod.node for pod in there if is_refused(drain, pod)}
    return [pod for pod in there if pod.node not in refusing]


def _lost(how: str, by: Deletion, pods: Sequence[PodFacts], *, code: str = "loses") -> Iterator[Check]:
    alone = [pod for pod in pods if by.is_forced and not pod.owner_kind]
    keeping = [pod for pod in pods if by.deletes_empty_dir and pod.has_empty_dir]
    if alone:
        again = f"no controller makes {either(len(alone), 'it', 'them')} again"
        sentence = f"{how}.force is on: {_names(alone)} {either(len(alone), 'goes', 'go')} for good, as {again}."
        yield _check(f"{code}-unmanaged", sentence, alone)
    if keeping:
        keep = either(len(keeping), "keeps", "keep")
        sentence = f"{how}.deleteEmptyDir is on: what {_names(keeping)} {keep} on the node (emptyDir) is lost."
        yield _check(f"{code}-empty-dir", sentence, keeping)


def _check(code: str, sentence: str, pods: Sequence[PodFacts]) -> Check:
    about = each(f"{pod.name} on {pod.node}" for pod in pods)
    return Check(code, sentence, FIX, may_be_overridden=True, about=about)


def _names(pods: Sequence[PodFacts]) -> str:
    return names(sorted(pod.name for pod in pods))
