"""The hold label, which keeps the operator's upgrade controller off a node, and our annotation beside it.

Removing the label releases a node, and setting it again recalls the node. Intent, ledger, last checks and lease are the
same for each lever.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet

from edges.slices import slices
from edges.transition_errors import LostRace
from gpu.driver_hold import hold_by, without_hold
from gpu.external_controllers import Metadata
from gpu.labels import HELD_BY, UPGRADE_STATE
from kube import client
from kube.structs import NodeSeen
from rollouts.components.base import BEGUN, Phase, RemoveLabel
from rollouts.engine.act.release_checks import OthersDrivers, why_nothing_is_released
from rollouts.engine.act.writer import Beside, NodeWrite, Writer, clear_queued, nothing_else, patch_of
from rollouts.engine.decide.acts import LiftHolds, PlaceHolds, ReleaseUnmanagedNodes
from rollouts.models import Hold, Plan
from rollouts.models.plan import MARK
from wording.lists import names
from wording.numbers import stay


def place_holds(writer: Writer, act: PlaceHolds) -> None:
    known = Hold.objects.filter(plan=writer.plan, node_uid__in=act.nodes, is_foreign=False)
    is_known = set(known.values_list("node_uid", flat=True))
    ours = want(writer.plan, act.nodes, is_wanted=True, now=writer.clock())
    older = set(Hold.objects.older().filter(plan=writer.plan).values_list("node_uid", flat=True))
    for uid, name in writer.some(_order_of_writing(writer.plan, ours, is_wanted=True)):
        hold_node(writer, uid, name, anew=uid in older, may_be_theirs=uid not in is_known)


def lift_holds(writer: Writer, act: LiftHolds) -> str:
    """Removes hold labels, and returns why some remain; empty means all are removed."""
    if waits := why_nothing_is_released(writer):
        return waits
    ours = want(writer.plan, act.nodes, is_wanted=False, now=writer.clock())
    for uid, name in writer.some(_order_of_writing(writer.plan, ours, is_wanted=False)):
        if waits := why_nothing_is_released(writer):
            return waits
        free_node(writer, uid, name, even_queued=False)
    return ""


def release_unmanaged_nodes(writer: Writer, act: ReleaseUnmanagedNodes) -> str:
    """Removes the hold and the queue mark of unmanaged nodes, and returns why some remain.

    The queue mark would drain the node when the driver object selects it again. A node that another driver object would
    change at once stays held (Z38).
    """
    if waits := why_nothing_is_released(writer):
        return waits
    others, kept = OthersDrivers(writer), list[str]()
    ours = want(writer.plan, act.nodes, is_wanted=False, now=writer.clock())
    for uid, name in writer.some(_order_of_writing(writer.plan, ours, is_wanted=False)):
        if waits := why_nothing_is_released(writer):
            return waits
        if others.would_change(name):
            kept.append(name)
            continue
        clear_queued(writer, uid, name)
        free_node(writer, uid, name, even_queued=False)
    return f"{names(kept)} {stay(len(kept))} held: another driver object would change them at once." if kept else ""


def want(plan: Plan, nodes: Mapping[str, str], *, is_wanted: bool, now: datetime) -> dict[str, str]:
    """Records the wanted state of holds before any node is touched, and returns the nodes (uid → name) that may be
    written.

    Nodes that another plan changes are left out. A node that somebody else held before has lost that foreign label by
    now, so the new label is ours.

    :raises LostRace: when another plan took one of the nodes at this moment
    """
    others = set[str]()
    try:
        for some in slices(nodes):  # the next round wants the holds that a crash left out
            uids = some.whole()
            with transaction.atomic():
                plan.keep_lease(now=now)
                others |= _set_wanted(plan, {uid: nodes[uid] for uid in uids}, is_wanted=is_wanted, now=now)
    except IntegrityError as clash:
        raise LostRace("Another plan has begun to change one of these nodes.") from clash
    return {uid: name for uid, name in nodes.items() if uid not in others}


def _set_wanted(plan: Plan, nodes: Mapping[str, str], *, is_wanted: bool, now: datetime) -> set[str]:
    """Writes the wanted state of some nodes, and returns those that another plan changes."""
    known = Hold.objects.filter(plan=plan, node_uid__in=nodes)
    is_foreign = dict(known.values_list("node_uid", "is_foreign"))
    missing = set(nodes) - set(is_foreign)
    freed = {uid for uid in is_foreign if is_wanted and is_foreign[uid]}
    others = set(Hold.objects.in_force().filter(node_uid__in=missing | freed).values_list("node_uid", flat=True))
    known.exclude(is_wanted=is_wanted).update(is_wanted=is_wanted, wanted_since=now)
    known.filter(node_uid__in=freed - others).update(is_foreign=False)
    Hold.objects.bulk_create(
        Hold(plan=plan, node_uid=uid, node_name=nodes[uid], is_wanted=is_wanted, wanted_since=now)
        for uid in sorted(missing - others)
    )
    return others


def _order_of_writing(plan: Plan, nodes: Mapping[str, str], *, is_wanted: bool) -> dict[str, str]:
    """Returns the nodes in the order of writing: first those not read back yet, last those whose last try failed.

    An act may not have time for all nodes. Without a hold label the result is None, since rows are all there is to
    write.
    """
    if plan.its_component.hold is None:
        return {}
    held = set(plan.holds.filter(placed_at__isnull=False).values_list("node_uid", flat=True))
    failed = set(plan.holds.exclude(trouble="").values_list("node_uid", flat=True))
    in_turn = sorted(nodes.items(), key=lambda node: (node[0] in failed, (node[0] in held) is is_wanted, node[1]))
    return dict(in_turn)


def hold_node(
    writer: Writer,
    uid: str,
    name: str,
    *,
    anew: bool = False,
    may_be_theirs: bool = False,
    beside: Beside = nothing_else,
) -> NodeSeen | None:
    """Labels the node and returns it as the API server then shows it; None if the node is absent or held by somebody
    else.

    `anew` writes the label even if it is there, so that a release that arrives late fails its test. `may_be_theirs`
    means that we have never held the node: a label that appears meanwhile stays with its owner.
    """
    now = writer.clock()
    was: NodeSeen | None = None  # before the last try to write it

    def is_theirs(seen: NodeSeen) -> bool:
        is_of_a_plan = seen.annotations.get(HELD_BY, "").startswith(MARK)
        return may_be_theirs and writer.hold.is_on(seen.labels) and not is_of_a_plan

    def held(seen: NodeSeen) -> client.Patch:
        nonlocal was
        was = seen
        if is_theirs(seen):
            return []
        if seen.annotations.get(HELD_BY) == writer.plan.mark and writer.hold.is_on(seen.labels) and not anew:
            return []
        hold = hold_by(writer.plan.mark, writer.hold, now=now)
        return patch_of(seen, beside(seen) | NodeWrite(hold.labels, hold.annotations))

    seen = writer.change(uid, name, held)
    if seen is None or not writer.hold.is_on(seen.labels):
        return None
    row = Hold.objects.filter(plan=writer.plan, node_uid=uid)
    if is_theirs(seen):
        row.update(is_foreign=True, trouble="")
        return None
    if was is not None and not writer.hold.is_on(was.labels):
        tell_of_removed(writer, row, now=now)
    elif was is not None:
        _tell_of_rewritten(writer, was, now=now)
    row.update(placed_at=now, trouble="")
    return seen


def tell_of_removed(writer: Writer, gone: QuerySet[Hold], *, now: datetime) -> None:
    """Records an event where somebody else removed a label of ours that had been read back."""
    for hold in gone.filter(is_wanted=True, is_foreign=False, placed_at__gte=F("wanted_since")):
        reason = f"Somebody removed {writer.hold.key}. The plan holds this node and sets the label again."
        writer.note(hold.node_uid, hold.node_name, "hold-removed", reason, now=now, actor="somebody else")


def _tell_of_rewritten(writer: Writer, was: NodeSeen, *, now: datetime) -> None:
    """Records that somebody else had taken over the hold, so that its author finds the reason here."""
    named = was.annotations.get(HELD_BY)
    if named == writer.plan.mark:
        return
    theirs = f"{HELD_BY} named {named[:100] if named else 'nobody'}"
    reason = f"{theirs}. The plan holds this node and writes {writer.plan.mark} again."
    writer.note(was.uid, was.name, "hold-rewritten", reason, now=now, actor="somebody else")


def free_node(
    writer: Writer,
    uid: str,
    name: str,
    *,
    even_queued: bool,
    may_go: Callable[[], bool] = lambda: True,
    beside: Beside = nothing_else,
) -> NodeSeen | None:
    """Removes our hold label and returns the node as the API server then shows it; None if the label remains.

    If somebody changed the label's value, only our annotation is removed. `may_go` is called last, with the fresh node,
    before each try. Outside of a wave a node that the operator has queued meanwhile stays held: the operator would
    drain it for nothing (Z5, Z25).
    """

    def freed(seen: NodeSeen) -> client.Patch:
        is_queued = writer.component.phase(seen.labels.get(UPGRADE_STATE, "")) is Phase.QUEUED
        if seen.annotations.get(HELD_BY) != writer.plan.mark or (is_queued and not even_queued) or not may_go():
            return []
        off = without_hold(Metadata(seen.labels, seen.annotations), writer.hold)
        return patch_of(seen, beside(seen) | NodeWrite(off.labels, off.annotations))

    seen = writer.change(uid, name, freed)
    if seen is None or writer.hold.is_on(seen.labels):
        return None
    rows = Hold.objects.filter(plan=writer.plan, node_uid=uid)
    rows.update(placed_at=None, freed_at=writer.clock(), trouble="")
    return seen


class Lever(Protocol):
    def may_go(self, writer: Writer, seen: NodeSeen) -> bool:
        """Returns whether the node is ours to release and has not begun, as the API server shows it."""
        ...

    def release(
        self, writer: Writer, uid: str, name: str, *, may_go: Callable[[], bool], beside: Beside
    ) -> NodeSeen | None:
        """Releases the node and returns it as the API server then shows it; None if not.

        `may_go` is called before each write.
        """
        ...

    def fence(self, writer: Writer, uid: str, name: str) -> bool:
        """Returns whether the node can be recalled.

        A release that was sent earlier and arrives later then has no effect.
        """
        ...

    def call_back(self, writer: Writer, uid: str, name: str, *, beside: Beside) -> NodeSeen | None:
        """Recalls the node and returns it as the API server then shows it; None if not."""
        ...


class ByLabel:
    def may_go(self, writer: Writer, seen: NodeSeen) -> bool:
        is_ours = seen.annotations.get(HELD_BY) == writer.plan.mark and writer.is_kept(seen.labels)
        return is_ours and writer.component.phase(seen.labels.get(UPGRADE_STATE, "")) not in BEGUN

    def release(
        self, writer: Writer, uid: str, name: str, *, may_go: Callable[[], bool], beside: Beside
    ) -> NodeSeen | None:
        return free_node(writer, uid, name, even_queued=True, may_go=may_go, beside=beside)

    def fence(self, writer: Writer, uid: str, name: str) -> bool:
        return True  # by its new hold; a change that begins at the same moment continues, and no label stops it (Z3)

    def call_back(self, writer: Writer, uid: str, name: str, *, beside: Beside) -> NodeSeen | None:
        return hold_node(writer, uid, name, anew=True, beside=beside)


LEVERS: Mapping[type, Lever] = {RemoveLabel: ByLabel()}


def lever_of(writer: Writer) -> Lever:
    return LEVERS[type(writer.component.release)]
