"""Write down what a round found of a followed rollout: where its nodes are, and what its gates say."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from rollouts.gates.base import Judgement
from rollouts.models import FollowedAnswer, FollowedNode, FollowedRollout
from rollouts.models.gate_answer import BLIND

AT_ONCE = 500  # rows a statement


def write_nodes(nodes: Iterable[FollowedNode]) -> None:
    columns = ["state", "state_since", "baseline", "pod_hash", "is_lost"]
    FollowedNode.objects.bulk_update(nodes, columns, batch_size=AT_ONCE)


def write_answers(
    rollout: FollowedRollout,
    judgements: Mapping[str, Judgement],
    current: Mapping[str, FollowedAnswer],
    *,
    now: datetime,
) -> bool:
    """As plans keep theirs: a row more where answer or cause changed. Whether a page would show another one now."""
    made, replaced, is_other = list[FollowedAnswer](), list[int](), False
    for gate, judgement in judgements.items():
        before, answer = current.get(gate), _answer(rollout, gate, judgement, current.get(gate), now=now)
        if before is None or _cause(before) != _cause(answer):
            made.append(answer)
            replaced += [before.pk] if before else []
            continue
        is_other |= before.because != answer.because
        FollowedAnswer.objects.filter(pk=before.pk).update(
            because=answer.because, measured=answer.measured, since=answer.since, at=now
        )
    FollowedAnswer.objects.filter(pk__in=replaced).update(is_current=False)
    FollowedAnswer.objects.bulk_create(made)
    return is_other or bool(made)


def _cause(answer: FollowedAnswer) -> tuple[str, str, list[str]]:
    return answer.answer, answer.cause, answer.nodes


def _answer(
    rollout: FollowedRollout, gate: str, judgement: Judgement, before: FollowedAnswer | None, *, now: datetime
) -> FollowedAnswer:
    """It goes on since it was given first, if nobody was blind in between."""
    goes_on = before is not None and before.answer == judgement.answer and now - before.at <= BLIND
    return FollowedAnswer(
        rollout=rollout,
        gate=gate,
        answer=judgement.answer,
        cause=judgement.cause[:200],
        because=judgement.because[:1000],
        measured=[[*pair] for pair in judgement.measured.items()],
        nodes=list(judgement.nodes),
        since=before.since if before is not None and goes_on else now,
        at=now,
    )
