"""Our namespace, with the writer's Lease and the stop's ConfigMap, exists."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.preflight.live_checks.answers import LiveAnswer, barring_answer, passed, unanswered
from rollouts.preflight.live_checks.facts import LiveFacts, NamespaceState, NoAnswer


def is_there(facts: LiveFacts) -> Iterator[LiveAnswer]:
    plan, state = facts.plan, facts.namespace
    if state is None or isinstance(state, NoAnswer):
        yield unanswered(f"whether {plan.cluster} has the namespace {plan.own_namespace}", state)
    elif state is NamespaceState.ABSENT:
        title = f"{plan.cluster} has no namespace {plan.own_namespace}"
        steps = ("Apply deploy/rbac/quarterdeck.yaml, which creates it.",)
        summary = "Quarterdeck keeps its Lease there."
        yield barring_answer(Check("live-namespace", title=title, summary=summary, steps=steps))
    elif state is NamespaceState.GOING:
        title = f"The namespace {plan.own_namespace} of {plan.cluster} is being deleted"
        again = ("Wait until it is gone.", "Then apply deploy/rbac/quarterdeck.yaml, which creates it again.")
        yield barring_answer(Check("live-namespace", title=title, steps=again))
    else:
        yield passed(Check("live-namespace", title=f"The namespace {plan.own_namespace} exists", is_good=True))
