"""The outcome for a node whose pods are not evicted."""

from collections.abc import Sequence

from gpu.evictions import PASSED_OVER, SKIP_DRAIN, Deletion, EvictionPolicy
from kube.selectors import BadSelector, parse
from rollouts.preflight.facts import PodFacts
from wording.durations import spell
from wording.numbers import either


def while_it_tries(policy: EvictionPolicy) -> str:
    """Returns a sentence about refused evictions."""
    if not policy.pods.tries_for:
        return "The operator tries without an end, and the node stays cordoned."
    tries = f"The operator tries for {spell(policy.pods.tries_for)}"
    if policy.drain is None:
        return f"{tries}, then the node fails."
    drains = f"for {spell(policy.drain.tries_for)}" if policy.drain.tries_for else "without an end"
    return f"{tries}, then it drains the whole node, {drains}."


def once_refused(policy: EvictionPolicy, pods: Sequence[PodFacts]) -> str:
    """Returns what a following drain does with pods that are not deleted."""
    fails = either(len({pod.node for pod in pods}), "its node fails", "their nodes fail")
    if policy.drain is None:
        return f"Then {fails}."
    left = {pod for pod in pods if is_left(policy.drain, pod)}
    if any(is_refused(policy.drain, pod) for pod in pods if pod not in left):
        return f"A drain follows, which refuses as well, and {fails}."
    if left:
        stay = either(len(left), "it stays and keeps", "they stay and keep")
        return f"A drain follows, but {stay} the driver in use: the new one cannot load."
    return "The whole node is drained instead, with every other pod on it."


def is_drained(policy: EvictionPolicy, pods: Sequence[PodFacts]) -> bool:
    """Returns whether a following drain removes all these pods; otherwise nodes fail or the old driver stays in use."""
    drain = policy.drain
    return drain is not None and not any(is_left(drain, pod) or is_refused(drain, pod) for pod in pods)


def is_refused(deletion: Deletion, pod: PodFacts) -> bool:
    return bool(deletion.hindrances(owner_kind=pod.owner_kind, has_empty_dir=pod.has_empty_dir))


def is_left(drain: Deletion, pod: PodFacts) -> bool:
    """Returns whether a drain skips the pod. An unreadable selector is not known here."""
    if pod.owner_kind in PASSED_OVER or pod.labels.get(SKIP_DRAIN) == "true":
        return True
    try:
        return not parse(drain.pod_selector).matches(pod.labels)
    except BadSelector:
        return True
