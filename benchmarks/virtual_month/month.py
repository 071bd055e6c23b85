"""A fleet for a month: faults come, the product decides, people do the rest in their own time."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from benchmarks.virtual_month.faults import FAULTS, STORM, Fault, Shown
from benchmarks.virtual_month.virtual_steps import VirtualSteps
from fleet.models import Bookmark, Cluster, Node, Pool
from health.lifecycle import FindingState
from health.models import Finding
from health.rules import RULES
from health.rules.gpus import GPU_RULES
from maintenance import automatic, commands
from maintenance.acts import acts_of
from maintenance.automatic_cases import set_switches
from maintenance.automatic_round import run_automatic_quarantine
from maintenance.case_round import follow_cases
from maintenance.lifecycle import CaseState, RepairAnswer, RepairKind
from maintenance.models import AutomaticQuarantine, NodeCase, Repair, RepairKinds
from maintenance.queries import facts_of
from maintenance.refusals import CaseRefused
from maintenance.step_choice import DRAINED_AFTER, LONGEST_WAIT
from maintenance.step_round import run_automatic_steps
from maintenance.trials import TRIAL
from maintenance.triggers import BreakerState, Mode
from operations import commands as operations
from operations.models import Operation
from operations.operation_round import run_operation
from operations.refusals import OperationRefused

BEGINS = datetime(2026, 12, 1, tzinfo=UTC)
MONTH = timedelta(days=30)
POOLS, STORM_SHARE = 4, 0.3
ACTOR_OF_REBOOTS = "nvsentinel-reboot"
MENDS = 0.95  # of reboots, where a reboot mends the fault
BOOTS = timedelta(minutes=8)
SWEEP_S, SWEEPS_FOR = (
    10,
    (10, 20, 30, 60, 70, 80, 120, 300, 600, 610, 620, 960),
)  # of automatic quarantine, after a sign
# How long people take, in minutes. Nobody measured them: they only say in which order things happen.
PERSON, NOTICE, LOOKS, ROLLBACK, PART = (2, 40), (20, 120), (30, 90), (120, 240), (240, 2880)
ADA = "ada"


@dataclass
class Trouble:
    """One fault of one node."""

    fault: Fault
    node: Node
    begins: datetime
    ended: datetime | None = None


@dataclass
class Month:
    seed: int
    nodes: int
    faults: int
    has_storm: bool = True
    now: datetime = BEGINS
    troubles: list[Trouble] = field(default_factory=list)
    trips: list[datetime] = field(default_factory=list)
    storm: tuple[datetime, datetime] | None = None  # from its begin to the end of the rollback

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.sick: dict[str, Trouble] = {}  # by node UID
        self._queue: list[tuple[datetime, int, Callable[[], None]]] = []
        self._numbers = count()
        self._planned: set[tuple[int, str, datetime]] = set()  # what a person is about to do
        self._sweeps: set[datetime] = set()
        self._confirmed_after = {rule.key: rule.after for rule in (*RULES, *GPU_RULES)}

    def live(self) -> None:
        self._plant()
        self._plan_faults()
        with VirtualSteps(self.dice, self.sick.__contains__).in_place():
            while (at := self._next()) is not None and at <= BEGINS + MONTH:
                self.now = max(self.now, at)
                while self._queue and self._queue[0][0] <= self.now:
                    heapq.heappop(self._queue)[2]()
                self._work()

    # The fleet

    def _plant(self) -> None:
        long_ago = BEGINS - timedelta(days=90)
        self.cluster = Cluster.objects.create(
            name="north", uid="north", kubeconfig="/x", context="x", mode="operate", added_at=long_ago
        )
        for kind in ("nodes", "pods"):
            Bookmark.objects.create(cluster=self.cluster, kind=kind, state="watching", state_since=long_ago)
        RepairKinds.objects.create(cluster=self.cluster, why_not={"RebootNode": ""}, looked_at=BEGINS)
        self._see()
        fleet = [
            Node(
                cluster=self.cluster, name=f"node-{number:04}", uid=f"uid-{number}", resource_version="1",
                created_at=long_ago, changed_at=long_ago, is_ready=True, ready_since=long_ago, is_gpu_node=True,
                gpu_capacity=8, gpu_allocatable=8, gpu_expected=8, boot_id=f"boot-{number}",
            )
            for number in range(self.nodes)
        ]  # fmt: skip
        self.fleet = Node.objects.bulk_create(fleet)
        for number in range(POOLS):
            pool = Pool.objects.create(cluster=self.cluster, name=f"pool-{number}", selector="x", max_unavailable=25)
            pool.nodes.add(*self.fleet[number::POOLS])
            for mode, before in ((Mode.SHADOW, BEGINS - TRIAL), (Mode.SUGGEST, BEGINS), (Mode.ACT, BEGINS)):
                automatic.change_mode(pool, mode=mode, actor=ADA, reason="A month.", now=before)
            given = {"drain": True, "repair": ACTOR_OF_REBOOTS, "actor": ADA, "reason": "A month.", "now": before}
            set_switches(pool, **given)

    def _plan_faults(self) -> None:
        weights = [fault.weight for fault in FAULTS.values()]
        for _ in range(self.faults):
            (fault,) = self.dice.choices(list(FAULTS.values()), weights)
            at = BEGINS + MONTH * self.dice.random()
            self._at(at, lambda fault=fault: self._begin(fault, self.dice.choice(self.fleet)))
        if self.has_storm:
            begins = BEGINS + timedelta(days=17, hours=9)
            self.storm = (begins, begins + self._minutes(ROLLBACK))
            for node in self.dice.sample(self.fleet, int(self.nodes * STORM_SHARE)):
                later = timedelta(minutes=20 * self.dice.random())
                self._at(begins + later, lambda node=node: self._begin(STORM, node))
            self._at(self.storm[1], self._roll_back)

    def _see(self) -> None:
        Bookmark.objects.update(last_seen_at=self.now, listed_at=self.now)

    # Faults

    def _begin(self, fault: Fault, node: Node) -> None:
        if node.uid in self.sick:
            return  # one at a time
        trouble = Trouble(fault, node, self.now)
        self.troubles.append(trouble)
        self._show_all(trouble)
        if fault.mended_by in ("reboot", "part"):
            self._at(self.now + self._minutes(NOTICE), lambda: self._notice(trouble))

    def _show_all(self, trouble: Trouble) -> None:
        if trouble.fault.mended_by != "nobody":
            self.sick[trouble.node.uid] = trouble
        for shown in trouble.fault.shown:
            after = shown.after + self._confirmed_after[shown.rule]
            self._at(self.now + after, lambda shown=shown: self._show(trouble, shown))

    def _show(self, trouble: Trouble, shown: Shown) -> None:
        """Opens the finding, if the fault is still there."""
        if shown.lasts is None and self.sick.get(trouble.node.uid) is not trouble:
            return
        finding = Finding.objects.create(
            cluster=self.cluster, node=trouble.node, rule=shown.rule, title=trouble.fault.key, fingerprint="x",
            subject=f"{next(self._numbers)} of {trouble.node.name}", steps=["Look at it."],
            severity="critical" if shown.is_critical else "warning", times=shown.times, facts={"xid": shown.xid},
            since=self.now, confirmed_at=self.now, opened_at=self.now, updated_at=self.now, state=FindingState.OPEN,
        )  # fmt: skip
        for seconds in SWEEPS_FOR:
            self._sweep_at(self.now + timedelta(seconds=seconds))
        if shown.lasts is not None:
            self._at(self.now + shown.lasts, lambda: self._end_findings(pk=finding.pk))

    def _mend(self, uid: str) -> None:
        trouble = self.sick.pop(uid, None)
        if trouble is not None:
            trouble.ended = self.now
            self._end_findings(node=trouble.node)

    def _end_findings(self, **which: object) -> None:
        shown = Finding.objects.filter(resolved_at=None, **which)
        shown.update(state=FindingState.RESOLVED, resolved_at=self.now, updated_at=self.now)

    def _roll_back(self) -> None:
        for uid, trouble in list(self.sick.items()):
            if trouble.fault is STORM:
                self._mend(uid)

    # The product

    def _work(self) -> None:
        self._see()
        for key in Operation.objects.due(now=self.now).order_by("pk").values_list("pk", flat=True):
            run_operation(key, owner="worker", clock=lambda: self.now)
        if self.now in self._sweeps:
            self._sweeps.discard(self.now)
            run_automatic_quarantine(now=self.now)
            run_automatic_steps(now=self.now)
            self._look_at_breakers()
            for key in Operation.objects.due(now=self.now).order_by("pk").values_list("pk", flat=True):
                run_operation(key, owner="worker", clock=lambda: self.now)
        while follow_cases(now=self.now):
            pass
        self._answer_repairs()
        self._sweep_for_cases()
        self._ask_people()

    def _next(self) -> datetime | None:
        due = Operation.objects.filter(state="running").order_by("next_look_at").values_list("next_look_at", flat=True)
        times = [at for at in (self._queue[0][0] if self._queue else None, due.first()) if at is not None]
        return min(times, default=None)

    def _sweep_at(self, at: datetime) -> None:
        """Sweeps run at fixed seconds, as the beat sends them."""
        rest = (at - BEGINS) % timedelta(seconds=SWEEP_S)
        whole = at + timedelta(seconds=SWEEP_S) - rest if rest else at
        if whole not in self._sweeps:
            self._sweeps.add(whole)
            self._at(whole, lambda: None)

    def _at(self, at: datetime, act: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (at, next(self._numbers), act))

    def _minutes(self, bounds: tuple[int, int]) -> timedelta:
        return timedelta(seconds=60 * self.dice.randint(*bounds))

    def _sweep_for_cases(self) -> None:
        """A sweep soon after each move of a case with automatic steps, and when its drain is due."""
        for case in NodeCase.objects.filter(automatic_at__isnull=False, handed_over_at=None).open():
            key = (case.pk, f"sweep {case.state}", max(case.state_since, case.tested_at or case.state_since))
            if key not in self._planned:
                self._planned.add(key)
                for after in (timedelta(seconds=1), DRAINED_AFTER, LONGEST_WAIT):
                    self._sweep_at(self.now + after)

    def _answer_repairs(self) -> None:
        """The actor of reboots answers what it was asked for, whoever asked."""
        for repair in Repair.objects.open().filter(by=ACTOR_OF_REBOOTS).select_related("case"):
            key = (repair.pk, "reboot", repair.asked_at)
            if key not in self._planned:
                self._planned.add(key)
                self._at(self.now + BOOTS, lambda uid=repair.case.node_uid: self._boot(uid))

    # People

    def _look_at_breakers(self) -> None:
        """Somebody looks why a breaker is open, waits for the rollback in a storm, and resets it."""
        for row in AutomaticQuarantine.objects.filter(breaker=BreakerState.OPEN):
            key = (-row.pk, row.breaker, row.breaker_since)
            if key in self._planned:
                continue
            self._planned.add(key)
            self.trips.append(self.now)
            at = self.now + self._minutes(LOOKS)
            if self.storm and self.storm[0] <= self.now <= self.storm[1]:
                at = max(at, self.storm[1] + timedelta(minutes=5))
            self._at(at, lambda pk=row.pk: self._reset(pk))

    def _reset(self, pk: int) -> None:
        row = AutomaticQuarantine.objects.select_related("pool__cluster").get(pk=pk)
        if row.breaker == BreakerState.OPEN:
            automatic.reset_breaker(row, actor=ADA, reason="Looked at it.", now=self.now)
            self._sweep_at(self.now + timedelta(hours=1))

    def _notice(self, trouble: Trouble) -> None:
        """Somebody reads of a fault that no machine acted on."""
        if (
            self.sick.get(trouble.node.uid) is trouble
            and not NodeCase.objects.open().of_node(trouble.node.uid).exists()
        ):
            finding = Finding.objects.filter(node=trouble.node, resolved_at=None).order_by("pk").first()
            given = {"actor": ADA, "reason": "It is sick.", "finding": finding, "now": self.now}
            commands.open_case(Node.objects.get(pk=trouble.node.pk), **given)

    def _ask_people(self) -> None:
        """Each state of a case waits for somebody, who comes once."""
        waits = NodeCase.objects.open().exclude(
            state__in=[CaseState.DRAINING, CaseState.PROBATION, CaseState.IN_REPAIR]
        )
        for case in waits:
            if not case.is_automatic:
                self._plan(case, self._minutes(PERSON))

    def _plan(self, case: NodeCase, after: timedelta) -> None:
        key = (case.pk, case.state, max(case.state_since, case.tested_at or case.state_since))
        if key not in self._planned:
            self._planned.add(key)
            self._at(self.now + after, lambda: self._act(case.pk))

    def _act(self, pk: int) -> None:
        """Does the next step that the page of the case offers. What is refused is tried again later."""
        case = NodeCase.objects.select_related("cluster", "finding").get(pk=pk)
        if not case.is_open or case.state == CaseState.PROBATION:
            return
        facts = facts_of([case])[pk]
        offered = {act.key for act in acts_of(facts)}
        try:
            self._do(case, offered, is_valid=not facts.why_no_return)
        except (CaseRefused, OperationRefused):
            self._at(self.now + self._minutes(PERSON), lambda: self._act(pk))

    def _do(self, case: NodeCase, offered: set[str], *, is_valid: bool) -> None:
        trouble = self.sick.get(case.node_uid)
        if "release" in offered and is_valid:
            self._start("release", case)
        elif (
            trouble is not None
            and trouble.fault is not STORM
            and "repair" in offered
            and case.state == CaseState.DRAINED
        ):
            self._ask_repair(case, trouble)
        elif "test" in offered:
            self._start("test", case, test="dcgm-3", image="x")
        elif "drain" in offered:
            self._start("drain", case)

    def _start(self, kind: str, case: NodeCase, **options: object) -> None:
        node = Node.objects.get(uid=case.node_uid)
        given = {"actor": ADA, "reason": "The next step.", "options": options, "now": self.now}
        operations.start(self.cluster, kind, [node], **given)

    def _ask_repair(self, case: NodeCase, trouble: Trouble) -> None:
        reboots = case.repairs.filter(kind=RepairKind.REBOOT).count()
        by_machine = trouble.fault.mended_by == "reboot" and reboots < 2
        kind, by = (RepairKind.REBOOT, ACTOR_OF_REBOOTS) if by_machine else (RepairKind.HARDWARE, "person")
        commands.ask_repair(case, kind=kind, by=by, deadline_h=72, actor=ADA, reason="Repair it.", now=self.now)
        repair = Repair.objects.get(case=case, ended_at=None)
        if not by_machine:
            self._at(self.now + self._minutes(PART), lambda: self._replace(case.pk, repair.request))

    def _boot(self, uid: str) -> None:
        """The actor boots the node; mostly that mends it."""
        Node.objects.filter(uid=uid).update(boot_id=f"boot-{next(self._numbers)}", booted_at=self.now)
        trouble = self.sick.get(uid)
        is_mended = trouble is None or trouble.fault.mended_by == "reboot"
        if is_mended and self.dice.random() < MENDS:
            self._mend(uid)
        self._sweep_at(self.now + timedelta(seconds=1))

    def _replace(self, pk: int, request: str) -> None:
        case = NodeCase.objects.select_related("cluster").get(pk=pk)
        self._mend(case.node_uid)
        given = {
            "answer": RepairAnswer.DONE,
            "request": request,
            "actor": "bob",
            "reason": "A new part.",
            "now": self.now,
        }
        commands.answer_repair(case, **given)


def lives_in(troubles: list[Trouble], at: datetime, uid: str) -> Iterator[Trouble]:
    """Yields the troubles of a node at a moment."""
    for each in troubles:
        if each.node.uid == uid and each.begins <= at and (each.ended is None or at <= each.ended):
            yield each
