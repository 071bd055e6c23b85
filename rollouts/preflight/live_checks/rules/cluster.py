"""The cluster answers, and is the one that the plan was written for (Z10)."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.preflight.live_checks.answers import LiveAnswer, LiveResult, barred, passed, unanswered
from rollouts.preflight.live_checks.facts import LiveFacts, NoAnswer


def answers(facts: LiveFacts) -> Iterator[LiveAnswer]:
    plan = facts.plan
    if facts.silence:
        sentence = f"The API server of {plan.cluster} gave no answer. {facts.silence}"
        fix = "Look whether it can be reached from the worker (bin/manage doctor), and ask again."
        yield LiveAnswer(LiveResult.UNANSWERED, Check("live-silent", sentence, fix), is_for_good=False)
    elif facts.cluster_uid is None or isinstance(facts.cluster_uid, NoAnswer):
        yield unanswered(f"whether it is {plan.cluster} that answers", facts.cluster_uid)
    elif facts.cluster_uid != plan.cluster_uid:
        sentence = (
            f"Another cluster answers at the address of {plan.cluster}: its kube-system has the UID "
            f"{facts.cluster_uid}, and not {plan.cluster_uid}."
        )
        fix = f"Correct the address in its kubeconfig. Where {plan.cluster} was rebuilt, accept it on its page."
        yield barred(Check("live-cluster", sentence, fix))
    else:
        sentence = f"It is {plan.cluster} that answers: its kube-system has the UID that is known."
        yield passed(Check("live-cluster", sentence, is_good=True))
