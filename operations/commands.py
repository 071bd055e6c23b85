"""Commands of people on operations: start, pause, resume, retry, cancel. A worker carries them out."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from edges.idempotency import EarlierCommand, IdempotencyKey, is_done
from edges.transition_errors import IllegalMove, LostRace
from fleet.models import Cluster, ClusterMode, Node
from health.models import Finding
from operations.followers import open_followers
from operations.impact import OperationImpact, impact_of
from operations.kinds import KINDS, MOST_NODES
from operations.lifecycle import NEW_NODE, NodeProgress, OperationState
from operations.models import Operation, OperationNode
from operations.models.operation import BLOCKED, STARTED
from operations.refusals import BadOperation, OperationRefused
from operations.steps import STEPS
from people.models import AuditEntry
from people.rights import NotAllowed
from wording.durations import spell
from wording.instants import to_the_second

PROPOSED = "Another person has to approve it. Nothing is written before."
APPROVED_WITHIN = timedelta(hours=24)  # an older proposal is made again


def preview(
    cluster: Cluster,
    kind: str,
    nodes: Sequence[Node],
    *,
    actor: str,
    now: datetime,
    options: Mapping[str, Any] | None = None,
) -> OperationImpact:
    """:raises BadOperation: when the kind is unknown, or there are no or too many nodes"""
    if kind not in KINDS:
        raise BadOperation(("kind", f"Choose one of {', '.join(KINDS)}."))
    if not nodes:
        raise BadOperation(("nodes", "Choose at least one node. An empty selection is never “all”."))
    if len(nodes) > MOST_NODES:
        raise BadOperation(("nodes", f"At most {MOST_NODES} nodes at once."))
    most, why = KINDS[kind].most_nodes, KINDS[kind].why_fewer
    if len(nodes) > most:
        raise BadOperation(("nodes", f"{'Choose one node' if most == 1 else f'At most {most} nodes'}: {why}."))
    return impact_of(cluster, nodes, KINDS[kind].steps, actor=actor, now=now, options=options)


def start(
    cluster: Cluster,
    kind: str,
    nodes: Sequence[Node],
    *,
    actor: str,
    reason: str,
    options: Mapping[str, Any] | None = None,
    typed_count: int | None = None,
    seen: str = "",
    key: str = "",
    claim: Callable[[], None] = lambda: None,
    now: datetime,
) -> Operation:
    """Records the operation with its frozen list of nodes, and wakes a worker. Repeating the key returns the same one.

    `claim`: runs first in the transaction, after the preview: what it locks is locked shortly.

    `seen`: the sentence of the preview that the asker saw; blank: not compared, unless a step needs it (lifecycle R49).
    Above 20 % of a production pool nothing runs before another person approves it (lifecycle R47). Operations of one
    person within 24 h count together. A node that was never in service needs no approval.

    :raises BadOperation: when the input is invalid
    :raises OperationRefused: when the cluster may not be changed, or the key belongs to another command
    """
    asked = _key_of(kind, nodes, reason, options or {}, actor=actor, key=key)
    if (earlier := _earlier(asked)) is not None:
        return earlier
    options = _complete(kind, options or {}, nodes)
    finding = _finding_of(options, nodes)
    if cluster.mode != ClusterMode.OPERATE:
        raise OperationRefused(f"Quarterdeck may not change {cluster.name}: its mode is {cluster.mode}.")
    impact = preview(cluster, kind, nodes, actor=actor, now=now, options=options)
    _check(impact, typed_count=typed_count, seen=seen)
    try:
        with transaction.atomic():
            claim()
            needs_approval = impact.approvals and not options.get(NEW_NODE)
            state = OperationState.PROPOSED if needs_approval else OperationState.RUNNING
            operation = Operation.objects.create(
                cluster=cluster, steps=list(KINDS[kind].steps), options=options, state=state, state_since=now,
                reason=reason, asked_by=actor, asked_at=now, key=key, body_digest=asked.body,
                preview=impact.as_kept, next_look_at=now, lease_until=now,
            )  # fmt: skip
            OperationNode.objects.bulk_create(
                OperationNode(
                    operation=operation, position=position, node_uid=node.uid, node_name=node.name, state_since=now
                )
                for position, node in enumerate(impact.in_order)
            )
            if finding is not None:
                open_followers(operation, next(node for node in nodes if node.pk == finding.node_id), finding)
            evidence = {"nodes": [node.name for node in nodes], "options": operation.options, "impact": impact.sentence}
            _record_in_audit(operation, f"start-{kind}", actor=actor, reason=reason, now=now, evidence=evidence)
            if state == OperationState.PROPOSED:
                operation.write_event(BLOCKED, now=now, actor=actor, reason=PROPOSED)
            else:
                operation.write_event(STARTED, now=now, actor=actor, reason=reason)
    except IntegrityError as clash:
        if (earlier := _earlier(asked)) is not None:
            return earlier
        raise OperationRefused("The same key was used for another operation at the same time.") from clash
    Operation.queue_round(operation.pk)
    return operation


def _check(impact: OperationImpact, *, typed_count: int | None, seen: str) -> None:
    """:raises BadOperation: when the number of nodes is not confirmed, or `seen` is missing
    :raises OperationRefused: when the impact is another one than the asker saw, or bars the start
    """
    if not seen and any(STEPS[key].needs_seen for key in impact.steps):
        raise BadOperation(("seen", "Read the preview, and send its sentence."))
    if seen and seen != impact.sentence:
        raise OperationRefused(f"The impact changed since you saw it. It is now: {impact.sentence}")
    if vetoes := impact.vetoes:
        raise OperationRefused(" ".join(vetoes[:3]) + (f" And {len(vetoes) - 3} more." if len(vetoes) > 3 else ""))
    if impact.needs_typed_count and typed_count != len(impact.nodes):
        raise BadOperation(("typed_count", f"Type the number of nodes, {len(impact.nodes)}, to confirm."))


def _complete(kind: str, options: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
    """:raises BadOperation: when a step lacks an option"""
    given = dict(options)
    for key in _steps_of(kind):
        given = STEPS[key].complete(given, nodes)
    return given


def _steps_of(kind: str) -> tuple[str, ...]:
    """Returns its steps; of an unknown kind none, since the preview refuses it."""
    return KINDS[kind].steps if kind in KINDS else ()


def _finding_of(options: Mapping[str, Any], nodes: Sequence[Node]) -> Finding | None:
    """Returns the finding that the operation is started from. None: none is named.

    :raises BadOperation: when it is about none of the nodes
    """
    if not options.get("finding"):
        return None
    found = Finding.objects.filter(pk=options["finding"], node__in=[node.pk for node in nodes]).first()
    if found is None:
        raise BadOperation(("finding", "The finding does not name any of these nodes."))
    return found


def approve(operation: Operation, *, actor: str, reason: str, seen: str = "", now: datetime) -> None:
    """Starts a proposed operation. `seen`: the impact that the approver saw; blank: the one when it was asked.

    :raises NotAllowed: when the approver asked for it
    :raises OperationRefused: when its nodes, its impact or its age are not what the approver decides about
    :raises IllegalMove: when it is not proposed
    :raises LostRace: when somebody else was first
    """
    if operation.state != OperationState.PROPOSED:
        raise IllegalMove("An operation", OperationState(operation.state), OperationState.RUNNING)
    if actor == operation.asked_by:
        raise NotAllowed("You asked for this operation: another person approves it.")
    if now - operation.asked_at > APPROVED_WITHIN:
        raise OperationRefused(
            f"It was proposed more than {spell(APPROVED_WITHIN)} ago. Cancel the operation and start another."
        )
    impact = impact_now(operation, now=now)
    if impact is None:
        raise OperationRefused("One of its nodes left the cluster. Cancel the operation and start another.")
    if impact.vetoes:
        raise OperationRefused(" ".join(impact.vetoes[:3]))
    if impact.sentence != (seen or operation.preview["sentence"]):
        raise OperationRefused(f"The impact changed. It is now: {impact.sentence} Look at it, then approve again.")
    with transaction.atomic():
        _move_operation(operation, OperationState.RUNNING, "approve", actor=actor, reason=reason, now=now)
        Operation.objects.filter(pk=operation.pk).update(preview=impact.as_kept)


def impact_now(operation: Operation, *, now: datetime) -> OperationImpact | None:
    """Returns the impact on its nodes as they are now. None: a node left the cluster."""
    uids = list(operation.nodes.values_list("node_uid", flat=True))
    nodes = list(Node.objects.filter(cluster=operation.cluster, uid__in=uids).order_by("name"))
    if len(nodes) != len(uids):
        return None
    return impact_of(
        operation.cluster, nodes, operation.steps, actor=operation.asked_by, now=now, options=operation.options
    )


def pause(operation: Operation, *, actor: str, reason: str, now: datetime) -> None:
    """Pauses: nothing more is written until it is resumed.

    :raises IllegalMove: when it is not running
    :raises LostRace: when somebody else was first
    """
    _move_operation(operation, OperationState.PAUSED, "pause", actor=actor, reason=reason, now=now)


def resume(operation: Operation, *, actor: str, reason: str, now: datetime) -> None:
    """Resumes a paused operation. Failures so far no longer pause it. Raises as `pause` does."""
    if operation.state != OperationState.PAUSED:
        raise IllegalMove("An operation", OperationState(operation.state), OperationState.RUNNING)
    failed = operation.nodes.filter(state=NodeProgress.FAILED).count()
    options = operation.options | {"failures_accepted": failed}
    with transaction.atomic():
        _move_operation(operation, OperationState.RUNNING, "resume", actor=actor, reason=reason, now=now)
        Operation.objects.filter(pk=operation.pk).update(options=options)


def retry(operation: Operation, *, actor: str, reason: str, now: datetime) -> None:
    """Starts the failed nodes again, also after a pause by too many failures. Raises as `pause` does.

    :raises OperationRefused: when no node has failed, or a person paused the operation
    """
    if operation.state == OperationState.PAUSED and (by := paused_by(operation)):
        raise OperationRefused(f"{by} paused this operation. Resume it first, then retry the failed nodes.")
    with transaction.atomic():
        failed = operation.nodes.filter(state=NodeProgress.FAILED)
        again = failed.update(
            state=NodeProgress.PENDING, state_since=now, step=0, step_since=None, progress={}, reason=""
        )
        if not again:
            raise OperationRefused("No node has failed, so a retry is not possible.")
        if operation.state != OperationState.RUNNING:
            _move_operation(operation, OperationState.RUNNING, "retry", actor=actor, reason=reason, now=now)
        else:
            running = Operation.objects.filter(pk=operation.pk, state=OperationState.RUNNING)
            if not running.update(next_look_at=now):
                raise LostRace("The operation is no longer running. Read it again.")
            _record_in_audit(operation, "retry", actor=actor, reason=reason, now=now, evidence={"nodes": again})


def paused_by(operation: Operation) -> str:
    """Returns the person who paused a paused operation. Blank: too many nodes failed."""
    verbs = [f"operation.{verb}" for verb in ("pause", "resume", "retry")]
    last = AuditEntry.objects.filter(subject=operation.mark, verb__in=verbs).order_by("-number").first()
    return last.actor if last is not None and last.verb == "operation.pause" else ""


def cancel(operation: Operation, *, actor: str, reason: str, unless_begun: bool = False, now: datetime) -> None:
    """Ends the operation. Nodes without a result are left as they are; quarantines stay. Raises as `pause` does.

    `unless_begun`: raises LostRace when a node has begun.
    """
    with transaction.atomic():
        _move_operation(operation, OperationState.CANCELLED, "cancel", actor=actor, reason=reason, now=now)
        if unless_begun and operation.nodes.exclude(state=NodeProgress.PENDING).exists():
            raise LostRace("A node of the operation began at the same time.")
        left = operation.nodes.unfinished()  # read after the move, which waits for a worker's round
        uids = list(left.values_list("node_uid", flat=True))
        left.update(state=NodeProgress.CANCELLED, state_since=now, reason=f"Cancelled by {actor}.")
        operation.give_back(uids, now=now)


def _move_operation(
    operation: Operation, to: OperationState, verb: str, *, actor: str, reason: str, now: datetime
) -> None:
    with transaction.atomic():
        operation.move(to, now=now, reason=f"{verb.capitalize()} by {actor}: {reason}", actor=actor)
        _record_in_audit(operation, verb, actor=actor, reason=reason, now=now)
    if to == OperationState.RUNNING:
        transaction.on_commit(lambda: Operation.queue_round(operation.pk), robust=True)


def _record_in_audit(
    operation: Operation, verb: str, *, actor: str, reason: str, now: datetime, evidence: dict[str, Any] | None = None
) -> None:
    AuditEntry.record(
        operation.mark, verb=f"operation.{verb}", actor=actor, reason=reason, evidence=evidence or {}, now=now
    )


def _key_of(
    kind: str, nodes: Sequence[Node], reason: str, options: Mapping[str, Any], *, actor: str, key: str
) -> IdempotencyKey:
    body = {"nodes": sorted(node.uid for node in nodes), "reason": reason, "options": dict(options)}
    return IdempotencyKey.of(key, person=actor, verb=kind, body=body)


def _earlier(asked: IdempotencyKey) -> Operation | None:
    """Returns the operation that this command has started.

    :raises OperationRefused: when the key belongs to another command, or the operation was cancelled or undone
    """
    if not asked.key:
        return None
    operation = Operation.objects.filter(asked_by=asked.person, key=asked.key).first()
    if operation is None:
        return None
    first = IdempotencyKey(asked.key, asked.person, operation.kind, operation.body_digest)
    undone = _why_undone(operation, list(operation.nodes.values_list("node_uid", flat=True)))
    carried_out = EarlierCommand(first, operation.asked_at, holds=not undone, now_is=lambda: undone)
    return operation if is_done(asked, carried_out, refusal=OperationRefused) else None


def _why_undone(operation: Operation, node_uids: Sequence[str]) -> str:
    """Returns why the effect of an operation is gone. Blank: it lasts, or is still to come."""
    if operation.state == OperationState.CANCELLED:
        return f"It was cancelled at {to_the_second(operation.state_since)} ({operation.state_reason.strip('. ')})."
    if later := _undoing_operation(operation, node_uids):
        return f"Operation {later.pk} undoes it: {later.summary} by {later.asked_by}, {to_the_second(later.asked_at)}."
    gone = Q(removed_at__isnull=False) | Q(ended_at__isnull=False, left_reason="")
    done = operation.nodes.filter(state=NodeProgress.DONE).values("node_uid")
    quarantine = operation.quarantines.filter(gone, node_uid__in=done).first()
    return f"{quarantine.node_name} is no longer quarantined by it." if quarantine else ""


def _undoing_operation(operation: Operation, node_uids: Sequence[str]) -> Operation | None:
    """Returns the newest later operation that undoes this one on a node of it. None: none has started."""
    rows = OperationNode.objects.of_kinds(*(KINDS[operation.kind].undone_by if operation.kind else ()))
    rows = rows.filter(node_uid__in=node_uids, operation__pk__gt=operation.pk)
    rows = rows.exclude(state__in=[NodeProgress.FAILED, NodeProgress.CANCELLED])
    rows = rows.exclude(operation__state=OperationState.PROPOSED).select_related("operation")
    row = rows.order_by("-operation_id").first()
    return row.operation if row else None
