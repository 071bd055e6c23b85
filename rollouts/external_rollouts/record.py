"""Write down what a round found of a followed rollout: where its nodes are, and what its gates say."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from rollouts.gates.base import Answer, Judgement
from rollouts.models import FollowedAnswer, FollowedNode, FollowedRollout
from rollouts.models.gate_answer import said_by

AT_ONCE = 500  # rows a statement


def write_moved(nodes: Iterable[FollowedNode]) -> None:
    FollowedNode.objects.bulk_update(nodes, ["state", "state_since", "is_lost"], batch_size=AT_ONCE)


def write_baselines(nodes: Iterable[FollowedNode]) -> None:
    FollowedNode.objects.bulk_update(nodes, ["baseline", "pod_hash"], batch_size=AT_ONCE)


def write_answers(
    rollout: FollowedRollout,
    judgements: Mapping[str, Judgement],
    current: Mapping[str, FollowedAnswer],
    *,
    now: datetime,
) -> bool:
    """One row a gate, and those of failures that are over. Whether a page would show another one now.

    What passed or waited before is nothing that anybody asks for: where a plan would have halted is.
    """
    made, replaced, as_before, is_other = list[FollowedAnswer](), list[int](), list[int](), False
    for gate, judgement in judgements.items():
        before = current.get(gate)
        answer = FollowedAnswer(rollout=rollout, gate=gate, **said_by(judgement, before, now=now))
        if before is None or not before.has_same_cause(answer):
            made.append(answer)
            replaced += [before.pk] if before else []
        elif before.says_the_same(answer):
            as_before.append(before.pk)
        else:
            is_other |= before.reason != answer.reason
            moved = {"reason": answer.reason, "measured": answer.measured, "since": answer.since, "at": now}
            FollowedAnswer.objects.filter(pk=before.pk).update(**moved)
    if as_before:
        FollowedAnswer.objects.filter(pk__in=as_before).update(at=now)
    if replaced:
        over = FollowedAnswer.objects.filter(pk__in=replaced)
        over.exclude(answer=Answer.FAIL).delete()
        over.update(is_current=False)
    FollowedAnswer.objects.bulk_create(made)
    return is_other or bool(made)
