"""The version field of the driver object: written once forward and once back."""

from datetime import datetime

from django.db import transaction

from edges.transition_errors import LostRace
from kube import client
from rollouts.components.base import version_in
from rollouts.engine.act.holds import hold_node, tell_of_removed, want
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide.acts import WriteVersion
from rollouts.lifecycle import PlanState
from rollouts.models import Hold, Plan
from rollouts.models.transitions import record_event
from rollouts.queries.driver_nodes import driver_daemonsets
from rollouts.queries.restraints import restraints_of
from wording.lists import names
from wording.numbers import either


def write_version(writer: Writer, act: WriteVersion) -> str:
    """Writes the version, and returns why it was not written; empty means it was."""
    plan, now = writer.plan, writer.clock()
    is_forward = act.new == plan.to_version
    if is_forward:
        if unheld := _not_held_live(writer):
            gone = Hold.objects.filter(plan=plan, node_uid__in=unheld)
            tell_of_removed(writer, gone, now=now)
            gone.update(placed_at=None)
            # The next round sees rows that say so, and holds them first.
            its = either(len(unheld), "its hold", "their holds")
            return f"{act.new} is not written yet: the API server shows {names(tuple(unheld.values()))} without {its}."
        _intend(plan, now=now)
    else:
        _hold_the_rest(writer)
    seen, spec = client.get_driver_object_whole(writer.connection, plan.object_kind, plan.object_name)
    if seen.uid != plan.object_uid:
        raise client.Absent(
            f"{plan.object_kind} {plan.object_name} is not the object of this plan. It was created again."
        )
    change = writer.component.patch(act.old, act.new)
    patch = client.field_patch(seen, change.path, old=change.old or None, new=change.new)
    if patch:  # a delayed worker may have lost its lease, and the plan may have been aborted meanwhile
        plan.keep_lease(now=writer.clock())
        if is_forward:
            _refuse_if_stopped(plan, now=writer.clock())
    shown = client.patch_driver_object(writer.connection, plan.object_kind, plan.object_name, patch) if patch else spec
    if version_in(writer.component, shown) != act.new:
        return ""  # Somebody changed it again in between; the next round reads and reports it.
    _record_written(plan, act, is_forward=is_forward, now=now)
    return ""


def _not_held_live(writer: Writer) -> dict[str, str]:
    """Returns the nodes (uid → name) that must be held and that the API server shows without the label.

    It includes nodes that joined without a row yet, since they have a driver pod already (Z1, Z25). It leaves out
    removed nodes: a label that cannot be written must not block the version for ever.
    """
    free = {node.uid: node.name for node in client.list_nodes(writer.connection) if not writer.is_kept(node.labels)}
    wanted = set(Hold.objects.filter(plan=writer.plan, is_wanted=True).values_list("node_uid", flat=True))
    with_driver_pod = _nodes_with_driver_pod(writer)
    return {uid: name for uid, name in free.items() if uid in wanted or name in with_driver_pod}


def _hold_the_rest(writer: Writer) -> None:
    """Holds the remaining nodes before a rollback, as the API server shows them (Z5, Z25).

    A node that cannot be labelled does not block the rollback (Z32).
    """
    unheld = _not_held_live(writer)
    known = Hold.objects.filter(plan=writer.plan, node_uid__in=unheld, is_foreign=False)
    is_known = set(known.values_list("node_uid", flat=True))
    for uid, name in want(writer.plan, unheld, is_wanted=True, now=writer.clock()).items():
        hold_node(writer, uid, name, may_be_theirs=uid not in is_known)


def _nodes_with_driver_pod(writer: Writer) -> set[str]:
    daemonsets = driver_daemonsets(writer.plan)
    uids = {daemonset.uid for daemonset in daemonsets}
    return {
        pod.spec.node_name
        for namespace in sorted({daemonset.namespace for daemonset in daemonsets})
        for pod in client.list_pods(writer.connection, namespace=namespace)
        if pod.spec.node_name and pod.metadata.owner and pod.metadata.owner.uid in uids
    }


def _intend(plan: Plan, *, now: datetime) -> None:
    """Records that the new version may be in the cluster from this commit on.

    :raises LostRace: when somebody halted, paused, froze or aborted the plan first
    """
    with transaction.atomic():
        plan.keep_lease(now=now)
        free = Plan.objects.filter(pk=plan.pk, state=PlanState.HOLDING, epoch=plan.epoch)
        if not free.update(write_intended_at=now):
            raise LostRace("The plan may no longer write the version.")
        _refuse_if_stopped(plan, now=now)
    plan.write_intended_at = now


def _refuse_if_stopped(plan: Plan, *, now: datetime) -> None:
    """Checks every row by which somebody can stop the plan.

    :raises LostRace: when somebody halted, paused or froze the plan
    """
    if plan.commands.in_force().exists():
        raise LostRace("The plan is paused.")
    if frozen := restraints_of(plan, now=now).first:
        raise LostRace(frozen.sentence)


def _record_written(plan: Plan, act: WriteVersion, *, is_forward: bool, now: datetime) -> None:
    field = "armed_since" if is_forward else "put_back_at"
    with transaction.atomic():
        plan.keep_lease(now=now)
        if Plan.objects.filter(pk=plan.pk, **{f"{field}__isnull": True}).update(**{field: now}):
            reason = f"{plan.object_kind} {plan.object_name}: {act.old} → {act.new}"
            record_event(plan=plan, what="note", was="", to="version-written", now=now, actor="engine", reason=reason)
