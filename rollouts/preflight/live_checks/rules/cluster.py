"""The cluster answers, and is the one that the plan was written for (Z10)."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.preflight.live_checks.answers import LiveAnswer, LiveResult, barring_answer, passed, unanswered
from rollouts.preflight.live_checks.facts import LiveFacts, NoAnswer
from wording.reports import EvidenceItem


def answers(facts: LiveFacts) -> Iterator[LiveAnswer]:
    plan = facts.plan
    if facts.silence:
        title = f"The API server of {plan.cluster} does not answer"
        steps = ("Check that the worker can reach it (bin/manage doctor).", "Then check again.")
        answer = (EvidenceItem("Answer", facts.silence),)
        check = Check("live-silent", title=title, summary=facts.silence, evidence=answer, steps=steps)
        yield LiveAnswer(LiveResult.UNANSWERED, check, is_for_good=False)
    elif facts.cluster_uid is None or isinstance(facts.cluster_uid, NoAnswer):
        yield unanswered(f"whether it is {plan.cluster} that answers", facts.cluster_uid)
    elif facts.cluster_uid != plan.cluster_uid:
        title = f"Another cluster answers at the address of {plan.cluster}"
        uids = (EvidenceItem("UID found", facts.cluster_uid), EvidenceItem("UID expected", plan.cluster_uid))
        steps = ("Correct the address in its kubeconfig.", "If the cluster was rebuilt, accept it on its page.")
        summary = "The namespace kube-system has another UID."
        yield barring_answer(Check("live-cluster", title=title, summary=summary, evidence=uids, steps=steps))
    else:
        summary = "The namespace kube-system has the expected UID."
        yield passed(Check("live-cluster", title=f"Cluster {plan.cluster} answers", summary=summary, is_good=True))
