"""Pods that the operator waits for before it drains a node."""

from collections.abc import Iterator

from kube.selectors import BadSelector, parse
from rollouts.checks import Check, each
from rollouts.preflight.facts import PreflightFacts
from wording.durations import spell
from wording.lists import one_or_count
from wording.reports import fit


def are_waited_for(facts: PreflightFacts) -> Iterator[Check]:
    policy = facts.policy
    if not policy.waits_for:
        return
    try:
        selector = parse(policy.waits_for)
    except BadSelector as bad:
        title = "waitForCompletion.podSelector cannot be read"
        steps = ("Write it as a label selector, as in app=train.",)
        yield Check("waits-unread", title=title, summary=str(bad), steps=steps)
        return
    pods = [pod for pod in facts.pods if pod.labels and selector.matches(pod.labels)]
    if not pods:
        return
    items = each((pod.name, f"node {pod.node}") for pod in pods)
    pods_shown = one_or_count([pod.name for pod in pods], "pod")
    if policy.waits_at_most:
        title = fit("The operator waits {} for {}", spell(policy.waits_at_most), pods_shown)
        steps = ("If that is too short, raise timeoutSeconds of waitForCompletion.",)
        yield Check("waits", title=title, summary="Then it evicts them.", evidence=items, steps=steps)
    else:
        title = fit("The operator waits without a limit for {}", pods_shown)
        steps = ("Set waitForCompletion.timeoutSeconds.",)
        summary = "Until they end, their nodes are cordoned and use slots of the operator."
        yield Check("waits-forever", title=title, summary=summary, evidence=items, steps=steps, is_grave=True)
