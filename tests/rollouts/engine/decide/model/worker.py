"""Rows in memory, and a worker that carries decisions out as `rollouts.engine.act` does: guards, intents, live checks.

It may die at any point between two writes; what it wrote stays.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from operations.failure_domains import UNBOUND, Allowance, Budgets, Domain, DomainKind
from rollouts.components.driver_crd import DriverCrd
from rollouts.engine.decide import acts as a
from rollouts.engine.decide import decide
from rollouts.engine.live_state import Live
from rollouts.engine.snapshot import NodeSnapshot, Snapshot, StageSnapshot
from rollouts.engine.templates import TemplateChange, change, learned
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import TargetEvidence
from rollouts.gates.driver_version import DriverVersion
from rollouts.gates.failure_budget import FailureBudget
from rollouts.lifecycle import (
    IN_FLIGHT,
    PLAN_MOVES,
    STAGE_MOVES,
    TARGET_MOVES,
    PlanState,
    StageState,
    TargetState,
)
from tests.make import NOON
from tests.rollouts.engine.decide.model.world import IDLE, NEW, OLD, Node, World
from tests.rollouts.make import a_node_snapshot, a_policy, a_snapshot, a_stage, a_target, an_approval, evidence

DAEMONSET = "uid-of-the-driver-daemonset"
MAY_RELEASE = {False: PlanState.PROMOTING, True: PlanState.ROLLING_BACK}


class DiedError(Exception):
    """The worker was killed here."""


@dataclass
class TargetRow:
    state: TargetState = TargetState.HELD
    since: datetime = NOON
    is_retried: bool = False


@dataclass
class StageRow:
    index: int
    is_rollback: bool = False
    state: StageState = StageState.WAITING
    targets: dict[str, TargetRow] = field(default_factory=dict)
    has_waves: bool = False
    failures: Counter[str] = field(default_factory=Counter)  # since a person last said: go on
    is_approved: bool = False


@dataclass
class HoldRow:
    is_wanted: bool = True
    was_placed: bool = False


@dataclass
class Worker:
    world: World
    stages: list[StageRow]
    max_unavailable: int
    may_die: Callable[[], bool]
    interrupt: Callable[[], None] = lambda: None  # what a person does between the decision and its acts
    state: PlanState = PlanState.HOLDING
    is_write_intended: bool = False
    is_armed: bool = False
    is_paused: bool = False
    is_frozen: bool = False  # the fleet is, or its cluster
    frozen: set[str] = field(default_factory=set)  # nodes whose pool is
    now: datetime = NOON
    holds: dict[str, HoldRow] = field(default_factory=dict)
    waiting_for: str = ""
    is_late: Callable[[], bool] = lambda: False  # whether the rows are still those of the round before
    seen: dict[str, Node] = field(default_factory=dict)
    seen_at: datetime = NOON
    templates: dict[str, Any] = field(default_factory=dict)
    template_change: TemplateChange | None = None
    put_back_at: datetime | None = None
    handed_to: str = ""
    racks: dict[str, str] = field(default_factory=dict)  # node's name → its rack; empty: racks have no budget
    most_per_rack: int = 1
    disruptions: set[str] = field(default_factory=set)  # nodes that this plan has in the ledger
    out_by_others: dict[str, str] = field(default_factory=dict)  # node of another plan → its rack

    # What `rollouts.engine.templates` asks of a plan

    from_version, to_version = OLD, NEW
    object_kind, object_name = "NVIDIADriver", "h100"
    its_component = DriverCrd("h100")

    @property
    def sealed(self) -> dict[str, Any]:
        return {"revisions": {DAEMONSET: f"hash-{OLD}"}}

    @property
    def write_intended_at(self) -> datetime | None:
        return self.now if self.is_write_intended else None

    @property
    def rollback_stage(self) -> StageRow:
        return self.stages[-1]

    # Looking

    def snapshot(self, *, is_live: bool = False) -> Snapshot:
        """The object and its templates are asked live; the nodes are rows, and rows may be late (Z25)."""
        if is_live or not self.seen or not self.is_late():
            self.seen = {name: replace(node) for name, node in self.world.nodes.items()}
            self.seen_at = self.now
        nodes = tuple(self._node(name) for name, node in self.seen.items() if node.is_selected)
        return a_snapshot(
            *(self._stage(stage) for stage in self.stages),
            nodes=nodes,
            state=self.state,
            object_version=self.world.version,
            write_intended=self.is_write_intended,
            paused_reason="Paused." if self.is_paused else "",
            frozen_reason="Frozen." if self.holds_all_back else "",
            restrained={f"uid-of-{name}": "Its pool is frozen." for name in self.seen if self.holds_back(name)},
            recorded_hashes=self.templates["old"],
            sealed_hashes=self.sealed["revisions"],
            template_change=self.template_change.says if self.template_change else "",
            newest_hashes={DAEMONSET: f"hash-{self.world.template}"},
            unsettled=() if self.world.is_settled else ("nvidia-driver",),
            policy=a_policy(max_parallel=self.world.max_parallel),
            unmanaged_nodes=tuple(self._node(name) for name, node in self.seen.items() if self._is_stray(node)),
            gone={f"uid-of-{name}": why for name in self._known() if (why := self._gone(name))},
            is_live=is_live,
            handed_to=self.handed_to,
            handed_by="ada",
            budgets=self.budgets(self.seen),
            seen_at=self.seen_at,
            disruptions=frozenset(f"uid-of-{name}" for name in self.disruptions),
        )

    def budgets(self, nodes: dict[str, Node]) -> Budgets:
        """Of racks: as `operations.ledger.disruptions` reads them, from these rows."""
        is_releasing = self.state in (PlanState.PROMOTING, PlanState.ROLLING_BACK) or self.handed_to
        if not self.racks or not is_releasing:
            return UNBOUND
        out = dict.fromkeys(self.disruptions, "plan-1") | dict.fromkeys(self.out_by_others, "plan-2")
        if self.state is PlanState.PROMOTING:
            broken = [name for name, node in nodes.items() if node.is_unschedulable or node.state not in IDLE]
            out |= dict.fromkeys(broken, "broken")
        where = self.racks | self.out_by_others
        of = {
            Domain(DomainKind.RACK, rack): Allowance(
                f"rack {rack}",
                self.most_per_rack,
                {name: f"{name} ({why})" for name, why in out.items() if where.get(name) == rack},
            )
            for rack in set(where.values())
        }
        return Budgets(of, {name: (Domain(DomainKind.RACK, rack),) for name, rack in self.racks.items()})

    @property
    def holds_all_back(self) -> bool:
        """No freeze here says that it binds those who go back (Z32)."""
        return self.is_frozen and self._is_bound

    def holds_back(self, name: str) -> bool:
        is_bound = self._is_bound and self.state not in (PlanState.HOLDING, PlanState.HALTED)
        return self.holds_all_back or (is_bound and name in self.frozen)

    @property
    def _is_bound(self) -> bool:
        """Nor anywhere else than back (Z38)."""
        forward = (PlanState.HOLDING, PlanState.PROMOTING, PlanState.HALTED)
        began_from = self.sealed["revisions"]
        return self.state in forward or bool(self.handed_to) or self.templates.get("old", began_from) != began_from

    def _known(self) -> set[str]:
        return {name for stage in self.stages for name in stage.targets} | set(self.holds)

    def _gone(self, name: str) -> str:
        if name not in self.seen:
            return "was deleted"
        return "" if self.seen[name].is_selected else "is no longer selected by NVIDIADriver h100"

    def _is_stray(self, node: Node) -> bool:
        hold = self.holds.get(node.name)
        return not node.is_selected and (node.has_label or bool(hold and (hold.is_wanted or hold.was_placed)))

    def _node(self, name: str) -> NodeSnapshot:
        node, hold = self.seen[name], self.holds.get(name)
        return a_node_snapshot(
            name,
            has_label=node.has_label,
            label_is_ours=node.has_label,
            upgrade_state=node.state,
            is_unschedulable=node.is_unschedulable,
            driver_version=node.loaded,
            pod_hash=f"hash-{node.template}",
            hold_wanted=hold.is_wanted if hold else None,
            label_was_placed=bool(hold and hold.was_placed),
        )

    def _stage(self, stage: StageRow) -> StageSnapshot:
        targets = tuple(self._target(name, row) for name, row in stage.targets.items())
        approvals = (an_approval(at=self.now),) if stage.is_approved else ()
        shown = replace(
            evidence(*targets, approvals=approvals), to_version=OLD if stage.is_rollback else NEW, seen_at=self.now
        )
        gates = (DriverVersion(timedelta(hours=9)), FailureBudget())
        return a_stage(
            *targets,
            index=stage.index,
            is_rollback=stage.is_rollback,
            state=stage.state,
            state_since=self.now,
            evidence=shown,
            max_unavailable=self.max_unavailable,
            failures=stage.failures,
            gates=gates if stage.is_rollback else (ApprovalGate(), *gates),
        )

    def _target(self, name: str, row: TargetRow) -> TargetEvidence:
        node = self.seen.get(name)
        if node is None or not node.is_selected:
            return a_target(name, state=row.state, state_since=row.since, is_seen=False, is_retried=row.is_retried)
        return a_target(
            name,
            state=row.state,
            state_since=row.since,
            driver_version=node.loaded,
            upgrade_state=node.state,
            is_retried=row.is_retried,
        )

    # Deciding and acting

    def compare_templates(self) -> None:
        live = Live(
            object_version=self.world.version,
            hashes={DAEMONSET: f"hash-{self.world.template}"},
            unsettled=() if self.world.is_settled else ("nvidia-driver",),
            stopped_reason="",
            spec={"version": self.world.version, "env": self.world.env},
        )
        self.templates = learned(self, live)  # type: ignore[arg-type]
        self.template_change = change(self, live)  # type: ignore[arg-type]

    def accept_template_change(self) -> None:
        if found := self.template_change:
            old, new = self.templates["old"] | dict(found.old), self.templates["new"] | dict(found.new)
            self.templates, self.template_change = {"spec": found.spec, "old": old, "new": new}, None

    def round(self) -> None:
        self.compare_templates()
        try:
            decision = decide(self.snapshot(), now=self.now)
            if decision.is_for_good:
                self._record_holds()
                decision = decide(self.snapshot(is_live=True), now=self.now)
            self._check_that_waves_may_go(decision)
            self.interrupt()
            self.waiting_for = decision.waiting_for or self.waiting_for
            if not self._move(decision.moves):
                return
            if decision.void_reason:
                for stage in self.stages[:-1]:
                    stage.is_approved &= stage.state is StageState.PASSED
            self.disruptions -= {uid.removeprefix("uid-of-") for uid in decision.given_back}
            self.is_paused = self.is_paused or bool(decision.pause_reason)
            for act in decision.acts:
                self._die_here()
                getattr(self, f"_{type(act).__name__}")(act)
        except DiedError:
            self.world.log.append("the worker died")

    def _check_that_waves_may_go(self, decision: a.Decision) -> None:
        """As the rows are that it was decided on: what is refused then is refused in every round to come."""
        for act in decision.acts:
            if isinstance(act, a.ReleaseWave):
                assert self.stages[act.stage_index].state is StageState.PROMOTING, act

    def _record_holds(self) -> None:
        for name, hold in self.holds.items():
            hold.was_placed &= name in self.world.nodes and self.world.nodes[name].has_label
            hold.is_wanted &= name in self.world.nodes

    def _die_here(self) -> None:
        if self.may_die():
            raise DiedError

    def _move(self, moves: tuple[a.Move, ...]) -> bool:
        """All or nothing. False: a person was faster."""
        for move in moves:
            was, table = self._row(move)
            if move.to not in table[was]:
                return False
        for move in moves:
            if isinstance(move, a.MoveTarget):
                row = self.stages[move.stage_index].targets[move.name]
                row.state, row.since = move.to, self.now
                self.stages[move.stage_index].failures[move.uid] += move.to is TargetState.FAILED
            elif isinstance(move, a.MoveStage):
                self.stages[move.stage_index].state = move.to
            else:
                self.state = move.to
                self.world.log.append(f"{move.to}: {move.reason}")
        return True

    def _row(self, move: a.Move):
        if isinstance(move, a.MoveTarget):
            return self.stages[move.stage_index].targets[move.name].state, TARGET_MOVES
        if isinstance(move, a.MoveStage):
            return self.stages[move.stage_index].state, STAGE_MOVES
        return self.state, PLAN_MOVES

    def _want(self, names, *, is_wanted: bool) -> None:
        for name in names:
            self.holds.setdefault(name, HoldRow()).is_wanted = is_wanted

    def _label(self, name: str) -> None:
        self._die_here()
        if name not in self.world.nodes:
            return
        self.world.nodes[name].has_label = True
        self.world.nodes[name].released_by_us &= self.world.nodes[name].is_at_work
        self._die_here()
        self.holds[name].was_placed = True

    def _unlabel(self, name: str) -> None:
        self._die_here()
        if name not in self.world.nodes:
            return
        self.world.nodes[name].has_label = False
        self._die_here()
        self.holds[name].was_placed = False

    def _PlaceHolds(self, act: a.PlaceHolds) -> None:  # noqa: N802
        self._want(act.nodes.values(), is_wanted=True)
        for name in act.nodes.values():
            self._label(name)

    def _LiftHolds(self, act: a.LiftHolds) -> None:  # noqa: N802
        there = set(act.nodes.values()) & set(self.world.nodes)
        queued = {name for name in there if self.world.nodes[name].state == "upgrade-required"}
        nodes = there - queued
        for name in nodes:
            node = self.world.nodes[name]
            has_begun = node.is_at_work or node.state == "upgrade-failed"
            assert node.template == self.world.wanted or has_begun, f"{name} is let go outside of a wave"
            assert not self.is_write_intended or node.state == "upgrade-done", f"{name} is {node.state}"
        self._want(act.nodes.values(), is_wanted=False)
        for name in sorted(nodes):
            self._unlabel(name)

    def _HandOver(self, act: a.HandOver) -> None:  # noqa: N802
        nodes = [name for name in act.nodes.values() if name in self.world.nodes]
        ready = [name for name in nodes if self.world.nodes[name].state in IDLE]
        ready = [name for name in ready if self.world.nodes[name].has_label]
        if self.state is not PlanState.ABORTING or self.handed_to != self.world.version:
            return
        if any(self.holds_back(name) for name in ready) or self.budgets(self.seen).why_not(ready):
            return
        self.disruptions |= set(ready)
        self._want(ready, is_wanted=False)
        for name in sorted(ready):
            if self.holds_back(name):
                return
            self._die_here()
            self.world.nodes[name].released_by_us = True
            self._unlabel(name)

    def _ReleaseUnmanagedNodes(self, act: a.ReleaseUnmanagedNodes) -> None:  # noqa: N802
        self._want(act.nodes.values(), is_wanted=False)
        for name in sorted(act.nodes.values()):
            assert not self.world.nodes[name].is_selected, f"{name} is no stray"
            self._relabel([name], "upgrade-required", "")
            self._unlabel(name)

    def _WriteVersion(self, act: a.WriteVersion) -> None:  # noqa: N802
        if act.new == NEW:
            unheld = [name for name, node in self.world.nodes.items() if node.is_selected and not node.has_label]
            if unheld:
                for name in set(unheld) & set(self.holds):
                    self.holds[name].was_placed = False
                return
            if self.state is not PlanState.HOLDING or self.is_paused or self.is_frozen:
                return
            held = [node.has_label for node in self.world.nodes.values() if node.is_selected]
            assert all(held), "written before every node was held"
            self.is_write_intended = True
        self._die_here()
        if self.world.version == act.old:
            self.world.version = act.new
        self._die_here()
        if act.new == NEW:
            self.is_armed = True
        else:
            self.put_back_at = self.put_back_at or self.now

    def _ReleaseWave(self, act: a.ReleaseWave) -> None:  # noqa: N802
        stage = self.stages[act.stage_index]
        ready = [name for name in act.targets if self._may_go_live(stage, name)]
        may = self.state is MAY_RELEASE[stage.is_rollback] and stage.state is StageState.PROMOTING
        in_flight = sum(row.state in IN_FLIGHT for row in stage.targets.values())
        if self.is_paused or not may or in_flight + len(ready) > self.max_unavailable:
            return
        if any(self.holds_back(name) for name in ready) or self.budgets(self.seen).why_not(ready):
            return
        self._die_here()
        self.disruptions |= set(ready)
        for name in ready:
            stage.targets[name] = TargetRow(TargetState.RELEASING, self.now, stage.targets[name].is_retried)
        stage.has_waves = stage.has_waves or bool(ready)
        self._want(ready, is_wanted=False)
        self._release(stage, ready)

    def _may_go_live(self, stage: StageRow, name: str) -> bool:
        node = self.world.nodes.get(name)
        if node is None or not node.is_selected:
            return False
        held = node.has_label and stage.targets[name].state is TargetState.HELD
        may_be_cordoned = stage.is_rollback or stage.targets[name].is_retried
        return held and node.state in IDLE and (may_be_cordoned or not node.is_unschedulable)

    def _FinishRelease(self, act: a.FinishRelease) -> None:  # noqa: N802
        stage = self.stages[act.stage_index]
        self._release(stage, [n for n in act.targets if stage.targets[n].state is TargetState.RELEASING])

    def _release(self, stage: StageRow, names: list[str]) -> None:
        for name in names:
            if self.is_paused or self.state is not MAY_RELEASE[stage.is_rollback] or self.holds_back(name):
                return
            self._die_here()
            assert stage.targets[name].state is TargetState.RELEASING, f"{name} is let go without an intent"
            if name not in self.world.nodes:
                continue
            self.world.nodes[name].released_by_us = True
            self._unlabel(name)

    def _Recall(self, act: a.Recall) -> None:  # noqa: N802
        for name in act.targets:
            row = self.stages[act.stage_index].targets[name]
            if row.state not in (TargetState.RELEASING, TargetState.RELEASED):
                continue
            row.state, row.since = TargetState.HELD, self.now
            self._want([name], is_wanted=True)
            self._label(name)

    def _ClearUpgradeState(self, act: a.ClearUpgradeState) -> None:  # noqa: N802
        failed = [name for uid, name in act.nodes.items() if uid in act.failed]
        self._relabel(failed, "upgrade-required", "upgrade-failed")
        self._relabel(act.nodes.values(), "upgrade-required", "")

    def _RequeueFailed(self, act: a.RequeueFailed) -> None:  # noqa: N802
        self._relabel(act.nodes.values(), "upgrade-failed", "upgrade-required")

    def _relabel(self, names, was: str, to: str) -> None:
        for name in names:
            self._die_here()
            if name in self.world.nodes and self.world.nodes[name].state == was:
                self.world.nodes[name].state = to

    def _OpenRollbackStage(self, act: a.OpenRollbackStage) -> None:  # noqa: N802
        for name in act.nodes.values():
            self.rollback_stage.targets[name] = TargetRow(since=self.now)
        self._want(act.nodes.values(), is_wanted=True)
