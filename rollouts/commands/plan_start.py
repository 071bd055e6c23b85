"""Starts a plan: seals the draft, which from then on never changes, and hands it to the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from edges.digests import digest
from edges.idempotency import IdempotencyKey
from edges.prepared_inserts import compile_inserts, run_inserts
from edges.transition_errors import IllegalMove, LostRace
from fleet.models import Node
from people.models import AuditEntry, User
from rollouts.checks import Check
from rollouts.commands.forecast import sealed_forecast
from rollouts.commands.plan_control import is_carried_out
from rollouts.commands.preview import preview
from rollouts.commands.refusals import Blocked, OutOfDate, Refusal
from rollouts.gates.options import write_options
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Command, Hold, Plan, Stage, Target, Verb
from rollouts.preflight.changed_pools import unsorted_pools
from rollouts.preflight.live_checks.answers import LiveAnswer, blocking_checks
from rollouts.preflight.picks import Picks, forward, pick
from rollouts.preflight.unapproved_stages import approval_rule_owner, unasked
from rollouts.queries.driver_nodes import candidate, driver_daemonsets, is_held_by_others, newest_hashes, nodes_of
from rollouts.verbs import why_not_now

CHANGED = "The draft has changed since you read it. Read it again before you start it."


@dataclass(frozen=True)
class AskedStart:
    actor: User
    reason: str
    override_reason: str
    expected_revision: int
    key: str

    @property
    def idempotency_key(self) -> IdempotencyKey:
        body = {
            "reason": self.reason,
            "override_reason": self.override_reason,
            "expected_revision": self.expected_revision,
        }
        return IdempotencyKey.of(self.key, person=self.actor.get_username(), verb=Verb.START, body=body)


@dataclass(frozen=True)
class LiveSeal:
    """The cluster's answers just before the start."""

    answers: Sequence[LiveAnswer] = ()
    answered_at: datetime | None = None  # None: it was not asked
    spec: Mapping[str, str] = field(
        default_factory=dict
    )  # digests of the object's, by field: a later change is another's


@dataclass(frozen=True)
class LookBefore:
    """The checks from rows that do not bar the start."""

    overridden: list[Check]
    warnings: list[Check]
    forecast: Mapping[str, Any] = field(default_factory=dict)  # as `forecast.sealed_forecast` writes it


def start(
    plan: Plan,
    *,
    actor: User,
    reason: str,
    expected_revision: int,
    override_reason: str = "",
    key: str = "",
    live: LiveSeal | None = None,
    now: datetime,
) -> None:
    """Seals a draft and starts it. Repeating the key is the same start.

    `override_reason` is why it starts despite overridable blockers. `live` are the cluster's answers; people start by
    `live_checks.ask_start`, which asks for them.

    :raises OutOfDate: when the draft is not the one that the caller saw
    :raises Blocked: with the blockers
    :raises Refusal: when it is no draft
    """
    asked = AskedStart(actor, reason, override_reason, expected_revision, key)
    try:
        _start(plan, asked, live or LiveSeal(), now=now)
    except (IllegalMove, LostRace, Refusal):
        # The same command was sent twice at once: the first one does not refuse the second.
        if not is_carried_out(plan, asked.idempotency_key):
            raise


def look_before(plan: Plan, asked: AskedStart, *, now: datetime) -> LookBefore:
    """Checks the start from rows, with overrides.

    :raises OutOfDate: when the draft is not the one that the caller saw
    :raises Blocked: with the blockers
    :raises Refusal: when it is no draft
    """
    if sentence := why_not_now("start", PlanState(plan.state), is_written=False, is_paused=False):
        raise Refusal(sentence)
    plan.started_by = asked.actor.get_username()  # for the approval: who starts a plan may not approve it
    told = preview(plan, now=now)
    stands = told.blockers
    overridden = [check for check in stands if check.may_be_overridden] if asked.override_reason.strip() else []
    if blockers := [check for check in stands if check not in overridden]:
        raise Blocked(blockers)
    if plan.revision != asked.expected_revision:
        raise OutOfDate(CHANGED)
    return LookBefore(overridden, told.warnings, sealed_forecast(told.forecast, now=now))


def _start(plan: Plan, asked: AskedStart, live: LiveSeal, *, now: datetime) -> None:
    if is_carried_out(plan, asked.idempotency_key):
        return
    looked = look_before(plan, asked, now=now)
    if barred := blocking_checks(live.answers, is_overridden=bool(asked.override_reason.strip())):
        raise Blocked(barred)
    begin(plan, asked, looked, live, now=now)


def begin(plan: Plan, asked: AskedStart, looked: LookBefore, live: LiveSeal, *, now: datetime) -> None:
    """Seals a checked draft and queues its first round.

    :raises OutOfDate: when the draft is not the one that the caller saw
    :raises Blocked: when another plan has its object or some of its nodes
    """
    actor, reason = asked.actor, asked.reason
    overridden = [*looked.overridden, *(answer.check for answer in live.answers if answer.bars)]
    checks = {
        "despite": _despite(overridden, actor, asked.override_reason),
        "warned": _warned(looked.warnings),
        **_live(live),
        "rehearsals": _rehearsals(plan),
        "forecast": dict(looked.forecast),
    }
    nodes = list(nodes_of(plan).prefetch_related("pools"))
    picks = pick(forward(plan), nodes, now=now)
    if unsorted := list(unsorted_pools(plan.cluster_id)):  # read last: the nodes of a pool were read before
        raise Blocked(unsorted)
    sealed = _content(plan, picks) | checks
    columns = {
        "sealed": sealed,
        "content_hash": digest(sealed),
        "templates": {"spec": dict(live.spec)} if live.spec else {},
    }
    inserts = [*compile_inserts(_targets(plan, picks, now=now)), *compile_inserts(_holds(plan, nodes, now=now))]
    try:
        with transaction.atomic():
            _seal(plan, asked, columns, now=now)
            run_inserts(inserts)
            plan.move(PlanState.HOLDING, now=now, actor=actor.get_username(), reason=reason)
            Command.objects.create(
                plan=plan, verb=Verb.START, actor=actor.get_username(), at=now, reason=reason, key=asked.key,
                body_digest=asked.idempotency_key.body,
            )  # fmt: skip
            AuditEntry.record(
                plan.mark, verb="start", actor=actor.get_username(), reason=reason, evidence=plan.sealed, now=now
            )
    except IntegrityError as clash:
        title = "Another plan has started on the same object or nodes"
        steps = ("Wait until that plan ends, or leave its nodes out.",)
        raise Blocked([Check("busy", title=title, steps=steps)]) from clash
    Plan.queue_round(plan.pk)


def _despite(overridden: Sequence[Check], actor: User, reason: str) -> dict[str, Any]:
    if not overridden:
        return {}
    checks = [{"code": check.code, "title": check.title, "summary": check.summary} for check in overridden]
    return {"by": actor.get_username(), "reason": reason.strip(), "checks": checks}


def _warned(warnings: Sequence[Check]) -> list[dict[str, Any]]:
    return [
        {"code": check.code, "title": check.title, "summary": check.summary, "is_grave": check.is_grave}
        for check in warnings
    ]


def _live(live: LiveSeal) -> dict[str, Any]:
    if live.answered_at is None:
        return {}
    said = [
        {
            "result": answer.result.value,
            "code": answer.check.code,
            "title": answer.check.title,
            "summary": answer.check.summary,
        }
        for answer in live.answers
    ]
    return {"live": {"at": live.answered_at.isoformat(), "answers": said}}


def _rehearsals(plan: Plan) -> list[dict[str, Any]]:
    """Returns the newest outcome of the sealed revision for each fault, for approvers."""
    return [
        {
            "fault": row.fault,
            "seed": row.seed,
            "by": row.asked_by,
            "at": row.asked_at.isoformat(),
            "sentence": row.outcome["sentence"],
        }
        for row in plan.rehearsals.newest_by_fault(plan.revision)
    ]


def _seal(plan: Plan, asked: AskedStart, columns: dict[str, Any], *, now: datetime) -> None:
    same = Plan.objects.filter(pk=plan.pk, state=PlanState.DRAFT, revision=asked.expected_revision)
    won = same.update(
        started_by=asked.actor.get_username(),
        sealed_at=now,
        waiting_for="",
        next_look_at=now,
        lease_until=now,
        **columns,
    )
    if not won:
        raise OutOfDate(CHANGED)
    plan.refresh_from_db()
    plan.stages.update(state_since=now)  # none of them could begin before


def _targets(plan: Plan, picks: Picks, *, now: datetime) -> list[Target]:
    stages = {stage.index: stage for stage in plan.stages.all()}
    return [
        _target(stages[index], position, node, now=now)
        for index, chosen in picks.by_stage.items()
        for position, node in enumerate(chosen)
    ]


def _holds(plan: Plan, nodes: Sequence[Node], *, now: datetime) -> list[Hold]:
    return [
        Hold(
            plan=plan,
            node_uid=node.uid,
            node_name=node.name,
            wanted_since=now,
            is_foreign=plan.its_component.hold is not None and is_held_by_others(node),
        )
        for node in nodes
    ]


def _target(stage: Stage, position: int, node: Node, *, now: datetime) -> Target:
    return Target(
        stage=stage,
        position=position,
        node_uid=node.uid,
        node_name=node.name,
        facts=dict(candidate(node).facts),
        state=TargetState.HELD,
        state_since=now,
    )


def _content(plan: Plan, picks: Picks) -> dict[str, Any]:
    """Returns everything that an approval binds: change, nodes, order, gates, and the way back."""
    daemonsets = driver_daemonsets(plan)
    stages = forward(plan)
    return {
        "component": plan.component,
        "cluster": plan.cluster.uid,
        "object": {"kind": plan.object_kind, "name": plan.object_name, "uid": plan.object_uid},
        "from": plan.from_version,
        "to": plan.to_version,
        **({"cordon_affected": True} if plan.cordon_affected else {}),
        "revisions": newest_hashes(plan.cluster_id, [daemonset.uid for daemonset in daemonsets]),
        "stages": [
            {
                "index": stage.index,
                "name": stage.name,
                "kind": stage.kind,
                "max_unavailable": stage.max_unavailable,
                "timeout_s": stage.timeout_s,
                **({"sick_nodes_reason": stage.sick_nodes_reason} if stage.sick_nodes_reason else {}),
                "gates": {gate.key: write_options(gate) for gate in stage.gates},
                "targets": [node.name for node in picks.by_stage.get(stage.index, [])],
            }
            for stage in plan.stages.all()
        ],
        "unasked": [{"stage": stage.name, "said_by": approval_rule_owner(plan, stage)} for stage in unasked(stages)],
        "rollback": f"{plan.object_kind} {plan.object_name} back to {plan.from_version}, in waves",
    }
