"""Reads over several models, for the engine, for steering and for the edges."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Prefetch, Q, QuerySet

from fleet.models import Bookmark, DriverObject, Node, Observer, Operand, OperandRevision, Pod
from fleet.segments.labelled import labelled
from gpu.operands import DRIVER
from gpu.resources.words import layout_in_words
from kube.resources import DAEMON_SETS, DRIVER_OBJECTS, NODES, PODS
from kube.selectors import exactly
from people.rights import why_not
from rollouts.completion import OVER, completion_of
from rollouts.gates import GATES
from rollouts.harm import UNHARMED, Harm
from rollouts.lifecycle import IN_FLIGHT, PlanState, StageState, TargetState
from rollouts.models import Approval, BreakGlass, Command, GateAnswer, OptOut, Plan, Stage, Target, Verb
from rollouts.models.gate_answer import BLIND
from rollouts.picking import FACTORS, Candidate
from rollouts.restraints import Restraint, most_urgent, restraints_of
from rollouts.verbs import VERBS, why_not_now
from wording.instants import moment

LETS_GO = frozenset({PlanState.HOLDING, PlanState.PROMOTING, PlanState.ROLLING_BACK})  # or writes what lets go
TOLD_BY_A_DATE_S = 2.0  # the Date of an answer has no parts of a second, and the answer took a while
JUDGED_KINDS = tuple(kind.name for kind in (NODES, PODS, DAEMON_SETS))  # what a plan rests on, with its object


def nodes_of(driver_object: DriverObject | Plan) -> QuerySet[Node]:
    """Every node on which a driver DaemonSet of the object runs, or should run. One query now, one when it is read."""
    cluster_id, uid = driver_object.cluster_id, object_uid(driver_object)
    daemonsets = list(_daemonsets(cluster_id, uid))
    with_pod = Pod.objects.filter(cluster=cluster_id, owner_uid__in=[d.uid for d in daemonsets]).values("node_name")
    wanted = Q(name__in=with_pod)
    for daemonset in daemonsets:
        if daemonset.node_selector:
            wanted |= labelled(exactly(daemonset.node_selector))
    return Node.objects.filter(wanted, cluster=cluster_id, is_gpu_node=True)


def changeable() -> Q:
    """The driver objects that a plan can be written for: what says a version that some node is to run."""
    runs_drivers = Q(kind="ClusterPolicy", uses_driver_crd=False, is_driver_off=False)
    return Q(kind="NVIDIADriver") | (runs_drivers & ~Q(state="ignored"))


def object_uid(driver_object: DriverObject | Plan) -> str:
    return driver_object.object_uid if isinstance(driver_object, Plan) else driver_object.uid


def is_held_by_others(node: Node) -> bool:
    """Held, and not by one of our plans: that label is not ours to remove."""
    return node.is_held and not node.held_by.startswith("plan-")


def candidate(node: Node, harm: Harm = UNHARMED) -> Candidate:
    """Of a node whose pools are prefetched."""
    found = {"gpu_layout": layout_in_words(node.layout), "pool": " and ".join(sorted(p.name for p in node.pools.all()))}
    facts = {factor: found[factor] if factor in found else str(getattr(node, factor)) for factor in FACTORS}
    is_fit = node.is_ready is True and not node.is_unschedulable
    return Candidate(node.uid, node.name, facts, is_fit=is_fit, harm=harm)


def driver_daemonsets(plan: Plan) -> list[Operand]:
    return list(_daemonsets(plan.cluster_id, plan.object_uid))


def _daemonsets(cluster_id: int, owner_uid: str) -> QuerySet[Operand]:
    """Of the driver, which a ClusterPolicy owns among those of all operands."""
    return Operand.objects.filter(cluster=cluster_id, operand=DRIVER, owner_uid=owner_uid).order_by("name")


def newest_hashes(cluster_id: int, daemonset_uids: Iterable[str]) -> dict[str, str]:
    """DaemonSet uid → hash of its newest template, as the cluster last showed it."""
    rows = OperandRevision.objects.filter(cluster=cluster_id, owner_uid__in=list(daemonset_uids)).order_by("revision")
    return {row.owner_uid: row.revision_hash for row in rows}


def cluster_policy(cluster_id: int) -> DriverObject | None:
    """The one that counts. Others are ignored by the operator and say so (`status.state: ignored`)."""
    policies = DriverObject.objects.filter(cluster=cluster_id, kind="ClusterPolicy").exclude(state="ignored")
    return policies.order_by("pk").first()


def upgrade_policy(driver_object: DriverObject) -> dict:
    """The throttle that counts: the object's own from operator 26.7 on, the ClusterPolicy's before."""
    if driver_object.upgrade_policy:
        return driver_object.upgrade_policy
    policy = cluster_policy(driver_object.cluster_id)
    return policy.upgrade_policy if policy else {}


def judged_kinds(plan: Plan) -> tuple[str, ...]:
    """Not the kinds of other driver objects: where the ClusterPolicy says the version, NVIDIADrivers may be absent."""
    return (*JUDGED_KINDS, DRIVER_OBJECTS[plan.object_kind].name)


@dataclass(frozen=True)
class Heard:
    """How old the rows are that a plan rests on."""

    stale_because: str  # why they may not be acted on; blank: they may
    oldest: datetime


def heard(plan: Plan, *, now: datetime) -> Heard:
    """One query."""
    found = Bookmark.objects.filter(cluster=plan.cluster_id, kind__in=judged_kinds(plan)).order_by()
    marks = {mark.kind: mark for mark in found}
    oldest = min((mark.heard_at for mark in marks.values() if mark.heard_at is not None), default=now)
    return Heard(_stale_because(plan, marks, now=now), oldest)


def _stale_because(plan: Plan, marks: Mapping[str, Bookmark], *, now: datetime) -> str:
    cluster = plan.cluster
    for kind in judged_kinds(plan):
        mark = marks.get(kind)
        if mark is None or mark.heard_at is None:
            return f"{cluster.name} has not shown its {kind.partition('.')[0]} yet."
        if not mark.is_fresh(now=now):
            return f"{cluster.name} has not been seen since {mark.heard_at:%H:%M:%S} UTC ({kind.partition('.')[0]})."
    return ""


def clock_ahead(cluster_id: int) -> timedelta:
    """How far the cluster's clock is ahead of ours. Zero where it is not known, or less than an answer can tell."""
    skew_s = next(
        iter(Observer.objects.filter(cluster=cluster_id).order_by().values_list("clock_skew_s", flat=True)), 0
    )
    return timedelta(seconds=skew_s) if skew_s and abs(skew_s) > TOLD_BY_A_DATE_S else timedelta(0)


@dataclass(frozen=True)
class StageOnPage:
    stage: Stage
    targets: list[Target]
    answers: dict[str, GateAnswer]  # gate → what it answered last
    approvals: list[Approval]
    glass: list[BreakGlass]  # gates that were passed over, the newest first
    counts: Counter[str]  # targets by the state they are shown in


@dataclass(frozen=True)
class PlanOnPage:
    plan: Plan
    stages: list[StageOnPage]
    current: StageOnPage | None  # the stage whose turn it is; None before the start and after the end
    pause: Command | None
    halt: Command | None  # by which a person halted it; None: it is not halted, or a gate has done it
    passed_over: list[str]  # gates that do not count now by a person's word, a sentence each
    restraint: Restraint | None  # what holds all of it back beside its own commands, where it would let something go
    held: int  # nodes that carry our label, as last read back
    to_hold: int  # nodes whose label is not as we want it yet
    foreign_holds: int
    placed: list[datetime | None]  # of each node that is to be held: when its label was read back
    seq: int  # key of the newest event: what the page was made from
    unlooked: str = ""  # that no worker has looked at it though it is due, as a sentence; blank: one has, or is at it

    @property
    def why(self) -> str:
        """Why it is not moving, in one sentence. Never blank: silence at this place would look like health."""
        if self._told:
            return self._told[0]
        if self.plan.state == PlanState.DRAFT:
            return "A draft: nothing in the cluster has been touched."
        if self.plan.is_final:
            return self.plan.because or f"It is {self.plan.state.replace('-', ' ')}."
        return self.unlooked or self.plan.waiting_for or "A worker has not looked at it yet."

    @property
    def ahead(self) -> list[StageOnPage]:
        """The stages that are not over, of a plan that is under way."""
        return [one for one in self.stages if one.stage.state not in OVER] if self.plan.is_under_way else []

    @property
    def besides(self) -> list[str]:
        """What else holds it back, once a person has acted on `why`; and what it said when a worker looked last."""
        if not self.unlooked:
            return self._told[1:]
        if self._told:
            return [*self._told[1:], self.unlooked]
        return [f"It said then: {self.plan.waiting_for}"] if self.plan.waiting_for else []

    @property
    def _told(self) -> list[str]:
        """What it was told, the one that a person must act on first at the head: a pause never ends by itself."""
        paused = [self.pause.sentence] if self.pause else []
        if self.plan.state == PlanState.HALTED:
            return [self.halt.sentence if self.halt else self.plan.because or "It was halted.", *paused]
        if self.restraint is None:
            return paused
        return [self.restraint.sentence, *paused] if self.restraint.is_stop else [*paused, self.restraint.sentence]


def plan_on_page(plan: Plan, *, now: datetime) -> PlanOnPage:
    """All that a plan's page shows, in a fixed number of queries (12 at most)."""
    newest_first = Prefetch("answers", GateAnswer.objects.filter(is_current=True))
    targets = Prefetch("targets", Target.objects.with_holds().select_related("wave"))
    rows = plan.stages.select_related("pool").prefetch_related(targets, newest_first, "approvals", "glass")
    opt_outs = opt_outs_of(plan)
    stages = [_on_page(stage, opt_outs) for stage in rows]
    holds = list(plan.holds.values_list("is_wanted", "placed_at", "is_foreign"))
    newest = plan.events.values_list("pk", flat=True).first()
    told = list(plan.commands.in_force() | plan.commands.filter(verb=Verb.HALT, at=plan.state_since))
    return PlanOnPage(
        plan=plan,
        stages=stages,
        current=_current(plan, stages),
        pause=next((one for one in told if one.verb == Verb.PAUSE), None),
        halt=next((one for one in told if one.verb == Verb.HALT and plan.state == PlanState.HALTED), None),
        passed_over=_passed_over(stages, now=now) if plan.is_under_way else [],
        restraint=_restraint(plan, _current(plan, stages), now=now),
        held=sum(placed is not None for _, placed, _ in holds),
        to_hold=sum(wanted is (placed is None) for wanted, placed, _ in holds),
        foreign_holds=sum(foreign for _, _, foreign in holds),
        placed=[at for wanted, at, _ in holds if wanted],
        seq=newest or 0,
        unlooked=_unlooked(plan, now=now),
    )


def _unlooked(plan: Plan, *, now: datetime) -> str:
    """A round that takes long moves its lease; who waits for a cluster to answer has said when it is asked again."""
    if not plan.is_under_way or plan.next_look_at is None or now - max(plan.next_look_at, plan.lease_until) <= BLIND:
        return ""
    since = f"since {moment(plan.looked_at, now=now)}" if plan.looked_at else "yet"
    return (
        f"No worker has looked at it {since}: nothing of it is let go, held again or judged. Look whether one of the "
        "queue “rollouts” runs."
    )


def _passed_over(stages: Iterable[StageOnPage], *, now: datetime) -> list[str]:
    """In stages that are not over, and of each gate what was said last."""
    found: list[str] = []
    for one in stages:
        if one.stage.state not in OVER:
            newest = {glass.gate: glass for glass in reversed(one.glass) if glass.until > now}
            found += [_says_glass(one.stage, newest[gate]) for gate in sorted(newest)]
    return found


def _says_glass(stage: Stage, glass: BreakGlass) -> str:
    title = GATES[glass.gate].title if glass.gate in GATES else glass.gate
    until = f"{glass.until:%d %b %H:%M} UTC"
    return f"{title} of {stage.name} does not count until {until}: {glass.by} passed it over. {glass.because}"


def opt_outs_of(plan: Plan) -> dict[str, list[OptOut]]:
    """Node uid → what keeps neighbours off it, or was not as it should be when it was put back. One query."""
    found: dict[str, list[OptOut]] = defaultdict(list)
    for row in OptOut.objects.filter(plan=plan).shown():
        found[row.node_uid].append(row)
    return found


def _restraint(plan: Plan, current: StageOnPage | None, *, now: datetime) -> Restraint | None:
    """What holds all of it back: a freeze of all, or what binds every node that the stage has still to let go."""
    if plan.state not in LETS_GO:
        return None
    found = restraints_of(plan, now=now)
    if found.first or current is None or current.stage.state != StageState.PROMOTING:
        return found.first
    held = {target.node_uid for target in current.targets if target.state == TargetState.HELD}
    if not held or any(target.state in IN_FLIGHT for target in current.targets):
        return None
    bound = found.of_nodes(held)
    return most_urgent(bound.values()) if len(bound) == len(held) else None


def _on_page(stage: Stage, opt_outs: Mapping[str, list[OptOut]]) -> StageOnPage:
    targets = list(stage.targets.all())
    for target in targets:
        target.opted_out = opt_outs.get(target.node_uid, [])
    answers = {answer.gate: answer for answer in stage.answers.all()}
    return StageOnPage(stage, targets, answers, list(stage.approvals.all()), list(stage.glass.all()),
                       Counter(t.shown_state for t in targets))  # fmt: skip


def _current(plan: Plan, stages: list[StageOnPage]) -> StageOnPage | None:
    if not plan.is_under_way:
        return None
    ends_back = plan.state in {PlanState.ROLLING_BACK, PlanState.ABORTING}
    ahead = [one for one in stages if one.stage.is_rollback == ends_back]
    return next((one for one in ahead if one.stage.state not in OVER), None)


@dataclass(frozen=True)
class Button:
    """One verb of a plan, for one person and for now."""

    verb: str
    label: str
    resource: str
    consequence: str
    is_dangerous: bool
    is_allowed: bool
    why_not: str
    is_main: bool  # what one does next, where nothing says otherwise
    is_shown: bool  # a draft has other verbs than a plan that has started
    says: str = ""  # what it would be of, where the consequence cannot say it
    seen: str = ""  # the hash of all that this is


def buttons(plan: Plan, user) -> list[Button]:
    """Every verb, with the reason where it is not for this person or not for now. One query a permission."""
    needed = {verb.permission for verb in VERBS.values()}
    where = f"cluster {plan.cluster.name}"
    refused = {each: why_not(user, each, cluster_id=plan.cluster_id, where=where) for each in needed}
    is_paused = plan.commands.in_force().exists()
    main = _main(plan, is_paused=is_paused)
    found = [
        _button(plan, name, refused[verb.permission], is_paused=is_paused, is_main=name == main)
        for name, verb in VERBS.items()
    ]
    return [_completing(plan, button) if button.verb == "complete" else button for button in found]


def _completing(plan: Plan, button: Button) -> Button:
    """Shown where there is something to leave out: else every plan would have it, locked."""
    if not button.is_allowed:
        return replace(button, is_shown=False)
    found = completion_of(plan)
    is_allowed = not found.why_not
    return replace(
        button, is_allowed=is_allowed, why_not=found.why_not, is_shown=is_allowed, says=found.says, seen=found.hash
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
    """From a halt the way leads back: going on is for who knows why it halted. Blank: no verb before the others."""
    if plan.state == PlanState.HALTED:
        return "rollback"
    return "start" if plan.state == PlanState.DRAFT else "resume" if is_paused else ""
