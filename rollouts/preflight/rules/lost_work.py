"""Work that the operator's policy would destroy (Z12); starting such a plan needs a reason."""

from collections.abc import Iterator, Sequence

from gpu.evictions import Deletion
from rollouts.checks import Check, each
from rollouts.preflight.facts import PodFacts, PreflightFacts
from rollouts.preflight.rules.eviction_outcomes import is_left, is_refused
from wording.lists import one_or_count
from wording.reports import fit

STEPS = ("Let the pods end first.", "Or start the plan with a reason. It is stored, and approvers see it.")


def is_lost(facts: PreflightFacts) -> Iterator[Check]:
    deleted, stuck = _split_deleted_pods(facts)
    yield from _checks_of_lost_pods("podDeletion", facts.policy.pods, deleted)
    if facts.policy.drain is not None:
        yield from _checks_of_lost_pods(
            "drain", facts.policy.drain, _drained(facts, facts.policy.drain, stuck), code="drain-loses"
        )


def _split_deleted_pods(facts: PreflightFacts) -> tuple[list[PodFacts], set[str]]:
    """Returns the deleted pods, and the nodes where one pod cannot be deleted so that none is."""
    stuck = {pod.node for pod in facts.evicted if is_refused(facts.policy.pods, pod)}
    return [pod for pod in facts.evicted if pod.node not in stuck], stuck


def _drained(facts: PreflightFacts, drain: Deletion, nodes: set[str]) -> list[PodFacts]:
    """Returns the pods that a drain removes; none on nodes where one pod is refused."""
    there = [pod for pod in facts.pods if pod.node in nodes and not is_left(drain, pod)]
    refusing = {pod.node for pod in there if is_refused(drain, pod)}
    return [pod for pod in there if pod.node not in refusing]


def _checks_of_lost_pods(how: str, by: Deletion, pods: Sequence[PodFacts], *, code: str = "loses") -> Iterator[Check]:
    alone = [pod for pod in pods if by.is_forced and not pod.owner_kind]
    keeping = [pod for pod in pods if by.deletes_empty_dir and pod.has_empty_dir]
    if alone:
        title = fit("{}.force deletes {}", how, one_or_count([pod.name for pod in alone], "pod"))
        yield _check(f"{code}-unmanaged", title, "No controller creates the pods again.", alone)
    if keeping:
        title = fit(
            "{}.deleteEmptyDir deletes local files of {}", how, one_or_count([pod.name for pod in keeping], "pod")
        )
        yield _check(f"{code}-empty-dir", title, "The emptyDir volumes of the pods are lost.", keeping)


def _check(code: str, title: str, summary: str, pods: Sequence[PodFacts]) -> Check:
    items = each((pod.name, f"node {pod.node}") for pod in pods)
    return Check(code, title=title, summary=summary, evidence=items, steps=STEPS, may_be_overridden=True)
