"""A plan for page and REST: stages, why it does not move, and the commands it accepts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from django.db.models import Prefetch

from health.suspects import Suspects
from people.rights import why_not
from rollouts.gates import GATES
from rollouts.gates.base import GAVE_UP, Answer
from rollouts.gates.failure_budget import UNKNOWN, FailureBudget
from rollouts.gates.shared_waits import SharedWait, shared_waits
from rollouts.lifecycle import IN_FLIGHT, PlanState, StageState, TargetState
from rollouts.models import (
    Approval,
    Command,
    Cordon,
    Exclusion,
    GateAnswer,
    GateOverride,
    PendingCommand,
    Plan,
    Stage,
    Target,
    Verb,
)
from rollouts.models.gate_answer import BLIND
from rollouts.queries.affected_nodes import affected_nodes, cordons_due
from rollouts.queries.completion import OVER, causes_found, completion_of
from rollouts.queries.handover import handover_of
from rollouts.queries.operators import operator_down
from rollouts.queries.restraints import Restraint, most_urgent, restraints_of
from rollouts.queries.suspects import plan_suspects
from rollouts.verbs import VERBS, why_not_now
from wording.instants import moment, to_the_minute
from wording.lists import names
from wording.numbers import are

# states in which nodes may be released
RELEASING_STATES = frozenset({PlanState.HOLDING, PlanState.PROMOTING, PlanState.ROLLING_BACK})

LOOK = "Check whether a worker of the queue “rollouts” runs."
UNSHOWN = ("facts", "baseline")  # fields of a target that the page loads separately: they are most of its size


@dataclass(frozen=True)
class StageOnPage:
    stage: Stage
    targets: list[Target]
    answers: dict[str, GateAnswer]  # gate → its last result
    approvals: list[Approval]
    overrides: list[GateOverride]  # gates that were overridden, the newest first
    counts: Counter[str]  # targets by the state they are shown in

    @property
    def worst_first(self) -> list[GateAnswer]:
        return sorted(self.answers.values(), key=lambda answer: rank(answer.answer, answer.gate))

    @property
    def waits(self) -> list[SharedWait[GateAnswer]]:
        return waits_of(self.stage, self.answers.values())


def waits_of(stage: Stage, answers: Iterable[GateAnswer]) -> list[SharedWait[GateAnswer]]:
    """Returns each reason for which counting gates wait, once; none of a finished stage."""
    is_over = stage.state in OVER or stage.plan.is_final
    waiting = (each for each in answers if each.answer == Answer.WAIT and not each.is_advisory)
    return [] if is_over else shared_waits((answer, answer) for answer in waiting)


@dataclass(frozen=True, kw_only=True)
class PlanStanding:
    plan: Plan
    pause: Command | None
    halt: Command | None  # command of the person who halted it; None: not halted, or halted by a gate
    pending_stop: str = ""  # a halt or pause that the plan's rows do not say yet, as a sentence; of a list only
    failures: Sequence[str] = ()  # of a halted plan: each node that failed with its cause, known causes first
    missed_round_text: str  # sentence that no worker evaluated it although it is due; blank: evaluated, or in progress
    # What holds all of it back beside its own commands, where it would let something go; not asked for a list.
    restraint: Restraint | None = None
    operator_down: str = ""  # that the GPU operator is seen not to run, as a sentence; not asked for a list

    @property
    def shown_state(self) -> str:
        return "paused" if self.pause and self.plan.state in VERBS["pause"].states else self.plan.state

    @property
    def why(self) -> str:
        """Returns why the plan does not move; never empty, since silence would look like health."""
        if self._command_sentences:
            return self._command_sentences[0]
        if self.plan.state == PlanState.DRAFT:
            return self.plan.waiting_for or "A draft. Nothing in the cluster was changed."
        if self.plan.is_final:
            return self.plan.reason or f"The plan is {self.plan.state.replace('-', ' ')}."
        first = (
            "A worker evaluates the plan for the first time."
            if self.plan.epoch
            else "No worker has evaluated the plan yet."
        )
        return self.missed_round_text or self.plan.waiting_for or first

    @property
    def besides(self) -> list[str]:
        """Returns further restraints, and the last round's sentence."""
        is_new = self.operator_down and not any(self.operator_down in said for said in (self.why, *self._waits))
        return [*self._waits, self.operator_down] if is_new else self._waits

    @property
    def _waits(self) -> list[str]:
        if not self.missed_round_text:
            return self._command_sentences[1:]
        if self._command_sentences:
            return [*self._command_sentences[1:], self.missed_round_text]
        return [f"Last state: {self.plan.waiting_for}"] if self.plan.waiting_for else []

    @property
    def _command_sentences(self) -> list[str]:
        """Returns the commands in force, with the most urgent first: a pause never ends by itself."""
        paused = [said for said in (self.pending_stop, self.pause.sentence if self.pause else "") if said]
        if self.plan.state == PlanState.HALTED:
            return [halt_sentence(self.plan, self.halt, self.failures) or "It was halted.", *paused]
        if self.restraint is None:
            return paused
        return [self.restraint.sentence, *paused] if self.restraint.is_stop else [*paused, self.restraint.sentence]


def halt_sentence(plan: Plan, halt: Command | None, failures: Sequence[str]) -> str:
    """Returns why a plan is halted. Blank: no reason was recorded.

    A cause that was found after the halt takes the place of an unknown one.
    """
    if halt:
        return halt.sentence
    is_unknown = UNKNOWN in plan.reason or GAVE_UP in plan.reason
    return failures[0] if is_unknown and failures and GAVE_UP not in failures[0] else plan.reason


def rank(answer: str, gate: str) -> tuple[int, bool]:
    """Returns the sort key: failing gates, then waiting, unevaluated, passing.

    Of failing gates the failure budget is first: a failed node fails others too, and this one names its cause.
    """
    is_first = answer == Answer.FAIL and gate == FailureBudget.key
    return {"fail": 0, "wait": 1, "": 2}.get(answer, 3), not is_first


class HoldSeen(NamedTuple):
    node_uid: str
    is_wanted: bool
    is_foreign: bool
    wanted_since: datetime
    placed_at: datetime | None
    freed_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class PlanOnPage(PlanStanding):
    stages: list[StageOnPage]
    current: StageOnPage | None  # the stage whose turn it is; None before the start and after the end
    overrides: list[str]  # overridden gates of unfinished stages, a sentence each
    held: int  # nodes that carry our label, as last read back
    to_hold: int  # nodes whose label is not as we want it yet
    foreign_holds: int  # nodes with a foreign hold, counted in neither of the two
    placed: list[datetime | None]  # of each node that we are to hold: when its label was read back
    freed: list[datetime | None]  # by node that was released outside of a wave: when its label was observed as removed
    seq: int  # key of the newest event in the page
    halted_by: GateAnswer | None = None  # None: it is not halted, or something else than a gate has done it
    suspects: Suspects | None = None  # None: no node failed
    cordons: Sequence[str] = ()  # of a halted plan: which affected nodes it cordoned, and which not, in sentences

    @property
    def besides(self) -> list[str]:
        return [*(said for said in self.failures if said not in self.why), *self.cordons, *super().besides]

    @property
    def ahead(self) -> list[StageOnPage]:
        return [one for one in self.stages if one.stage.state not in OVER] if self.plan.is_under_way else []


def standings_of(plans: Sequence[Plan], *, now: datetime) -> list[PlanStanding]:
    """Returns the standings of many plans with one query, and at most two more if some are halted.

    Restraints come from each plan's last round.
    """
    told: dict[int, list[Command]] = defaultdict(list)
    for command in Command.objects.standing().filter(plan__in=[plan.pk for plan in plans]):
        told[command.plan_id].append(command)
    failures = failures_of_plans([plan for plan in plans if plan.state == PlanState.HALTED])
    return [
        PlanStanding(
            **_standing(plan, told[plan.pk], now=now),
            pending_stop=pending_stop_of(plan),
            failures=failures.get(plan.pk, ()),
        )
        for plan in plans
    ]


def pending_stop_of(plan: Plan) -> str:
    """Returns the sentence of `with_pending_stop`. Blank: none is in force, or the query did not ask."""
    row = getattr(plan, "pending_stop", None)
    return PendingCommand(**row).sentence if row and plan.is_under_way else ""


def _standing(plan: Plan, told: Sequence[Command], *, now: datetime) -> dict[str, Any]:
    return {
        "plan": plan,
        "pause": next((one for one in told if one.verb == Verb.PAUSE), None),
        "halt": next((one for one in told if one.verb == Verb.HALT and plan.state == PlanState.HALTED), None),
        "missed_round_text": missed_round_text(plan, now=now),
    }


def plan_on_page(plan: Plan, *, now: datetime) -> PlanOnPage:
    """Returns everything that a plan page shows, with at most 14 queries.

    A missing operator needs two more, a halted plan two.
    """
    newest_first = Prefetch("answers", GateAnswer.objects.filter(is_current=True))
    targets = Prefetch("targets", Target.objects.with_holds().select_related("wave").defer(*UNSHOWN))
    rows = plan.stages.select_related("pool").prefetch_related(targets, newest_first, "approvals", "overrides")
    exclusions = exclusions_of(plan)
    cordons = cordons_of(plan)
    stages = [_on_page(stage, exclusions, cordons) for stage in rows]
    there = plan.holds.of_nodes_there(plan.cluster_id)
    has_labels = plan.its_component.hold is not None  # else there is none to count
    holds = [HoldSeen(*row) for row in there.values_list(*HoldSeen._fields)] if has_labels else []
    newest = plan.events.values_list("pk", flat=True).first()
    failed = (target for one in stages for target in one.targets if target.state == TargetState.FAILED)
    return PlanOnPage(
        **_standing(plan, list(plan.commands.standing()), now=now),
        stages=stages,
        current=_current(plan, stages),
        overrides=_overrides(stages, now=now) if plan.is_under_way else [],
        restraint=restraint_on(plan, _letting_go(plan, stages), now=now),
        held=sum(hold.placed_at is not None for hold in holds),
        to_hold=sum(hold.is_wanted is (hold.placed_at is None) for hold in holds if not hold.is_foreign),
        foreign_holds=sum(hold.is_foreign for hold in holds),
        placed=[hold.placed_at for hold in holds if hold.is_wanted and not hold.is_foreign],
        freed=_freed(holds, stages) if plan.is_under_way else [],
        seq=newest or 0,
        halted_by=_halted_by(plan),
        failures=_failures(failed).get(plan.pk, ()) if plan.state == PlanState.HALTED else (),
        cordons=cordon_sentences(plan, cordons.values()),
        suspects=plan_suspects(plan, [one.stage for one in stages]),
        operator_down=operator_down(plan.cluster, now=now) if plan.is_under_way else "",
    )


def _halted_by(plan: Plan) -> GateAnswer | None:
    if plan.state != PlanState.HALTED:
        return None
    fails = GateAnswer.objects.filter(stage__plan=plan, answer=Answer.FAIL, is_advisory=False)
    rested_on = fails.filter(rested_on_at=plan.state_since).select_related("stage")
    return next((answer for answer in rested_on if answer.sentence == plan.reason), None)


def failures_of_plans(plans: Sequence[Plan]) -> dict[int, list[str]]:
    """Returns the failed nodes of plans grouped by cause, by plan. At most two queries; none without plans."""
    if not plans:
        return {}
    rows = Target.objects.filter(stage__plan__in=[plan.pk for plan in plans], state=TargetState.FAILED)
    return _failures(rows.select_related("stage").defer(*UNSHOWN).order_by("stage__index", "position"))


def _failures(failed: Iterable[Target]) -> dict[int, list[str]]:
    """Returns failed nodes grouped by cause, known causes first. One query if a cause was unknown at the failure."""
    targets = list(failed)
    unknown = [target.node_uid for target in targets if target.reason == GAVE_UP]
    found = causes_found(unknown) if unknown else {}
    by_cause: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for target in targets:
        by_cause[target.stage.plan_id][found.get(target.node_uid, target.reason)].append(target.node_name)
    return {
        plan: [
            f"{names(those)} failed: {reason}"
            for reason, those in sorted(causes.items(), key=lambda each: each[0] == GAVE_UP)
        ]
        for plan, causes in by_cause.items()
    }


def _freed(holds: Iterable[HoldSeen], stages: Iterable[StageOnPage]) -> list[datetime | None]:
    """Returns when the labels to be removed were removed; None for those that remain.

    Nodes that a wave released and that nobody held again are left out: their rows may not show a removed label.
    """
    by_waves = {(one.node_uid, one.wave.decided_at) for stage in stages for one in stage.targets if one.wave}
    released = [
        one for one in holds if not (one.is_wanted or one.is_foreign or (one.node_uid, one.wanted_since) in by_waves)
    ]
    left = [one for one in released if one.placed_at is not None]
    since = min((one.wanted_since for one in left), default=None)
    if since is None:
        return []
    return [
        *(None for _ in left),
        *(at for one in released if one.placed_at is None and (at := one.freed_at) and at >= since),
    ]


def missed_round_text(plan: Plan, *, now: datetime) -> str:
    """Returns a sentence that a due plan has no round; empty if it has one.

    A long round renews its lease, and a round that waits for a cluster states the next time.
    """
    since = moment(plan.looked_at, now=now) if plan.looked_at else ""
    return f"{missed_round_sentence('it', since)} {LOOK}" if is_unlooked(plan, now=now) else ""


def is_unlooked(plan: Plan, *, now: datetime) -> bool:
    if not plan.is_under_way or plan.next_look_at is None:
        return False
    return now - max(plan.next_look_at, plan.lease_until) > BLIND


def missed_round_sentence(called: str, since: str) -> str:
    """Returns the sentence. `since` is empty if there never was a round."""
    when = f"since {since}" if since else "yet"
    return f"No worker has evaluated {called} {when}. No node is released or held, and no gate is evaluated."


def _overrides(stages: Iterable[StageOnPage], *, now: datetime) -> list[str]:
    """Returns overrides in unfinished stages with the last result of each gate."""
    found: list[str] = []
    for one in stages:
        if one.stage.state not in OVER:
            newest = {override.gate: override for override in reversed(one.overrides) if override.is_in_force(now=now)}
            found += [_override_sentence(one.stage, newest[gate]) for gate in sorted(newest)]
    return found


def _override_sentence(stage: Stage, override: GateOverride) -> str:
    title = GATES[override.gate].title if override.gate in GATES else override.gate
    until = to_the_minute(override.until)
    return f"{title} of {stage.name} does not count until {until}: {override.by} overrode it. {override.reason}"


def exclusions_of(plan: Plan) -> dict[str, list[Exclusion]]:
    """Returns the plan's exclusions by node UID. One query."""
    found: dict[str, list[Exclusion]] = defaultdict(list)
    for row in Exclusion.objects.filter(plan=plan).shown():
        found[row.node_uid].append(row)
    return found


def cordons_of(plan: Plan) -> dict[str, Cordon]:
    """Returns the plan's cordons by node UID. One query."""
    return {row.node_uid: row for row in Cordon.objects.shown(plan)}


def cordon_sentences(plan: Plan, cordons: Iterable[Cordon]) -> list[str]:
    """Returns the cordons of a halt in sentences. Queries only while a halt with that option has some to write."""
    of_halt = [row for row in cordons if row.is_of_halt and plan.state == PlanState.HALTED]
    ours = [row.node_name for row in of_halt if row.ended_at is None]
    left = [row for row in of_halt if row.ended_at is not None]
    due = sorted(cordons_due(plan).values())
    sentences = [f"{names(ours)} {are(len(ours))} cordoned by this plan."] if ours else []
    sentences += [f"{row.node_name} is skipped: {row.left_reason}" for row in left]
    return [
        *sentences,
        *([f"{names(due)} {are(len(due))} cordoned in the next round, unless a stop is in force."] if due else []),
    ]


def restraint_on(plan: Plan, releasing: Iterable[Target], *, now: datetime) -> Restraint | None:
    """Returns what restrains all remaining nodes; None if nothing does.

    `releasing` are the targets of the releasing stage.
    """
    if plan.state not in RELEASING_STATES:
        return None
    found, targets = restraints_of(plan, now=now), list(releasing)
    if found.first:
        return found.first
    held = {target.node_uid for target in targets if target.state == TargetState.HELD}
    if not held or any(target.state in IN_FLIGHT for target in targets):
        return None
    bound = found.of_nodes(held)
    return most_urgent(bound.values()) if len(bound) == len(held) else None


def _letting_go(plan: Plan, stages: list[StageOnPage]) -> list[Target]:
    current = _current(plan, stages)
    return current.targets if current and current.stage.state == StageState.PROMOTING else []


def _on_page(stage: Stage, exclusions: Mapping[str, list[Exclusion]], cordons: Mapping[str, Cordon]) -> StageOnPage:
    targets = list(stage.targets.all())
    for target in targets:
        target.cordon = cordons.get(target.node_uid)
        target.exclusions = exclusions.get(target.node_uid, [])
    answers = {answer.gate: answer for answer in stage.answers.all()}
    return StageOnPage(stage, targets, answers, list(stage.approvals.all()), list(stage.overrides.all()),
                       Counter(t.shown_state for t in targets))  # fmt: skip


def _current(plan: Plan, stages: list[StageOnPage]) -> StageOnPage | None:
    if not plan.is_under_way:
        return None
    ends_back = plan.state in {PlanState.ROLLING_BACK, PlanState.ABORTING}
    ahead = [one for one in stages if one.stage.is_rollback == ends_back]
    return next((one for one in ahead if one.stage.state not in OVER), None)


@dataclass(frozen=True)
class Button:
    verb: str
    label: str
    resource: str
    consequence: str
    is_dangerous: bool
    is_allowed: bool
    why_not: str
    is_main: bool  # the usual next act
    is_shown: bool  # a draft has other verbs than a plan that has started
    says: str = ""  # addition to the consequence
    seen: str = ""  # the hash of all that this is


def buttons(plan: Plan, user, *, is_barred: bool = False) -> list[Button]:
    """Returns every verb with the reason if it is not available. One query per permission.

    `is_barred` means that a blocker exists, so that starting is not the main button.
    """
    needed = {verb.permission for verb in VERBS.values()}
    where = f"cluster {plan.cluster.name}"
    refused = {each: why_not(user, each, cluster_id=plan.cluster_id, where=where) for each in needed}
    is_paused = plan.commands.in_force().exists()
    main = "" if is_barred else _main(plan, is_paused=is_paused)
    found = [
        _button(plan, name, refused[verb.permission], is_paused=is_paused, is_main=name == main)
        for name, verb in VERBS.items()
    ]
    return [_filled(plan, button) for button in found]


class _Preview(Protocol):
    """The effect that a command would have now."""

    @property
    def why_not(self) -> str: ...
    @property
    def says(self) -> str: ...
    @property
    def seen(self) -> str:
        """Returns what the command compares: whether the person was shown the same."""


# Commands that are shown only if they would affect something.
PREVIEWS: Mapping[str, Callable[[Plan], _Preview]] = {
    "complete": completion_of,
    "cordon": affected_nodes,
    "handover": handover_of,
}


def _filled(plan: Plan, button: Button) -> Button:
    """Returns the button with what it would affect."""
    if button.verb not in PREVIEWS:
        return button
    if not button.is_allowed:
        return replace(button, is_shown=False)
    found = PREVIEWS[button.verb](plan)
    is_allowed = not found.why_not
    return replace(
        button, is_allowed=is_allowed, why_not=found.why_not, is_shown=is_allowed, says=found.says, seen=found.seen
    )


def _button(plan: Plan, name: str, refused: str, *, is_paused: bool, is_main: bool) -> Button:
    verb, state, is_written = VERBS[name], PlanState(plan.state), plan.write_intended_at is not None
    reason = refused or why_not_now(name, state, is_written=is_written, is_paused=is_paused)
    return Button(
        verb=name,
        label=verb.label,
        resource=verb.resource,
        consequence=verb.consequence,
        is_dangerous=verb.is_dangerous,
        is_allowed=not reason,
        why_not=reason,
        is_main=is_main and not reason,
        is_shown=(state is PlanState.DRAFT) == (PlanState.DRAFT in verb.states),
    )


def _main(plan: Plan, *, is_paused: bool) -> str:
    """Returns the main verb. From a halt it is the rollback; empty if no verb is first."""
    if plan.state == PlanState.HALTED:
        return "rollback"
    return "start" if plan.state == PlanState.DRAFT else "resume" if is_paused else ""
