"""Our namespace, with the writer's Lease and the stop's ConfigMap, exists."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.preflight.live_checks.answers import LiveAnswer, barred, passed, unanswered
from rollouts.preflight.live_checks.facts import LiveFacts, NamespaceState, NoAnswer


def is_there(facts: LiveFacts) -> Iterator[LiveAnswer]:
    plan, state = facts.plan, facts.namespace
    if state is None or isinstance(state, NoAnswer):
        yield unanswered(f"whether {plan.cluster} has the namespace {plan.own_namespace}", state)
    elif state is NamespaceState.ABSENT:
        sentence = f"{plan.cluster} has no namespace {plan.own_namespace}, where the Lease of who writes there is kept."
        yield barred(Check("live-namespace", sentence, "Apply deploy/rbac/quarterdeck.yaml, which makes it."))
    elif state is NamespaceState.GOING:
        sentence = f"The namespace {plan.own_namespace} of {plan.cluster} is being deleted: no Lease can be made in it."
        fix = "Wait until it is gone, then apply deploy/rbac/quarterdeck.yaml, which makes it again."
        yield barred(Check("live-namespace", sentence, fix))
    else:
        sentence = f"The namespace {plan.own_namespace} is there."
        yield passed(Check("live-namespace", sentence, is_good=True))
