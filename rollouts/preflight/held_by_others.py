"""Nodes of the object that another plan holds; that plan has precedence."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.models import Hold
from rollouts.preflight.subject import PreflightSubject
from wording.lists import names


def is_changed_by_others(subject: PreflightSubject) -> Iterator[Check]:
    plan, picks = subject.plan, subject.picks
    uids = {node.uid for node in (*picks.nodes, *picks.uncovered)}
    others = Hold.objects.in_force().filter(plan__cluster=plan.cluster_id).exclude(plan__object_uid=plan.object_uid)
    busy: dict[str, list[str]] = {}
    for hold in others.select_related("plan"):
        if hold.node_uid in uids:
            busy.setdefault(str(hold.plan), []).append(hold.node_name)
    for other, taken in busy.items():
        sentence = f"{other} is changing {names(tuple(sorted(taken)))}."
        yield Check("busy-nodes", sentence, "One change at a time on a node: end it first, or wait until it is over.")
