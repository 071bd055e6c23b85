"""One round of an external rollout: read rows, evaluate gates, record. It sends nothing to its cluster.

Each driver object of a cluster in the mode `follow` has one open row. While nothing changes, the row stores what the
object asks for. When that changes, or the operator works on a node without a plan of ours, the same row becomes the
rollout. A round writes nodes in short transactions, then the rest in one. Each asserts its turn, so it is safe to run
twice and to stop anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, Min, OuterRef

from edges.transition_errors import LostRace
from fleet.models import Cluster, DriverObject, Node
from fleet.models.cluster import ClusterMode
from gpu.upgrade_controller import UPGRADE_DONE, UPGRADE_FAILED, UPGRADE_REQUIRED
from rollouts.components import DRIVER_OBJECT_KINDS
from rollouts.components.base import Phase
from rollouts.engine.baseline import baselines
from rollouts.engine.decide.gate_evaluation import all_pass, evaluate
from rollouts.engine.nodes import COLUMNS
from rollouts.engine.snapshot import StageSnapshot
from rollouts.engine.stage_evidence import (
    StageSurroundings,
    most_ready,
    passing_since,
    ready_now,
    refused_since,
    target_evidence,
)
from rollouts.engine.workloads import DriverPod, driver_pods, pods_on, ready_and_waiting, why_unready
from rollouts.external_rollouts.gate_options import ASKED
from rollouts.external_rollouts.observations import (
    NOT_BEGUN,
    NodeLook,
    became,
    begins,
    ends,
    is_untouched,
    shows_before,
)
from rollouts.external_rollouts.record import write_answers, write_nodes
from rollouts.gates.base import UNTESTED, Evidence, TargetEvidence, When
from rollouts.gates.soak import Soak
from rollouts.lifecycle import BEGUN, ExternalRolloutState, StageState, TargetState
from rollouts.models import ExternalGateAnswer, ExternalRollout, ExternalRolloutNode, Plan
from rollouts.models.gate_answer import BLIND
from rollouts.queries.completion import causes_found
from rollouts.queries.driver_nodes import changeable, clock_ahead, driver_daemonsets, newest_hashes, nodes_of, row_age

LOOK_AGAIN = {ExternalRolloutState.STANDING: timedelta(seconds=10), ExternalRolloutState.ROLLING: timedelta(seconds=2)}
BASELINE_HOLDS = timedelta(minutes=1)  # of a node that has not begun: its tenants may change meanwhile
AT_ONCE = 500  # baselines taken by one round
KEPT_FOR = timedelta(minutes=10)  # the same while nothing changes: every node of the object is read then


def take_up(*, now: datetime) -> None:
    open_ones = ExternalRollout.objects.open().filter(cluster=OuterRef("cluster"), object_uid=OuterRef("uid"))
    driver_objects = DriverObject.objects.filter(
        changeable(), cluster__mode=ClusterMode.FOLLOW, kind__in=DRIVER_OBJECT_KINDS
    )
    rows = [_new_standing_row(each, now=now) for each in driver_objects.filter(~Exists(open_ones))]
    ExternalRollout.objects.bulk_create(rows, ignore_conflicts=True)


def _new_standing_row(each: DriverObject, *, now: datetime, seen_at: datetime | None = None) -> ExternalRollout:
    return ExternalRollout(
        cluster_id=each.cluster_id, object_kind=each.kind, object_name=each.name, object_uid=each.uid,
        to_version=each.version, state=ExternalRolloutState.STANDING, state_since=now, seen_at=seen_at,
        next_look_at=now, lease_until=now,
    )  # fmt: skip


def run_external_rollout(rollout_id: int, *, owner: str, clock: Callable[[], datetime]) -> None:
    rollout = ExternalRollout.objects.open().select_related("cluster").filter(pk=rollout_id).first()
    if rollout is None or not rollout.take_lease(owner=owner, now=clock()):
        return
    following = None
    try:
        with suppress(LostRace):  # another worker has it, or a person changed the mode: the next round continues
            following = _run_round(rollout, now=clock())
    finally:
        now = clock()
        wait = LOOK_AGAIN.get(ExternalRolloutState(rollout.state), timedelta(0))
        rollout.end_lease(now=now, next_look_at=now + wait)
    if following is not None:
        run_external_rollout(following.pk, owner=owner, clock=clock)


def _run_round(rollout: ExternalRollout, *, now: datetime) -> ExternalRollout | None:
    """Runs the round. Returns the row that follows an ended rollout."""
    driver_object = DriverObject.objects.filter(
        changeable(), cluster=rollout.cluster_id, uid=rollout.object_uid
    ).first()
    looked = row_age(rollout, now=now)
    if reason := _why_no_longer_followed(rollout, driver_object, is_seen=not looked.stale_reason):
        _stop_following(rollout, reason, now=now)
    elif rollout.state == ExternalRolloutState.STANDING:
        if driver_object is not None and not looked.stale_reason:
            _observe_without_rollout(rollout, driver_object, now=now)
    else:
        return _follow_rollout(
            rollout, driver_object, is_stale=bool(looked.stale_reason), seen_at=looked.oldest, now=now
        )
    return None


def _why_no_longer_followed(rollout: ExternalRollout, driver_object: DriverObject | None, *, is_seen: bool) -> str:
    mode = Cluster.objects.values_list("mode", flat=True).get(pk=rollout.cluster_id)
    if mode != ClusterMode.FOLLOW:
        return f"The mode of {rollout.cluster.name} is {mode} now."
    if driver_object is None and is_seen:
        return f"{rollout.object_kind} {rollout.object_name} is gone or no longer has a driver version."
    plan = _plan_of_ours(rollout)
    if plan and rollout.state == ExternalRolloutState.ROLLING:
        return f"Plan #{plan.pk} “{plan.title}” now changes this object."
    return ""


def _plan_of_ours(rollout: ExternalRollout) -> Plan | None:
    return Plan.objects.under_way().filter(cluster=rollout.cluster_id, object_uid=rollout.object_uid).first()


def _stop_following(rollout: ExternalRollout, reason: str, *, now: datetime) -> None:
    with transaction.atomic():
        rollout.keep_lease(now=now)
        if rollout.state == ExternalRolloutState.STANDING:
            rollout.delete()  # it only stored the requested version
        else:
            rollout.move(ExternalRolloutState.GIVEN_UP, now=now, reason=reason)


# Without a change in progress


def _observe_without_rollout(rollout: ExternalRollout, driver_object: DriverObject, *, now: datetime) -> None:
    """Handles an object without a rollout. Five queries, and more once in ten minutes."""
    why = begins(was=rollout.to_version, version=driver_object.version, at_work=_nodes_at_work(driver_object))
    is_watched = rollout.seen_at is not None and now - rollout.seen_at <= BLIND
    seen = [] if not why or _plan_of_ours(rollout) else _first_look(rollout, driver_object)
    if not seen:  # nothing begins, or a plan of ours did it, or it runs on no node: only that is kept in mind
        _store_requested_version(rollout, driver_object, now=now)
        return
    was, kept = rollout.to_version, {node.node_uid: node for node in rollout.nodes.all()}
    nodes = _nodes_as(seen, rollout, _begun_before(rollout), kept=kept, is_watched=is_watched, now=now)
    _replace_nodes(rollout, nodes, now=now)
    with transaction.atomic():
        rollout.keep_lease(now=now)
        rollout.move(
            ExternalRolloutState.ROLLING, now=now, reason=why, **_start_columns(driver_object, was=was, now=now)
        )


def _begun_before(rollout: ExternalRollout) -> dict[str, ExternalRolloutNode]:
    """Returns the nodes that began in the rollout that this one replaces, by UID, with their baselines."""
    replaced = ExternalRollout.objects.filter(
        cluster=rollout.cluster_id,
        object_uid=rollout.object_uid,
        state=ExternalRolloutState.REPLACED,
        ended_at=rollout.state_since,
    )
    begun = ExternalRolloutNode.objects.filter(rollout__in=replaced, state__in=BEGUN, baseline__isnull=False)
    return {node.node_uid: node for node in begun}


def _store_requested_version(rollout: ExternalRollout, driver_object: DriverObject, *, now: datetime) -> None:
    """Stores the version and each node's baseline, for nodes that begin before the first look at their rollout."""
    oldest = rollout.nodes.aggregate(at=Min("state_since"))["at"]
    if oldest is None or now - oldest > KEPT_FOR:
        nodes = _nodes_as(_first_look(rollout, driver_object), rollout, {}, kept={}, is_watched=True, now=now)
        _replace_nodes(rollout, nodes, now=now)
    with transaction.atomic():
        rollout.keep_lease(now=now)
        ExternalRollout.objects.filter(pk=rollout.pk).update(to_version=driver_object.version, seen_at=now)


def _replace_nodes(rollout: ExternalRollout, nodes: Sequence[ExternalRolloutNode], *, now: datetime) -> None:
    write_nodes(rollout, nodes, now=now)
    with transaction.atomic():
        rollout.keep_lease(now=now)
        rollout.nodes.filter(state_since__lt=now).delete()


def _nodes_at_work(driver_object: DriverObject) -> list[str]:
    """Returns the nodes that the operator changes or will change next.

    A node held in its queue may stay there for ever.
    """
    quiet = nodes_of(driver_object).exclude(upgrade_state__in=["", UPGRADE_DONE, UPGRADE_FAILED])
    return list(
        quiet.exclude(upgrade_state=UPGRADE_REQUIRED, is_held=True).order_by("name").values_list("name", flat=True)
    )


def _start_columns(driver_object: DriverObject, *, was: str, now: datetime) -> dict[str, str | datetime]:
    return {
        "from_version": was,
        "to_version": driver_object.version,
        "driven_by": ", ".join(driver_object.owned_by)[:500],
        "began_at": now,
        "seen_at": now,
    }


# Observed state


@dataclass(frozen=True)
class ObservedNode:
    """A node of the object with the hash of its driver pod's template; empty if it has none or it is unknown."""

    row: Node
    look: NodeLook
    pod_hash: str


def _first_look(rollout: ExternalRollout, driver_object: DriverObject) -> list[ObservedNode]:
    wanted = driver_object.version
    seen = _observe_nodes(rollout, nodes_of(driver_object).only(*COLUMNS).order_by("name"), wanted, {})
    return [one for one in seen if one.pod_hash or one.look.phase is not Phase.UNKNOWN]


def _observe_nodes(rollout: ExternalRollout, nodes, wanted: str, hashes: dict[str, str]) -> list[ObservedNode]:
    """Returns the nodes as seen. `hashes` are the pods' templates before the nodes began, by UID."""
    pods = driver_pods(rollout)
    newest = newest_hashes(rollout.cluster_id, {pod.owner_uid for pod in pods.values()})
    return [
        _observe_node(rollout, node, wanted, pods.get(node.name), newest, hashes.get(node.uid, "")) for node in nodes
    ]


def _observe_node(
    rollout: ExternalRollout, node: Node, wanted: str, pod: DriverPod | None, newest: dict[str, str], was: str
) -> ObservedNode:
    has, component = pod.revision_hash if pod else "", rollout.its_component
    template = newest.get(pod.owner_uid, "") if pod else ""
    is_in_sync = not template or not has or has == template
    loaded = "" if node.driver_unknown_since else node.driver_version
    look = NodeLook(
        uid=node.uid,
        name=node.name,
        phase=component.phase(node.upgrade_state),
        is_held=node.is_held,
        runs_it=component.has_changed(wanted=wanted, loaded=loaded, is_in_sync=is_in_sync),
        has_other_pod=bool(was) and has != was,
    )
    return ObservedNode(node, look, has)


def _nodes_as(
    seen: Sequence[ObservedNode],
    rollout: ExternalRollout,
    earlier: dict[str, ExternalRolloutNode],
    *,
    kept: dict[str, ExternalRolloutNode],
    is_watched: bool,
    now: datetime,
) -> list[ExternalRolloutNode]:
    """Returns the rollout's nodes as first seen, unsaved.

    `earlier` are nodes that began in the replaced rollout, by UID; they keep their baseline. `kept` are stored
    baselines of nodes that are seen late.
    """
    states = {one.row.uid: became(one.look, None) for one in seen}
    show = [uid for uid, state in states.items() if shows_before(state, is_first=True, is_watched=is_watched)]
    known = {uid: node.baseline for uid, node in kept.items()}
    known |= baselines(rollout, show, now=now)
    known |= {uid: node.baseline for uid, node in earlier.items()}
    shown = set(show)
    return [
        ExternalRolloutNode(
            rollout=rollout,
            node_uid=one.row.uid,
            node_name=one.row.name,
            state=states[one.row.uid],
            state_since=now,
            baseline=known.get(one.row.uid),
            pod_hash=one.pod_hash if one.row.uid in shown else "",
        )
        for one in seen
    ]


# While it rolls


def _follow_rollout(
    rollout: ExternalRollout,
    driver_object: DriverObject | None,
    *,
    is_stale: bool,
    seen_at: datetime,
    now: datetime,
) -> ExternalRollout | None:
    nodes = list(rollout.nodes.all())
    rows = Node.objects.filter(cluster=rollout.cluster_id, uid__in=[node.node_uid for node in nodes])
    by_uid = {row.uid: row for row in rows.only(*COLUMNS).order_by()}
    moved, looked_at = ([], []) if is_stale else _moved(rollout, nodes, by_uid, now=now)
    current = {answer.gate: answer for answer in rollout.answers.filter(is_current=True)}
    around = _surroundings_of_stages(rollout, nodes, by_uid, is_stale=is_stale, seen_at=seen_at, now=now)
    targets = [target for node in nodes if not is_untouched(target := target_evidence(node, around))]
    stage = _stage(rollout, nodes, targets, around, current)
    results = evaluate(stage, When.THROUGH, now=now)
    step = None
    if driver_object is not None and not is_stale:
        step = ends(
            {node.node_uid: TargetState(node.state) for node in nodes},
            version=rollout.to_version,
            asked_for=driver_object.version,
            all_pass=all_pass(stage, results),
            is_known=any(node.baseline for node in nodes),
            is_touched=any(target.state is not TargetState.EXCLUDED for target in targets),
            unproven=next((each.sentence for each in results.values() if each.cause == UNTESTED), ""),
            moved_at=max([rollout.state_since, *(each.state_since for each in nodes)]),
            now=now,
        )
    write_nodes(rollout, {node.node_uid: node for node in (*moved, *looked_at)}.values(), now=now)
    following = None
    with transaction.atomic():
        rollout.keep_lease(now=now)
        is_other = write_answers(rollout, results, current, now=now)
        if not is_stale:
            ExternalRollout.objects.filter(pk=rollout.pk).update(seen_at=now)
        if step is not None and driver_object is not None:
            rollout.move(step.to, now=now, reason=step.reason)
            following = _go_on(rollout, driver_object, now=now)
        elif moved or is_other:
            rollout.tell()
    return following


def _go_on(ended: ExternalRollout, driver_object: DriverObject, *, now: datetime) -> ExternalRollout:
    """Returns the row that follows: it stands, and its first round begins the rollout to a replacing version."""
    following = _new_standing_row(driver_object, now=now, seen_at=now)
    if ended.state == ExternalRolloutState.REPLACED:
        following.to_version = ended.to_version
    following.save()
    return following


def _moved(
    rollout: ExternalRollout, nodes: Sequence[ExternalRolloutNode], by_uid: dict[str, Node], *, now: datetime
) -> tuple[list[ExternalRolloutNode], list[ExternalRolloutNode]]:
    """Returns the nodes with a new state, and the nodes with a new baseline.

    At most `AT_ONCE` baselines are taken per round, so that they do not all come due together.
    """
    there = _nodes_of_object(rollout, by_uid)
    hashes = {node.node_uid: node.pod_hash for node in nodes}
    seen = {one.row.uid: one for one in _observe_nodes(rollout, there.values(), rollout.to_version, hashes)}
    moved = list[ExternalRolloutNode]()
    for node in nodes:
        one, was = seen.get(node.node_uid), TargetState(node.state)
        to = became(one.look, was) if one else TargetState.EXCLUDED
        if to is not was:
            node.is_lost = one is None and was in BEGUN
            node.state, node.state_since = to, now
            moved.append(node)
    due = [node for node in nodes if node.state in NOT_BEGUN and _is_due(node, by_uid, now=now)]
    quiet = sorted(due, key=lambda node: node.baseline["at"] if node.baseline else "")[:AT_ONCE]
    as_now = baselines(rollout, [node.node_uid for node in quiet], now=now) if quiet else {}
    there_still = [node for node in quiet if node.node_uid in as_now]  # one may have gone since
    for node in there_still:
        node.baseline, node.pod_hash = as_now[node.node_uid], seen[node.node_uid].pod_hash
    return moved, there_still


def _is_due(node: ExternalRolloutNode, by_uid: dict[str, Node], *, now: datetime) -> bool:
    """Returns whether the node's baseline is taken again. It is not once the node runs another driver."""
    row = by_uid[node.node_uid]
    if node.baseline is None:
        return True
    is_as_then = row.driver_version == node.baseline["driver_version"] and not row.driver_unknown_since
    return is_as_then and now - datetime.fromisoformat(node.baseline["at"]) > BASELINE_HOLDS


def _nodes_of_object(rollout: ExternalRollout, by_uid: dict[str, Node]) -> dict[str, Node]:
    """Returns the nodes without those that left the object; unknown while the operator recreates its DaemonSets."""
    if not driver_daemonsets(rollout):
        return by_uid
    selected = set(nodes_of(rollout).values_list("uid", flat=True))
    return {uid: row for uid, row in by_uid.items() if uid in selected}


def _begun_nodes(nodes: Sequence[ExternalRolloutNode]) -> list[ExternalRolloutNode]:
    return [node for node in nodes if node.state in BEGUN]


def _surroundings_of_stages(
    rollout: ExternalRollout,
    nodes: Sequence[ExternalRolloutNode],
    by_uid: dict[str, Node],
    *,
    is_stale: bool,
    seen_at: datetime,
    now: datetime,
) -> StageSurroundings:
    ready, waiting = ready_and_waiting(rollout) if most_ready(_begun_nodes(nodes)) else (Counter[str](), Counter[str]())
    names = [node.node_name for node in _begun_nodes(nodes)]
    ahead = clock_ahead(rollout.cluster_id)
    pods = pods_on(rollout, names)
    why = why_unready(pods, now=now)
    failed = [node.node_uid for node in nodes if node.state == TargetState.FAILED]
    failures = causes_found(failed) if failed else {}
    return StageSurroundings(
        by_uid, pods, ready, waiting, is_stale, seen_at, ahead, "", {}, {}, why=why, failures=failures
    )


def _stage(
    rollout: ExternalRollout,
    nodes: Sequence[ExternalRolloutNode],
    targets: Sequence[TargetEvidence],
    around: StageSurroundings,
    current: dict[str, ExternalGateAnswer],
) -> StageSnapshot:
    """Returns the rollout as one soaking stage, so that missing evidence fails closed here too."""
    before = most_ready(_begun_nodes(nodes))
    evidence = Evidence(
        seen_at=around.seen_at,
        to_version=rollout.to_version,
        targets=tuple(targets),
        workloads_ready_now=ready_now(rollout, _begun_nodes(nodes), before, around),
        workloads_waiting_for_room={owner: around.waiting[owner] for owner in before if around.waiting[owner]},
        workloads_ready_before=before,
        workloads_refused=refused_since(rollout, _begun_nodes(nodes), before, around),
        others_passing_since=passing_since([gate.key for gate in ASKED if gate.key != Soak.key], current, None),
    )
    return StageSnapshot(
        index=0,
        name=str(rollout),
        is_rollback=False,
        state=StageState.SOAKING,
        state_since=rollout.state_since,
        wait_timeout=timedelta.max,
        max_unavailable=1,
        gates=ASKED,
        evidence=evidence,
    )
