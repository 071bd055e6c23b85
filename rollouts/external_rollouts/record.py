"""Records a round of an external rollout: states of nodes and gate results."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db import transaction

from edges.slices import slices
from rollouts.gates.base import Answer, GateResult
from rollouts.models import ExternalGateAnswer, ExternalRollout, ExternalRolloutNode
from rollouts.models.gate_answer import answer_columns

COLUMNS = ("node_name", "state", "state_since", "is_lost", "baseline", "pod_hash")


def write_nodes(rollout: ExternalRollout, nodes: Iterable[ExternalRolloutNode], *, now: datetime) -> None:
    """Writes nodes, new ones and known ones, in short transactions (Z40). A later round writes what a crash left out.

    :raises LostRace: when another worker has the rollout
    """
    for some in slices(nodes):
        with transaction.atomic():
            rollout.keep_lease(now=now)
            ExternalRolloutNode.objects.bulk_create(
                some.whole(), update_conflicts=True, unique_fields=["rollout", "node_uid"], update_fields=COLUMNS
            )


def write_answers(
    rollout: ExternalRollout,
    results: Mapping[str, GateResult],
    current: Mapping[str, ExternalGateAnswer],
    *,
    now: datetime,
) -> bool:
    """Records one row per gate, and past failures; returns whether the page changes.

    Earlier passes and waits are not kept; places where a plan would have halted are.
    """
    made, replaced, as_before, is_other = list[ExternalGateAnswer](), list[int](), list[int](), False
    for gate, result in results.items():
        before = current.get(gate)
        answer = ExternalGateAnswer(rollout=rollout, gate=gate, **answer_columns(result, before, now=now))
        if before is None or not before.has_same_cause(answer):
            made.append(answer)
            replaced += [before.pk] if before else []
        elif before.has_same_content(answer):
            as_before.append(before.pk)
        else:
            is_other |= before.sentence != answer.sentence
            ExternalGateAnswer.objects.filter(pk=before.pk).update(at=now, **answer.moving)
    if as_before:
        ExternalGateAnswer.objects.filter(pk__in=as_before).update(at=now)
    if replaced:
        over = ExternalGateAnswer.objects.filter(pk__in=replaced)
        over.exclude(answer=Answer.FAIL).delete()
        over.update(is_current=False)
    ExternalGateAnswer.objects.bulk_create(made)
    return is_other or bool(made)
