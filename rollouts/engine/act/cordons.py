"""The cordon of a released node until its test Job completes, or of an affected node after a halt (Z7, Z8).

The annotation `nvidia.com/gpu-driver-upgrade.node-initial-state.unschedulable` tells the operator that the node was
cordoned before its upgrade, so the operator leaves the cordon in place (k8s-operator-libs pkg/upgrade,
ProcessValidationRequiredNodes and updateNodeToUncordonOrDoneState).
"""

from collections.abc import Iterable, Mapping

from django.db import transaction

from gpu.cordons import sentinel_keeps
from gpu.labels import CORDONED_BY, UPGRADE_STATE, WAS_CORDONED
from kube.structs import NodeSeen
from people.models import AuditEntry
from rollouts.components.base import Phase
from rollouts.engine.act.release_checks import why_stopped
from rollouts.engine.act.writer import Beside, NodeWrite, Writer, as_patch, nothing_else
from rollouts.engine.decide.acts import CordonAffected, CordonAgain, Uncordon
from rollouts.models import Cordon, Plan, Verb
from rollouts.models.cordon import CordonQuerySet, intend_cordons

NOT_OURS: Mapping[str, str | None] = {CORDONED_BY: None, WAS_CORDONED: None}
BY_MANAGER = "The node was uncordoned during its driver restart, as the driver manager does. It is cordoned again."
BY_SOMEBODY_HALTED = "Somebody uncordoned the node, but the halted plan keeps it cordoned. It is cordoned again."
BEFORE = "Somebody else had cordoned it before."
OF_GATE = "A gate halted the plan, and the plan cordons affected nodes then."
BY_SOMEBODY = "Somebody uncordoned the node before its test Job completed. It is cordoned again."


def rows_of(plan: Plan, uids: Iterable[str]) -> dict[str, Cordon]:
    """Returns the cordons in force by node UID, with one query."""
    return {row.node_uid: row for row in Cordon.objects.in_force().filter(plan=plan, node_uid__in=list(uids))}


def release_patch_part(writer: Writer, row: Cordon | None) -> Beside:
    """Returns the cordon's part of the patch that releases the node. A foreign cordon stays."""

    def written(seen: NodeSeen) -> NodeWrite:
        if not is_ours(writer, seen) and seen.is_unschedulable:
            return NodeWrite()
        return NodeWrite(annotations=_our_marks(writer, seen), is_unschedulable=True)

    return written if row else nothing_else


def recall_patch_part(writer: Writer, row: Cordon | None) -> Beside:
    return _cordon_removal(writer, is_driven=True) if row else nothing_else


def cordon_affected(writer: Writer, act: CordonAffected) -> str:
    """Records and writes the cordons of a halt by a gate, and returns the sentence of a stop that forbids it.

    :raises LostRace: when the plan has received a command since the decision
    """
    if stopped := why_stopped(writer):
        return stopped
    plan, now = writer.plan, writer.clock()
    with transaction.atomic():
        plan.keep_lease(now=now)
        Plan.objects.select_for_update(no_key=True).get(pk=plan.pk)
        writer.check_no_command()
        intend_cordons(plan, act.nodes, now=now, is_of_halt=True)
        evidence = {"nodes": sorted(act.nodes.values()), "halted_at": plan.state_since}
        AuditEntry.record(plan.mark, verb=Verb.CORDON, actor="engine", reason=OF_GATE, evidence=evidence, now=now)
    cordon_again(writer, CordonAgain(act.nodes))
    return ""


def cordon_again(writer: Writer, act: CordonAgain) -> None:
    """Writes a missing cordon again: a worker was killed after its write, or somebody uncordoned the node."""
    rows = rows_of(writer.plan, act.nodes)
    for uid, name in writer.some(act.nodes):
        if (row := rows.get(uid)) is None:
            continue
        was_away = False

        def cordoned(seen: NodeSeen) -> NodeWrite:
            nonlocal was_away
            was_away = not seen.is_unschedulable
            by_another = not is_ours(writer, seen) and seen.annotations.get(CORDONED_BY)
            if by_another or (row.is_of_halt and _is_foreign(writer, seen)):
                return NodeWrite()
            return NodeWrite(annotations=_our_marks(writer, seen), is_unschedulable=True)

        seen = writer.change(uid, name, as_patch(cordoned), rows=_of(row))
        if seen is not None and row.is_of_halt and not is_ours(writer, seen):
            _of(row).end(now=writer.clock(), left_reason=BEFORE)
            writer.note(uid, name, "cordon-left", BEFORE, now=writer.clock())
        if seen is None or not (seen.is_unschedulable and is_ours(writer, seen)):
            continue
        now = writer.clock()
        if row.is_of_halt and row.placed_at is None:
            writer.note(uid, name, "cordoned", "It takes no new pods until the plan resumes or rolls back.", now=now)
        if was_away and row.placed_at is not None:
            is_at_work = _phase(writer, seen) is Phase.AT_WORK  # no pod can have a GPU there yet
            by_somebody = BY_SOMEBODY_HALTED if row.is_of_halt else BY_SOMEBODY
            reason = BY_MANAGER if is_at_work else by_somebody
            _of(row).update(removed_at=row.removed_at if is_at_work else now)
            writer.note(uid, name, "cordon-removed", reason, now=now, actor="somebody else")
        _of(row).update(placed_at=row.placed_at or now, trouble="")


def uncordon(writer: Writer, act: Uncordon) -> None:
    rows = rows_of(writer.plan, act.nodes)
    # Those that a try has failed for come last: they must not keep the others waiting.
    in_turn = sorted(act.nodes.items(), key=lambda node: (node[0] in rows and rows[node[0]].trouble != "", node[1]))
    for uid, name in writer.some(dict(in_turn)):
        if (row := rows.get(uid)) is None:
            continue
        away = _cordon_removal(writer, is_driven=uid not in act.undriven)
        if (seen := writer.change(uid, name, as_patch(away), rows=_of(row))) is not None:
            if is_ours(writer, seen) and (mark := _of_sentinel(seen)):
                _of(row).update(trouble=f"NVSentinel quarantines or validates the node ({mark}). Wait for it.")
            settle(writer, seen, row)
        elif writer.is_gone(uid, name):
            _of(row).end(now=writer.clock(), left_reason="The node is gone.")


def read_back(writer: Writer, seen: NodeSeen, row: Cordon | None) -> None:
    if row is None:
        return
    now = writer.clock()
    if not is_ours(writer, seen):
        _of(row).end(now=now, left_reason=BEFORE)
        return
    _of(row).update(placed_at=now, trouble="")
    writer.note(seen.uid, seen.name, "cordoned", "The node takes no pods until its test Job completes.", now=now)


def settle(writer: Writer, seen: NodeSeen, row: Cordon | None) -> None:
    if row is None or is_ours(writer, seen):
        return
    now = writer.clock()
    left_reason = ""
    if seen.is_unschedulable and row.placed_at is not None:
        by = (
            "the operator, which has not finished its change"
            if _phase(writer, seen) in HANDED_OVER
            else "somebody else"
        )
        left_reason = f"The node is still cordoned, by {by}."
    _of(row).end(now=now, left_reason=left_reason)
    if row.placed_at is not None:
        writer.note(seen.uid, seen.name, "uncordoned", left_reason or "The node takes pods again.", now=now)


def is_ours(writer: Writer, seen: NodeSeen) -> bool:
    return seen.annotations.get(CORDONED_BY) == writer.plan.mark


def _is_foreign(writer: Writer, seen: NodeSeen) -> bool:
    """Returns whether a person or another tool has cordoned the node. The operator cordons nodes that it works on."""
    return seen.is_unschedulable and not is_ours(writer, seen) and _phase(writer, seen) not in HANDED_OVER


def _of_sentinel(seen: NodeSeen) -> str:
    """Returns the mark by which NVSentinel keeps the node out of service. Blank: it does not."""
    return sentinel_keeps(seen.labels, seen.annotations) if seen.is_unschedulable else ""


HANDED_OVER = frozenset({Phase.AT_WORK, Phase.FAILED})  # the operator has cordoned such a node itself


def _cordon_removal(writer: Writer, *, is_driven: bool) -> Beside:
    """Returns the write that removes our cordon.

    It waits while the operator works on the node (`is_driven`), and while NVSentinel keeps it out of service: an
    uncordon would cancel its break-fix (lifecycle R2).
    """

    def written(seen: NodeSeen) -> NodeWrite:
        phase = _phase(writer, seen)
        if not is_ours(writer, seen) or (is_driven and phase is Phase.AT_WORK) or _of_sentinel(seen):
            return NodeWrite()
        return NodeWrite(annotations=NOT_OURS, is_unschedulable=None if phase in HANDED_OVER else False)

    return written


def _our_marks(writer: Writer, seen: NodeSeen) -> Mapping[str, str | None]:
    """Returns our labels and annotations. The operator's annotation is included only while the operator may read it."""
    is_asked = _phase(writer, seen) is not Phase.DONE
    return {CORDONED_BY: writer.plan.mark} | ({WAS_CORDONED: "true"} if is_asked else {})


def _phase(writer: Writer, seen: NodeSeen) -> Phase:
    """Returns the upgrade phase. Without a hold label no controller cordons the node; only its pod is replaced."""
    if writer.component.hold is None:
        return Phase.DONE
    return writer.component.phase(seen.labels.get(UPGRADE_STATE, ""))


def _of(row: Cordon) -> CordonQuerySet:
    return Cordon.objects.in_force().filter(pk=row.pk)
