"""Exclusions of a released node from external controllers: written with the release, undone later (Z17, Z18)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db import transaction

from gpu.external_controllers import (
    EXTERNAL_CONTROLLERS,
    Metadata,
    as_before,
    before,
    earlier_values,
    excluded,
    external_controllers_of,
)
from gpu.labels import EXCLUDED_BY
from kube.structs import NodeSeen
from rollouts.engine.act.writer import Beside, NodeWrite, Writer, as_patch, nothing_else
from rollouts.engine.decide.acts import ExcludeAgain, PutBack
from rollouts.models import Exclusion, Plan
from wording.lists import names


def wanted_for(seen: NodeSeen, *, has_autoscaler: bool) -> dict[str, str | None]:
    here, taints = metadata_of(seen), [taint.key for taint in seen.spec.taints or ()]
    left = (EXTERNAL_CONTROLLERS[key] for key in earlier_values(here))
    return before(here, [*external_controllers_of(here, taints, autoscaler_runs=has_autoscaler), *left])


def intend(
    plan: Plan, nodes: Mapping[str, str], wanted: Mapping[str, Mapping[str, str | None]], *, now: datetime
) -> None:
    """Records the exclusions to write, in the transaction that releases the nodes (uid → name)."""
    if not any(wanted.values()):
        return
    there = Exclusion.objects.in_force().filter(plan=plan, node_uid__in=nodes)
    known = set(there.values_list("node_uid", "controller"))
    there.update(is_wanted=True, wanted_since=now, trouble="")
    Exclusion.objects.bulk_create(
        Exclusion(plan=plan, node_uid=uid, node_name=nodes[uid], controller=key, was=was, wanted_since=now)
        for uid, values in sorted(wanted.items())
        for key, was in sorted(values.items())
        if (uid, key) not in known
    )


def rows_of(plan: Plan, uids: Iterable[str]) -> dict[str, list[Exclusion]]:
    """Returns the exclusions in force by node UID, with one query."""
    found: dict[str, list[Exclusion]] = defaultdict(list)
    for row in Exclusion.objects.in_force().filter(plan=plan, node_uid__in=list(uids)):
        found[row.node_uid].append(row)
    return found


def release_patch_part(writer: Writer, rows: Sequence[Exclusion]) -> Beside:
    def written(seen: NodeSeen) -> NodeWrite:
        here = metadata_of(seen)
        was = before(here, [row.external_controller for row in rows])
        is_ours = seen.annotations.get(EXCLUDED_BY) == writer.plan.mark
        for row in rows:  # the present state, not the state when the release was decided
            changed = row.controller in was and was[row.controller] != row.was
            if changed and not (is_ours and row.controller in earlier_values(here)):
                row.was = was[row.controller]
                Exclusion.objects.in_force().filter(pk=row.pk).update(was=row.was)
        return _node_write_of(excluded(here, was, writer.plan.mark))

    return written if rows else nothing_else


def recall_patch_part(writer: Writer, rows: Sequence[Exclusion]) -> Beside:
    known = {row.controller: row.was for row in rows if row.placed_at}

    def written(seen: NodeSeen) -> NodeWrite:
        is_ours = seen.annotations.get(EXCLUDED_BY) == writer.plan.mark
        return _node_write_of(as_before(metadata_of(seen), known)) if is_ours else NodeWrite()

    return written if rows else nothing_else


def exclude_again(writer: Writer, act: ExcludeAgain) -> None:
    """Writes exclusions that nobody has read back: a worker was killed after its write, or somebody else released the
    node."""
    rows = rows_of(writer.plan, act.nodes)
    for uid, name in writer.some(act.nodes):
        if seen := writer.change(
            uid, name, as_patch(release_patch_part(writer, rows[uid])), rows=_rows_in_force(rows[uid])
        ):
            read_back(writer, seen, rows[uid])


def put_back(writer: Writer, act: PutBack) -> None:
    now = writer.clock()
    with transaction.atomic():
        writer.plan.keep_lease(now=now)
        unwant(writer.plan, act.nodes, now=now)
    rows = rows_of(writer.plan, act.nodes)
    # Those that a try has failed for come last: they must not keep the others waiting.
    in_turn = sorted(act.nodes.items(), key=lambda node: (any(row.trouble for row in rows[node[0]]), node[1]))
    for uid, name in writer.some(dict(in_turn)):
        if not rows[uid]:
            continue
        seen = writer.change(uid, name, as_patch(recall_patch_part(writer, rows[uid])), rows=_rows_in_force(rows[uid]))
        if seen is not None:
            settle(writer, seen, rows[uid])
        elif writer.is_gone(uid, name):
            _rows_in_force(rows[uid]).update(ended_at=writer.clock(), left_reason="The node is gone.", trouble="")


def unwant(plan: Plan, uids: Iterable[str], *, now: datetime) -> None:
    wanted = Exclusion.objects.in_force().filter(plan=plan, node_uid__in=list(uids), is_wanted=True)
    wanted.update(is_wanted=False, wanted_since=now)


def read_back(writer: Writer, seen: NodeSeen, rows: Sequence[Exclusion]) -> None:
    now, here = writer.clock(), metadata_of(seen)
    ours = earlier_values(here) if seen.annotations.get(EXCLUDED_BY) == writer.plan.mark else {}
    for row in rows:
        one = row.external_controller
        if row.controller in ours:
            _rows_in_force([row]).update(placed_at=now, trouble="")
        elif row.controller not in before(here, [one]):  # else it was not written yet, and will be
            reason = (
                f"{one.title} already ignored the node: another owner set {one.name} to {here.value(one) or 'blank'}."
            )
            _rows_in_force([row]).update(ended_at=now, is_wanted=False, left_reason=reason[:500], trouble="")
    if those := [row.external_controller for row in rows if row.controller in ours]:
        marks = " and ".join(one.mark for one in those)
        writer.note(
            seen.uid,
            seen.name,
            "exclusions-set",
            f"{names([one.title for one in those])}: {marks} during the change.",
            now=now,
        )


def settle(writer: Writer, seen: NodeSeen, rows: Sequence[Exclusion]) -> None:
    if not rows or seen.annotations.get(EXCLUDED_BY) == writer.plan.mark:
        return
    now, here = writer.clock(), metadata_of(seen)
    left = {row.pk: _reason_left_in_place(row, here) if row.placed_at else "" for row in rows}
    for row in rows:
        _rows_in_force([row]).update(ended_at=now, is_wanted=False, left_reason=left[row.pk], trouble="")
    if placed := [row for row in rows if row.placed_at]:
        back = [row.external_controller.title for row in placed if not left[row.pk]]
        said = [f"{names(back)}: previous value restored."] if back else []
        reason = " ".join([*said, *(left[row.pk] for row in placed if left[row.pk])])
        writer.note(seen.uid, seen.name, "put-back", reason, now=now)


def _reason_left_in_place(row: Exclusion, here: Metadata) -> str:
    one = row.external_controller
    value = here.value(one)
    if value == row.was:
        return ""
    is_now = f"is {value[:100] or 'blank'}" if value is not None else "is gone"
    return f"{one.name} {is_now}: another owner changed it, so it stays."


def _rows_in_force(rows: Sequence[Exclusion]):
    return Exclusion.objects.in_force().filter(pk__in=[row.pk for row in rows])


def _node_write_of(wanted: Metadata) -> NodeWrite:
    return NodeWrite(wanted.labels, wanted.annotations)


def metadata_of(seen: NodeSeen) -> Metadata:
    return Metadata(seen.labels, seen.annotations)
