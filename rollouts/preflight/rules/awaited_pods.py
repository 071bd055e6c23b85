"""Pods that the operator waits for before it drains a node."""

from collections.abc import Iterator

from kube.selectors import BadSelector, parse
from rollouts.checks import Check, each
from rollouts.preflight.facts import PreflightFacts
from wording.durations import spell
from wording.lists import names
from wording.numbers import are, either


def are_waited_for(facts: PreflightFacts) -> Iterator[Check]:
    policy = facts.policy
    if not policy.waits_for:
        return
    try:
        selector = parse(policy.waits_for)
    except BadSelector as bad:
        sentence = f"waitForCompletion.podSelector cannot be read here. {bad}"
        yield Check("waits-unread", sentence, "Write it as a label selector, as in app=train.")
        return
    pods = [pod for pod in facts.pods if pod.labels and selector.matches(pod.labels)]
    if not pods:
        return
    those = f"{names(sorted(pod.name for pod in pods))} {are(len(pods))} waited for"
    about = each(f"{pod.name} on {pod.node}" for pod in pods)
    if policy.waits_at_most:
        sentence = f"{those}, for {spell(policy.waits_at_most)} at most; then they are evicted all the same."
        yield Check("waits", sentence, "Where that is too short for them, raise its timeoutSeconds.", about=about)
    else:
        stand = either(len({pod.node for pod in pods}), "its node stands", "their nodes stand")
        sentence = f"{those} without an end: until then {stand} cordoned, in a slot of the operator."
        yield Check("waits-forever", sentence, "Set waitForCompletion.timeoutSeconds.", is_grave=True, about=about)
