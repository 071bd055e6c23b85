"""Runs a plan in virtual time: rounds of the product's own `decide` on a virtual fleet, with its gates. Pure.

The rehearsed person approves every stage at once and decides nothing else: a halt, or a pause that asks a person, ends
the rehearsal.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

from gpu.compatibility.verdicts import Support
from gpu.upgrade_controller import UPGRADE_DONE, UPGRADE_REQUIRED
from health.suspects import NodeOutcome, Suspects, suspects_of
from operations.failure_domains import Budgets, Domain
from rollouts.components.driver_crd import DriverCrd
from rollouts.components.throttle import UpgradePolicy
from rollouts.engine.decide import acts as a
from rollouts.engine.decide import decide
from rollouts.engine.decide.gate_evaluation import LastAnswer, waiting_since
from rollouts.engine.snapshot import (
    CordonedByUs,
    CordonsSnapshot,
    NodeSnapshot,
    OrdersSnapshot,
    Snapshot,
    StageSnapshot,
    TemplatesSnapshot,
    VersionSnapshot,
)
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import (
    Answer,
    ApprovalEvidence,
    Combination,
    Evidence,
    Gate,
    GateResult,
    HealthEvidence,
    NextWave,
    ServiceEvidence,
    ServiceLevel,
    TargetEvidence,
    When,
    WindowEvidence,
)
from rollouts.gates.exposure import MINUTE, Exposure
from rollouts.gates.headroom import Headroom
from rollouts.gates.slo import Slo
from rollouts.gates.soak import Soak
from rollouts.gates.test_job import TestJobGate, cordons_by
from rollouts.gates.window import Window
from rollouts.lifecycle import IN_FLIGHT, PlanState, StageState, TargetState
from rollouts.node_order.node_selection import FACTORS
from rollouts.rehearsal import evidence as see
from rollouts.rehearsal.evidence import VirtualTarget
from rollouts.rehearsal.fleet import RESTART, VALIDATION, VirtualFleet, VirtualNode

V = TypeVar("V")
COMPONENT = DriverCrd("rehearsed")
DAEMONSET = "rehearsed-daemonset"
ROUND_EVERY = timedelta(seconds=30)  # at most, where nothing happens
QUIET_ROUND_EVERY = timedelta(minutes=2)  # at least, where nothing happens: gates have clocks of their own
LONGEST = timedelta(days=60)
STILL = timedelta(days=1)  # without a decision, beside the times of its gates: nothing more will come


class Unending(Exception):
    """The rehearsal did not come to an end in virtual time."""


@dataclass(frozen=True)
class RehearsedStage:
    name: str
    nodes: Sequence[str]  # in the order of release
    gates: tuple[Gate, ...]
    max_unavailable: int = 1
    wait_timeout: timedelta = timedelta(hours=1)
    combinations: tuple[Combination, ...] | None = None  # of the new driver with the nodes; None: all are supported
    compared: int = 0  # nodes that they are about

    @property
    def test(self) -> TestJobGate | None:
        return next((gate for gate in self.gates if isinstance(gate, TestJobGate)), None)

    @property
    def work_needed(self) -> timedelta:
        return max((gate.gpu_minutes * MINUTE for gate in self.gates if isinstance(gate, Exposure)), default=MINUTE)


@dataclass
class _Stage:
    index: int
    plan: RehearsedStage
    targets: dict[str, VirtualTarget]
    since: datetime
    state: StageState = StageState.WAITING
    answers: dict[str, LastAnswer] = field(default_factory=dict)  # by gate
    approved_at: datetime | None = None
    failures: dict[str, int] = field(default_factory=dict)
    evidence: dict[str, TargetEvidence] = field(default_factory=dict)  # by name of a target, in the order of release
    held: dict[str, None] = field(default_factory=dict)  # names, in the order of release
    workloads: dict[str, int] = field(default_factory=dict)  # owner → Ready pods at the release of its node
    pods_ready: dict[str, int] = field(default_factory=dict)  # owner → Ready pods on its changed node
    pods_waiting: dict[str, int] = field(default_factory=dict)  # owner → evicted pods: their node is still out
    opened_at: datetime | None = None  # when pods last might come to a changed node again
    # By gate: windows that do not overlap.
    windows: dict[str, list[ServiceLevel]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True)
class RehearsalResult:
    """The outcome of a rehearsed plan."""

    is_complete: bool  # every stage passed
    stopped_by: str  # the sentence of the halt or of the pause; empty if it is complete
    gate: str  # the key of the gate that stopped it; empty if none did
    stage: int | None  # the index of the stage that stopped
    passed: tuple[int, ...]  # indexes of the stages that passed
    took: timedelta
    changed: tuple[str, ...]  # nodes that had been released
    harmed: tuple[str, ...]  # nodes with a sign of the fault
    first_sign: timedelta | None  # from the start
    released_after_sign: int  # nodes that were released after the first sign
    unseen: tuple[str, ...]  # nodes that have the fault and were never released
    suspects: Suspects


@dataclass
class Run:
    fleet: VirtualFleet
    stages: Sequence[RehearsedStage]
    begins: datetime
    now: datetime = field(init=False)
    stage_of: dict[str, _Stage] = field(init=False)  # by name of a target
    targets: dict[str, VirtualTarget] = field(init=False)  # by uid
    faulty: list[VirtualNode] = field(init=False)
    moved_at: datetime = field(init=False)  # of the last decision, or of the last opening of a window
    rows: list[_Stage] = field(init=False)
    state: PlanState = PlanState.PROMOTING
    reason: str = ""  # the last sentence of a decision
    pause_reason: str = ""  # why a person is asked; empty: nobody is
    first_sign: datetime | None = None  # of the fault, on a released node
    first_change: datetime | None = None
    released: dict[str, datetime] = field(default_factory=dict)  # by name: when
    out: dict[str, str] = field(default_factory=dict)  # name of an unavailable node → what takes it, by the ledger
    cordons: dict[str, CordonedByUs] = field(default_factory=dict)  # by uid
    node_rows: dict[str, NodeSnapshot] = field(default_factory=dict)  # by name
    touched: set[str] = field(default_factory=set)  # names of nodes that changed since the last snapshot
    due: dict[str, datetime] = field(default_factory=dict)  # name of a target → when its evidence changes by itself
    seen_trouble: str | None = None  # the telemetry's trouble at the last snapshot; None: there was no snapshot
    templates: TemplatesSnapshot = field(init=False)

    def __post_init__(self) -> None:
        self.now = self.moved_at = self.begins
        self.rows = [
            _Stage(index, stage, {name: self._held(name, stage) for name in stage.nodes}, self.begins)
            for index, stage in enumerate(self.stages)
        ]
        self.fleet.version = self.fleet.to_version
        old = {DAEMONSET: _hash(self.fleet.from_version)}
        self.templates = TemplatesSnapshot(
            recorded=old,
            newest={DAEMONSET: _hash(self.fleet.to_version)},
            unsettled=(),
            sealed=old,
            daemonsets={node.uid: DAEMONSET for node in self.fleet.nodes.values()},
        )
        for node in self.fleet.nodes.values():
            node.is_held = True
        self.fleet.reconcile(self.now)
        self.stage_of = {name: row for row in self.rows for name in row.targets}
        self.targets = {target.node.uid: target for row in self.rows for target in row.targets.values()}
        self.faulty = [node for node in self.fleet.nodes.values() if node.fault]

    def _held(self, name: str, stage: RehearsedStage) -> VirtualTarget:
        node = self.fleet.nodes[name]
        return VirtualTarget(node, TargetState.HELD, self.begins, test=stage.test, work_needed=stage.work_needed)

    def to_the_end(self, tell: Callable[[timedelta, int], None] = lambda *_: None) -> RehearsalResult:
        """Rehearses until the plan is complete, halted, or asks a person.

        `tell` gets the virtual time of each round, and the number of released nodes.

        :raises Unending: when nothing of that happens in virtual time
        """
        still = STILL + self._longest_wait()
        while self.state is PlanState.PROMOTING and not self.pause_reason:
            if self.now - self.begins > LONGEST or self.now - self.moved_at > still:
                raise Unending(self.reason)
            tell(self.now - self.begins, len(self.released))
            decision = decide(self.snapshot(), now=self.now)
            self.reason = decision.waiting_for or self.reason
            self._record(decision)
            for act in decision.acts:
                self._carry_out(act)
            idle = not decision.acts and not decision.moves
            self.moved_at = self.moved_at if idle else self.now
            self.now += max(self._until_something_happens() if idle else timedelta(seconds=1), decision.look_again_in)
            self.touched.update(node.name for node in self.fleet.reconcile(self.now))
            if self.first_sign is None and any(
                node.name in self.released and self._shows_fault(node) for node in self.faulty
            ):
                self.first_sign = self.now
        return self.outcome()

    def _until_something_happens(self) -> timedelta:
        """Returns the time to the next round after one that decided nothing: a node shows something else then.

        The operator's looks, the windows of service levels, and rounds after a sign of the fault keep their pace.
        """
        if self.first_sign or self.fleet.has_free_slot():
            return ROUND_EVERY
        if opens_at := self._opens_at():
            self.moved_at = opens_at
            return max(opens_at - self.now, ROUND_EVERY)
        if any(isinstance(gate, Slo) for row in self.rows for gate in row.plan.gates):
            return ROUND_EVERY
        coming = min((until for until in self.due.values() if until > self.now), default=None)
        for name in [name for name, until in self.due.items() if until <= self.now]:
            target = self.stage_of[name].targets[name]
            coming = min(filter(None, (coming, _next_change(target, self.now))), default=None)
        quiet = QUIET_ROUND_EVERY if coming is None else min(coming - self.now, QUIET_ROUND_EVERY)
        return max(quiet, ROUND_EVERY)

    def _longest_wait(self) -> timedelta:
        """Returns the longest time that a gate lets pass by itself."""
        soaks = (gate.duration for row in self.rows for gate in row.plan.gates if isinstance(gate, Soak))
        limits = (gate.wait_timeout or row.plan.wait_timeout for row in self.rows for gate in row.plan.gates)
        return max([*soaks, *limits])

    def _opens_at(self) -> datetime | None:
        """Returns when a maintenance window opens, while the stage waits for nothing else; None otherwise.

        :raises Unending: when no window opens any more
        """
        hours, row = self.fleet.hours, self._stopped_stage()
        if hours is None or any(one.state is not TargetState.HELD for one in row.targets.values()):
            return None
        shown = hours.evidence(row.plan.nodes, lasting=_longest_window_time(row), now=self.now)
        ahead = [at for one in shown for at, _ in one.openings]
        if len(hours.closed(row.plan.nodes, self.now)) < len(row.plan.nodes):
            return None
        if not ahead:
            raise Unending(self.reason)
        return min(ahead)

    def _see(self) -> None:
        """Reads again what a decision, the operator or the time has changed since the last snapshot."""
        if self.seen_trouble != self.fleet.trouble:
            self.touched.update(self.fleet.nodes)
            self.seen_trouble = self.fleet.trouble
        self.touched.update(name for name, until in self.due.items() if until <= self.now)
        self.touched.update(node.name for node in self.faulty)
        again, self.touched = self.touched, set()
        for name in sorted(again):
            self.node_rows[name] = self._node(self.fleet.nodes[name])
            if (row := self.stage_of.get(name)) is not None:
                self._see_target(row, row.targets[name])

    def _see_target(self, row: _Stage, target: VirtualTarget) -> None:
        node, owner = target.node, see.owner_of(target.node)
        is_settled = node.state in (UPGRADE_DONE, UPGRADE_REQUIRED) and not target.gathers_work(self.now)
        until = _next_change(target, self.now) if is_settled else self.now
        _put(self.due, node.name, until)
        row.evidence[node.name] = shown = see.target_evidence(target, self.fleet, self.now)
        if (target.state is TargetState.HELD) != (node.name in row.held):
            row.held = {one.node.name: None for one in row.targets.values() if one.state is TargetState.HELD}
        is_back = target.state is TargetState.CHANGED and any(pod.is_ready for pod in shown.workloads)
        _put(row.pods_ready, owner, node.pods if is_back else None)
        is_out = target.baseline is not None and node.open_since is None and node.pods > 0
        _put(row.pods_waiting, owner, node.pods if is_out else None)
        row.opened_at = max(filter(None, (row.opened_at, node.open_since)), default=None)

    def _record(self, decision: a.Decision) -> None:
        for uid in decision.given_back:
            self.out.pop(self.targets[uid].node.name, None)
        for uid in decision.served:
            target = self.targets[uid]
            target.has_served = True
            self.touched.add(target.node.name)
        for index, results in decision.results.items():
            self._keep_answers(self.rows[index], results)
        for move in decision.moves:
            self._move(move)
        self.pause_reason = decision.pause_reason

    def _keep_answers(self, row: _Stage, results: Mapping[str, GateResult]) -> None:
        for key, result in results.items():
            before = row.answers.get(key)
            same = before is not None and before[:2] == (result.answer, result.cause)
            row.answers[key] = LastAnswer(result.answer, result.cause, before.since if same and before else self.now)

    def _move(self, move: a.Move) -> None:
        if isinstance(move, a.MovePlan):
            self.state, self.reason = move.to, move.reason
            return
        row = self.rows[move.stage_index]
        if isinstance(move, a.MoveStage):
            row.state, row.since = move.to, self.now
            row.approved_at = row.approved_at or (self.now if move.to is StageState.OPENING else None)
            if move.to is StageState.HALTED:
                self.reason = move.reason
            return
        target = row.targets[move.name]
        self.touched.add(move.name)
        target.state, target.since = move.to, self.now
        if move.to is TargetState.CHANGED:
            self.first_change = self.first_change or self.now
        if move.to is TargetState.FAILED:
            row.failures[move.uid] = row.failures.get(move.uid, 0) + 1

    def _carry_out(self, act: a.Act) -> None:
        """Carries an act out on the virtual fleet.

        :raises TypeError: for an act that a rehearsed plan never needs
        """
        match act:
            case a.ReleaseWave():
                row = self.rows[act.stage_index]
                for name in act.targets:
                    self._release(row, row.targets[name])
            case a.CreateTestJobs():
                for name in act.nodes.values():
                    self.rows[act.stage_index].targets[name].tested_since = self.now
                    self.touched.add(name)
            case a.Uncordon():
                self._cordon(act.nodes.values(), is_cordoned=False)
            case a.CordonAgain():
                self._cordon(act.nodes.values(), is_cordoned=True)
            case a.PlaceHolds() | a.LiftHolds():
                self._hold(act.nodes.values(), is_held=isinstance(act, a.PlaceHolds))
            case a.Recall():
                self._hold(act.targets, is_held=True)
            case _:
                raise TypeError(f"A rehearsal has no {type(act).__name__}.")

    def _hold(self, names: Iterable[str], *, is_held: bool) -> None:
        for name in names:
            self.fleet.nodes[name].is_held = is_held
            self.touched.add(name)

    def _cordon(self, names: Iterable[str], *, is_cordoned: bool) -> None:
        for name in names:
            node = self.fleet.nodes[name]
            node.is_cordoned = is_cordoned
            self.touched.add(name)
            if is_cordoned:
                self.cordons[node.uid] = CordonedByUs(name)
            else:
                self.cordons.pop(node.uid, None)

    def _release(self, row: _Stage, target: VirtualTarget) -> None:
        node = target.node
        target.baseline = see.baseline_of(node, self.fleet, self.now)
        row.workloads |= target.baseline.workloads
        target.state, target.since = TargetState.RELEASING, self.now
        node.is_held, self.released[node.name] = False, self.now
        self.out[node.name] = f"{node.name} (this plan)"
        self.touched.add(node.name)
        if cordons_by(row.plan.gates):
            self._cordon([node.name], is_cordoned=True)

    def snapshot(self) -> Snapshot:
        self._see()
        health = see.health_evidence(self.fleet, self.first_change, self.now)
        closed = self.fleet.hours.closed(self.fleet.nodes, self.now) if self.fleet.hours else {}
        rollback = StageSnapshot(
            index=len(self.rows),
            name="Rollback",
            is_rollback=True,
            state=StageState.WAITING,
            state_since=self.begins,
            wait_timeout=timedelta(hours=1),
            max_unavailable=1,
            gates=(),
            evidence=Evidence(self.now, self.fleet.from_version, ()),
        )
        return Snapshot(
            component=COMPONENT,
            seen_at=self.now,
            stale_reason="",
            state=self.state,
            version=VersionSnapshot(
                old=self.fleet.from_version,
                new=self.fleet.to_version,
                current=self.fleet.version,
                write_intended=True,
            ),
            templates=self.templates,
            orders=OrdersSnapshot(
                armed_since=self.now,
                may_be_armed_for=LONGEST,
                restrained={self.fleet.nodes[name].uid: reason for name, reason in closed.items()},
            ),
            policy=UpgradePolicy(off=None, max_parallel=self.fleet.at_once, max_unavailable=None),
            nodes=tuple(self.node_rows[name] for name in self.fleet.nodes),
            stages=(*(self._stage(row, closed, health) for row in self.rows), rollback),
            budgets=self._budgets(),
            disruptions=frozenset(self.fleet.nodes[name].uid for name in self.out),
            cordons=CordonsSnapshot(dict(self.cordons), ours=frozenset(self.cordons)),
            is_live=True,
        )

    def _budgets(self) -> Budgets:
        """Returns the budgets of the failure domains, with the nodes that the plan has out now."""
        base, taken = self.fleet.budgets, defaultdict[Domain, dict[str, str]](dict)
        for name, text in self.out.items():
            for domain in base.domains.get(name, ()):
                taken[domain][name] = text
        if not taken:
            return base
        allowances = {
            domain: replace(one, out={**one.out, **taken[domain]}) if domain in taken else one
            for domain, one in base.of.items()
        }
        return Budgets(allowances, base.domains)

    def _node(self, node: VirtualNode) -> NodeSnapshot:
        has_new_pod = node.version == self.fleet.to_version or node.state in (RESTART, VALIDATION)
        return NodeSnapshot(
            uid=node.uid,
            name=node.name,
            has_label=node.is_held,
            label_is_ours=node.is_held,
            phase=COMPONENT.phase(node.state),
            upgrade_state=node.state,
            is_ready=node.is_ready(self.now),
            is_unschedulable=node.is_out or node.is_cordoned,
            driver_version=node.loaded,
            pod_hash=_hash(self.fleet.to_version if has_new_pod else self.fleet.from_version),
            hold_wanted=node.is_held,
            label_was_placed=node.is_held,
        )

    def _stage(self, row: _Stage, closed: Mapping[str, str], health: HealthEvidence) -> StageSnapshot:
        is_open = row.state not in (StageState.WAITING, StageState.ABANDONED)
        targets = tuple(row.evidence[name] for name in row.targets)
        services = {gate.key: self._service(row, gate) for gate in row.plan.gates if isinstance(gate, Slo)}
        held = list(row.held)
        supported = Combination(Support.SUPPORTED, "NVIDIA lists it.", len(targets))
        shown = Evidence(
            seen_at=self.now,
            to_version=self.fleet.to_version,
            targets=targets,
            approvals=self._approvals(row),
            workloads_ready_now=dict(row.pods_ready),
            workloads_ready_before=dict(row.workloads),
            workloads_waiting_for_room=dict(row.pods_waiting),
            next_wave=self._next_wave(row, held, closed),
            bound_reason=_bound_reason(held, closed),
            windows=self._windows(row, held),
            combinations=(supported,) if row.plan.combinations is None else row.plan.combinations,
            compared=len(targets) if row.plan.combinations is None else row.plan.compared,
            others_passing_since=self._passing_since(row),
            health=health if is_open else None,
            services=services,
        )
        return StageSnapshot(
            index=row.index,
            name=row.plan.name,
            is_rollback=False,
            state=row.state,
            state_since=row.since,
            wait_timeout=row.plan.wait_timeout,
            max_unavailable=row.plan.max_unavailable,
            gates=row.plan.gates,
            evidence=shown,
            failures=row.failures,
            waiting_since=waiting_since(row.plan.gates, row.answers, row.state, now=self.now),
        )

    def _approvals(self, row: _Stage) -> tuple[ApprovalEvidence, ...]:
        if row.approved_at is None:
            return ()
        gate = next((gate for gate in row.plan.gates if isinstance(gate, ApprovalGate)), ApprovalGate())
        groups = tuple(gate.groups)
        return tuple(
            ApprovalEvidence(f"approver-{number}", self.now, False, "", is_by_author=False, groups=groups)  # noqa: FBT003
            for number in range(gate.people)
        )

    def _next_wave(self, row: _Stage, held: Sequence[str], closed: Mapping[str, str]) -> NextWave | None:
        """Returns the next wave, where a gate asks; None if no node may be released now."""
        if self.fleet.room is None or not any(isinstance(gate, Headroom) for gate in row.plan.gates):
            return None
        limit = min(self.fleet.at_once or row.plan.max_unavailable, row.plan.max_unavailable)
        going = self._budgets().going([name for name in held if name not in closed], limit)
        if held and not going:
            return None
        busy = {one.node.name for one in row.targets.values() if one.state in IN_FLIGHT}
        return self.fleet.room.next_wave(going, busy)

    def _service(self, row: _Stage, gate: Slo) -> ServiceEvidence:
        changed = [one.node for one in row.targets.values() if one.state is TargetState.CHANGED]
        due = [node for node in changed if gate.has_window(row.targets[node.name].since, self.now)]
        level, windows = see.service_level(due, gate, self.fleet, self.now), row.windows[gate.key]
        if level and gate.is_window(level, windows[-1].asked_at if windows else None):
            windows.append(level)
        return ServiceEvidence(level, tuple(windows))

    def _windows(self, row: _Stage, held: Sequence[str]) -> tuple[WindowEvidence, ...]:
        if self.fleet.hours:
            return self.fleet.hours.evidence(held, lasting=_longest_window_time(row), now=self.now)
        return (WindowEvidence(tuple(held)),) if held else ()

    def _passing_since(self, row: _Stage) -> datetime | None:
        others = [g.key for g in row.plan.gates if g.when is When.THROUGH and g.key != Soak.key and not g.advisory]
        answers = [row.answers.get(key) for key in others]
        if not answers or any(answer is None or answer[0] is not Answer.PASS for answer in answers):
            return None
        opened_at = [row.opened_at] if row.opened_at else []
        return max([*(answer[2] for answer in answers if answer), *opened_at])

    def _released(self) -> Iterator[VirtualNode]:
        return (self.fleet.nodes[name] for name in self.released)

    def _shows_fault(self, node: VirtualNode) -> bool:
        return node.first_sign(self.now) is not None

    def outcome(self) -> RehearsalResult:
        """Returns what came of the plan until now."""
        is_complete = self.state is PlanState.PROMOTED
        stopped = None if is_complete else self._stopped_stage()
        sign = self.first_sign
        harmed = tuple(node.name for node in self._released() if self._shows_fault(node))
        faulty = [node.name for node in self.fleet.nodes.values() if node.fault is not None]
        return RehearsalResult(
            is_complete=is_complete,
            stopped_by="" if is_complete else self.pause_reason or self.reason,
            gate=_failing_gate(stopped) if stopped else "",
            stage=stopped.index if stopped else None,
            passed=tuple(row.index for row in self.rows if row.state is StageState.PASSED),
            took=self.now - self.begins,
            changed=tuple(self.released),
            harmed=harmed,
            first_sign=sign - self.begins if sign else None,
            released_after_sign=sum(at > sign for at in self.released.values()) if sign else 0,
            unseen=tuple(name for name in faulty if name not in self.released),
            suspects=suspects_of(
                NodeOutcome(node.name, node.name in harmed, {FACTORS[key]: value for key, value in node.facts.items()})
                for node in self._released()
                if node.is_changed or node.name in harmed
            ),
        )

    def _stopped_stage(self) -> _Stage:
        over = (StageState.WAITING, StageState.PASSED)
        return next((row for row in self.rows if row.state not in over), self.rows[-1])


def _longest_window_time(row: _Stage) -> timedelta:
    return next((gate.must_last for gate in row.plan.gates if isinstance(gate, Window)), timedelta(0))


def _bound_reason(held: Sequence[str], closed: Mapping[str, str]) -> str:
    """Returns the restraint of most nodes, if all remaining nodes are restrained; empty otherwise."""
    reasons = Counter(closed[name] for name in held if name in closed)
    return reasons.most_common(1)[0][0] if held and reasons.total() == len(held) else ""


def _failing_gate(row: _Stage) -> str:
    """Returns the gate that failed first; where none failed, the one whose wait asks a person first."""
    counted = {gate.key: gate for gate in row.plan.gates if not gate.advisory and gate.key != Soak.key}
    for answer in (Answer.FAIL, Answer.WAIT):
        ends = {
            key: last.since + (counted[key].wait_timeout or row.plan.wait_timeout)
            for key, last in row.answers.items()
            if last.answer is answer and key in counted
        }
        if ends:
            return min(ends, key=lambda key: ends[key])
    return ""


def _next_change(target: VirtualTarget, now: datetime) -> datetime | None:
    """Returns when the node shows something else by itself; None if it does not."""
    tested = [target.tested_since + target.node.pace.test] if target.tested_since else []
    return min((at for at in (*target.node.changes_at(now), *tested) if at > now), default=None)


def _put(known: dict[str, V], key: str, value: V | None) -> None:
    """Sets the value, or removes the key where there is none."""
    if value is None:
        known.pop(key, None)
    else:
        known[key] = value


def _hash(version: str) -> str:
    return f"of-{version}"


def rehearse(
    fleet: VirtualFleet,
    stages: Sequence[RehearsedStage],
    *,
    begins: datetime,
    tell: Callable[[timedelta, int], None] = lambda *_: None,
) -> RehearsalResult:
    """Rehearses a plan on a virtual fleet, which is changed.

    :raises Unending: when the plan neither ends nor stops in virtual time
    """
    return Run(fleet, stages, begins).to_the_end(tell)
