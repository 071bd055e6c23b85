"""Guards that can be taken out, one at a time: a bench that misses none of them is worth its time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

from django.db.models import F
from msgspec.structs import replace

from benchmarks.crashing import case_world
from fleet.models import Cluster, ClusterMode, DomainEvent
from gpu import external_controllers
from gpu.labels import CORDONED_BY, HELD_BY
from kube import client
from kube.resources import PODS
from maintenance.lifecycle import CaseFacts
from maintenance.triggers import BreakerNumbers
from operations import test_job_tracker, writer_lease
from operations.failure_domains import Budgets
from operations.models import NodeTestJob, Operation, Quarantine
from operations.operation_round import OperationRound
from operations.steps import cancel_breakfix, drain, image_pull, out_of_service
from operations.steps.base import NodeStep, NodeWork
from operations.test_job_tracker import TestJobTracker
from rollouts.components.driver import Driver
from rollouts.components.throttle import Room
from rollouts.engine import act, decide, live_state, observation, record
from rollouts.engine import round as rounds
from rollouts.engine.act import cordons, exclusions, holds, node_handover, version, waves
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide import budget, plan_abort, promotion, releases, rollback
from rollouts.engine.decide import cordons as cordoning
from rollouts.engine.decide.acts import Decision, HandOver, Recall
from rollouts.engine.decide.restoration import ours
from rollouts.engine.snapshot import Snapshot, StageSnapshot
from rollouts.models import Plan
from rollouts.models.plan import LEASE
from rollouts.queries import restraints
from rollouts.queries.restraints import Restraints

Patch = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Plant:
    says: str
    patches: tuple[Patch, ...]


def _instead(where: Any, name: str, stands: Any) -> Patch:
    return lambda: mock.patch.object(where, name, stands)


def _always(answer: Any) -> Callable[..., Any]:
    return lambda *_, **__: answer


def _take_turn(plan: Plan, *, owner: str, now: datetime) -> bool:
    """Whoever asks has it."""
    plan.fallback_look_at = now
    Plan.objects.filter(pk=plan.pk).update(lease_owner=owner, epoch=F("epoch") + 1)
    plan.refresh_from_db(fields=["epoch"])
    return True


def _keep_any_lease(plan: Plan, *, now: datetime) -> None:
    """Whoever has it. It is written all the same, so that there are as many seams as in the lives before."""
    Plan.objects.filter(pk=plan.pk).update(lease_until=now + LEASE)


INTEND, HOLD_NODE = waves._intend, holds.hold_node  # noqa: SLF001 (what stands in their place goes on to them)


def _intend_any_number(plan: Plan, stage: Any, *given: Any, **named: Any) -> None:
    stage.max_unavailable = 10**6
    INTEND(plan, stage, *given, **named)


def _hold_once(writer: Any, uid: str, name: str, *, anew: bool = False, **more: Any) -> Any:  # noqa: ARG001
    return HOLD_NODE(writer, uid, name, **more)


def _nothing_before(seen: Any, those: Any) -> dict[str, None]:
    return dict.fromkeys(external_controllers.before(seen, those))


WHY_KEPT, CHANGE = waves._why_kept, Writer.change  # noqa: SLF001


def _why_kept_whichever(writer: Writer, target: Any, seen: Any) -> str:
    return WHY_KEPT(writer, target, replace(seen, metadata=replace(seen.metadata, uid=target.node_uid)))


def _change_whichever(writer: Writer, _uid: str, name: str, *given: Any, **named: Any) -> Any:
    """As one that is asked for by its name alone."""
    try:
        return CHANGE(writer, client.get_node(writer.connection, name).uid, name, *given, **named)
    except client.Absent:
        return None


IS_STILL_WANTED, FREE_NODE = waves._is_still_wanted, holds.free_node  # noqa: SLF001


def _is_wanted_frozen_or_not(*given: Any) -> bool:
    with mock.patch.object(waves, "why_not_released", _always("")):
        return IS_STILL_WANTED(*given)


class _Taker(Writer):
    """To whom every hold is its own. Where there is no name on a node, none is taken off."""

    def change(self, uid: str, name: str, wanted: Callable[[Any], Any], **named: Any) -> Any:
        def change(seen: Any) -> Any:
            if HELD_BY in seen.annotations:
                return wanted(seen)
            ours = replace(seen.metadata, annotations={**seen.annotations, HELD_BY: self.plan.mark})
            return [step for step in wanted(replace(seen, metadata=ours)) if "held-by" not in step["path"]]

        return super().change(uid, name, change, **named)


def _free_anybodys(writer: Writer, *given: Any, **named: Any) -> Any:
    return FREE_NODE(_Taker(writer.plan, writer.connection, writer.clock, writer.told), *given, **named)


TAKE = waves.record_disruptions


def _take_whatever(*given: Any, **named: Any) -> None:
    """Written down, so that later decisions know of it, and never refused."""
    with mock.patch.object(Budgets, "why_not", _always("")):
        TAKE(*given, **named)


INTEND_JOB, WRITE_JOB = image_pull.intend_job, TestJobTracker._write  # noqa: SLF001


def _intend_unrecorded(work: NodeWork, deadline: timedelta, **columns: Any) -> NodeTestJob:
    """All of its checks, and no word of what is made."""
    row = INTEND_JOB(work, deadline, **columns)
    NodeTestJob.objects.filter(pk=row.pk).update(gone_at=work.clock())
    return row


def _write_recorded(tracker: TestJobTracker, row: Any, progress: Any, *, now: datetime, **more: Any) -> None:
    WRITE_JOB(tracker, row, progress, now=now, **({"gone_at": None} if "made_at" in more else {}) | more)


TAKE_LEASE = act.take_writer_lease


def _take_lease_anyway(connection: Any, cluster: Cluster, *, now: datetime) -> None:
    """Of a cluster that may only be watched, too."""
    cluster.mode = ClusterMode.OPERATE
    TAKE_LEASE(connection, cluster, now=now)


def _hand_all_over(snapshot: Snapshot) -> Decision | None:
    held = ours(snapshot)
    return Decision("Letting all go.", acts=(HandOver(held),)) if held else None


STAGE_ROOM = budget._stage_room  # noqa: SLF001


def _room_but_for_its_own(snapshot: Snapshot, stage: StageSnapshot) -> Room:
    return STAGE_ROOM(dataclasses.replace(snapshot, nodes=()), stage)


def _evict_by_name(
    connection: client.Connection,
    namespace: str,
    name: str,
    *,
    uid: str,  # noqa: ARG001
    is_dry_run: bool = False,
) -> None:
    """Whichever pod has the name now."""
    eviction: dict[str, Any] = {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace},
    }  # fmt: skip
    if is_dry_run:
        eviction["deleteOptions"] = {"dryRun": ["All"]}
    connection.request("POST", PODS.path(name, namespace=namespace) + "/eviction", body=eviction)


CHANGE_NODE = NodeWork.change_node


def _uncordon_whosever(work: NodeWork, wanted: Callable[[Any], Any]) -> Any:
    """To which every cordon is the one of the node's quarantine."""
    row = Quarantine.objects.of_nodes([work.node.node_uid]).select_related("operation").first()

    def change(seen: Any) -> Any:
        if row is None or seen.annotations.get(CORDONED_BY) == row.operation.mark:
            return wanted(seen)
        ours = replace(seen.metadata, annotations={**seen.annotations, CORDONED_BY: row.operation.mark})
        return [step for step in wanted(replace(seen, metadata=ours)) if "cordoned-by" not in step["path"]]

    return CHANGE_NODE(work, change)


AGREED = _always(answer=True)
ROOM = _always(Room(10**6, "as many as there are"))
NO_RESTRAINTS = _always(Restraints(0))

PLANTS = {
    "turn": Plant(
        "the plan's lease: a worker that lost its turn, or never had it, goes on",
        (_instead(Plan, "keep_lease", _keep_any_lease), _instead(Plan, "take_lease", _take_turn)),
    ),
    "budget": Plant(
        "the budget: how many nodes a stage and the operator may have on the way",
        (
            _instead(releases, "room", ROOM),
            _instead(rollback, "room", ROOM),
            _instead(waves, "_intend", _intend_any_number),
        ),
    ),
    "room": Plant(
        "the room in the decision to let nodes go: all that are held are wanted at once, and the intent refuses them",
        (_instead(releases, "room", ROOM),),
    ),
    "room-back": Plant(
        "the same, in the decision to let nodes go back",
        (_instead(rollback, "room", ROOM),),
    ),
    "slots": Plant(
        "the operator's slots: only a stage's own budget says how many go",
        (_instead(Driver, "room", ROOM),),
    ),
    "slots-back": Plant(
        "the same, in the decision to let nodes go back",
        (_instead(rollback, "room", STAGE_ROOM),),
    ),
    "broken": Plant(
        "the nodes in a stage's budget that are broken already: only what the stage itself has let go counts",
        (_instead(budget, "_stage_room", _room_but_for_its_own),),
    ),
    "live-look": Plant(
        "the look at a node itself before its wave is written down: held by us, not begun, not cordoned, not frozen",
        (_instead(waves, "_why_kept", _always("")),),
    ),
    "same-node": Plant(
        "the look at a node's UID: one that was made anew under its name goes in its place",
        (_instead(waves, "_why_kept", _why_kept_whichever), _instead(Writer, "change", _change_whichever)),
    ),
    "offered": Plant(
        "what DRA drivers say in the live look: of a node whose labels name no driver it knows no version",
        (_instead(live_state, "_offered", _always({})),),
    ),
    "ledger": Plant(
        "the look into the ledger of all plans in the intent: two that decide at once take the same place",
        (_instead(waves, "record_disruptions", _take_whatever),),
    ),
    "stop": Plant(
        "the look for a halt, a pause or a freeze before each label",
        (_instead(waves, "_is_still_wanted", AGREED),),
    ),
    "freeze-last": Plant(
        "of that look, the one for freezes and windows",
        (_instead(waves, "_is_still_wanted", _is_wanted_frozen_or_not),),
    ),
    "free-ours": Plant(
        "the look whose hold it is, just before it is taken off",
        (_instead(holds, "free_node", _free_anybodys),),
    ),
    "read-back": Plant(
        "the live look that every node is held, just before the version is written",
        (_instead(version, "_not_held_live", _always({})),),
    ),
    "writer-lease": Plant(
        "the epoch and the holder of the Lease in the cluster: an old copy of the database, or another Quarterdeck",
        (_instead(writer_lease, "_why_not_ours", _always("")),),
    ),
    "foreign": Plant(
        "that a plan which is given up holds its nodes while somebody else's version is in the object",
        (
            _instead(plan_abort, "ask_to_hand_over", _hand_all_over),
            _instead(node_handover, "_plan_as_decided", lambda plan: Plan.objects.filter(pk=plan.pk)),
        ),
    ),
    "recall": Plant(
        "the recall of what was let go and has not begun",
        (lambda: mock.patch.dict(act.CARRY_OUT, {Recall: _always(None)}),),
    ),
    "fence": Plant(
        "the hold written anew by a recall, by which a release that is still on its way fails",
        (_instead(holds, "hold_node", _hold_once),),
    ),
    "freeze": Plant(
        "freezes and the stop of the fleet",
        (
            _instead(waves, "why_not_released", _always("")),
            _instead(waves, "restraints_of", NO_RESTRAINTS),
            _instead(observation, "restraints_of", NO_RESTRAINTS),
        ),
    ),
    "switch": Plant(
        "the ConfigMap in the cluster that stops everything",
        (_instead(live_state, "stopped_by_switch", _always("")),),
    ),
    "approval": Plant(
        "that a stage waits for what its gates say before the first of its nodes goes",
        (_instead(promotion, "wait_for_gates", _always(None)),),
    ),
    "rejection": Plant(
        "the look for a rejection in the move by which a stage begins: one of the same moment goes unseen",
        (_instead(record, "_is_rejected", _always(answer=False)),),
    ),
    "void": Plant(
        "that an approval is void when its giver may not give it any more, or what it was given for has changed",
        (_instead(rounds, "void_approvals", _always(None)),),
    ),
    "windows": Plant(
        "maintenance windows: a node goes outside of them",
        (_instead(restraints, "windows_of", _always({})),),
    ),
    "watch-only": Plant(
        "the mode of a cluster: one that may only be watched is written to",
        (_instead(act, "take_writer_lease", _take_lease_anyway),),
    ),
    "opt-outs": Plant(
        "what keeps NVSentinel, Karpenter and the autoscaler off a node is put back before it is judged, or at the end",
        (_instead(decide, "with_exclusions", lambda _snapshot, decision, **_: decision),),
    ),
    "as-before": Plant(
        "what was there before such an exclusion is known, and put back as it was",
        (_instead(exclusions, "before", _nothing_before),),
    ),
    "cordons": Plant(
        "a node that is cordoned until its test Job has completed takes pods again after it, or at the end",
        (_instead(decide, "with_cordons", lambda _snapshot, decision: decision),),
    ),
    "cordon-note": Plant(
        "the operator is told to leave such a node cordoned: it uncordons it before anything has been tested",
        (_instead(cordons, "_our_marks", lambda writer, _seen: {cordons.CORDONED_BY: writer.plan.mark}),),
    ),
    "cordon-proof": Plant(
        "such a node takes no pods before its test Job has completed",
        (_instead(cordoning, "_is_unproven", _always(answer=False)),),
    ),
    "moment": Plant(
        "that what a round saw is of one moment, and every intent checks again: a command in between goes unseen",
        (
            _instead(rounds, "_check_nobody_moved_it", _always(None)),
            _instead(waves, "_lock_plan_and_stage", _always(None)),
            _instead(waves, "_is_still_wanted", AGREED),
        ),
    ),
    "job-intent": Plant(
        "the row that says that a Job may be there, written before the Job is: it is written after it",
        (_instead(image_pull, "intend_job", _intend_unrecorded), _instead(TestJobTracker, "_write", _write_recorded)),
    ),
    "pull-stop": Plant(
        "the look for the stop, freezes and the ConfigMap before a Job is made that pulls an image",
        (_instead(image_pull.ImagePullStep, "why_no_job_now", _always("")),),
    ),
    "pull-purpose": Plant(
        "the sweep that cancels the image pull of a plan that needs it no more",
        (_instead(case_world, "cancel_obsolete_pulls", _always(None)),),
    ),
    "job-landing": Plant(
        "that a request for a Job that may still land is waited for",
        (_instead(test_job_tracker, "LANDED_BY", timedelta(0)),),
    ),
    "job-ours": Plant(
        "the look at whose Job of our name it is",
        (_instead(test_job_tracker, "is_ours", AGREED),),
    ),
    "eviction-uid": Plant(
        "the UID in an eviction: a pod that started again elsewhere under the same name is evicted in its place",
        (_instead(client, "evict_pod", _evict_by_name),),
    ),
    "eviction-stop": Plant(
        "the look for a cancellation, a pause, a stop or a freeze before each write of an operation",
        (_instead(OperationRound, "_guard", _always(None)),),
    ),
    "release-ours": Plant(
        "the look whose cordon it is, just before a release removes it",
        (_instead(NodeWork, "change_node", _uncordon_whosever),),
    ),
    "validation": Plant(
        "that a validation is newer than the last fault, repair and failed test of its case",
        (
            _instead(CaseFacts, "why_unvalidated", property(lambda case: "" if case.passed_at else "None has passed.")),
            _instead(CaseFacts, "is_overridden", property(lambda case: case.overridden_at is not None)),
        ),
    ),
    "power-off": Plant(
        "the look at the node itself before it is marked out of service: its kubelet is silent, and it is cordoned",
        (_instead(out_of_service, "_why_not", _always("")),),
    ),
    "power-back": Plant(
        "the removal of the taint of a node that is given up, or failed and has booted since",
        (_instead(out_of_service.OutOfServiceStep, "left_behind", _always(())),),
    ),
    "breakfix-seen": Plant(
        "the look whose cordon it is, and for which events, just before NVSentinel's break-fix is cancelled",
        (_instead(cancel_breakfix, "_why_not", _always("")),),
    ),
    "owners-once": Plant(
        "the events by which a drain knows whose owner it has asked from another node, or before a retry",
        (_instead(Operation, "owner_events", property(lambda _: DomainEvent.objects.none())),),
    ),
    "owners-time": Plant(
        "the time for the owners of jobs, before which a drain leaves their pods",
        (_instead(drain, "held_jobs", _always({})),),
    ),
    "others-work": Plant(
        "the look at the work of other controllers before an operation begins on a node",
        (_instead(NodeStep, "why_not_begin", _always({})),),
    ),
    "breaker": Plant(
        "the limits at which the breaker of automatic quarantine opens",
        (_instead(BreakerNumbers, "why_trip", ""),),
    ),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Without this guard. Blank: with all of them."""
    with ExitStack() as stack:
        for patch in PLANTS[name].patches if name else ():
            stack.enter_context(patch())
        yield
