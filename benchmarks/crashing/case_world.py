"""A cluster with tenants, cases and operations, the workers' rounds of these, and who repairs nodes beside them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any
from unittest import mock

from benchmarks.crashing.case_actors import ADDRESS, SECRET_PLACE, SECRETS, CaseActors, provider_id
from benchmarks.crashing.case_neighbours import Neighbours
from benchmarks.crashing.plays import SHAPES, world_of
from benchmarks.crashing.seams import Turn
from benchmarks.crashing.tenants import Tenants
from benchmarks.crashing.world import Kept, World, connected
from fleet.models import GoneNode, Node, Pool
from health.lifecycle import FindingState
from health.models import Finding
from maintenance import automatic, repair_round
from maintenance.automatic_round import run_automatic_quarantine
from maintenance.case_round import follow_cases
from maintenance.models import Repair, RepairReceiver
from maintenance.new_node_round import run_new_nodes
from maintenance.repair_kinds import discover
from maintenance.repair_round import run_repair
from maintenance.step_round import run_automatic_steps
from maintenance.triggers import Mode
from operations.external_work import EVERY, record_work
from operations.models import ExternalWork, Operation, OperationNode
from operations.operation_round import clean_up_operation, end_gone_quarantines, run_operation
from operations.quarantine_round import follow_quarantines
from operations.steps import STEPS
from rollouts.commands.image_pulls import cancel_obsolete_pulls
from simulator.actors.objects import name, uid
from simulator.kinds import NODE

WAITING = {
    "drain",
    "out_of_service",
    "cancel_breakfix",
    "uncordon",
}  # steps that begin only once other controllers are done
SICK = 3  # nodes on which something may be wrong
OF_AN_OPERATION, OF_A_REPAIR, OF_A_CLEAN_UP = "operation", "repair", "clean-up"
OF_CASES, OF_AUTOMATIC, OF_STEPS, OF_NEW, OF_GONE = "cases", "automatic", "steps", "new", "gone"
OF_QUARANTINES, OF_PULLS, OF_WORK = "quarantines", "pulls", "work"


@dataclass(frozen=True)
class Work:
    """What one round of a worker is about."""

    kind: str
    key: int = 0

    @property
    def mark(self) -> str:
        """How the API server's log names its turns."""
        return f"{self.kind}-{self.key}" if self.key else self.kind


@dataclass
class CaseWorld:
    world: World
    focus: str = ""  # the node that a round is about to write; blank: none in particular
    tenants: Tenants = field(init=False)
    actors: CaseActors = field(init=False)
    neighbours: Neighbours = field(init=False)
    begun_beside: list[str] = field(default_factory=list)  # what operations began where a remediator was seen at work

    def __post_init__(self) -> None:
        self.tenants = Tenants(self.world.line, nodes=tuple(self.nodes))
        self.actors = CaseActors(self.world.line, self.boot)
        self.neighbours = Neighbours(self.world.line, self.tenants)

    @property
    def nodes(self) -> list[str]:
        """Those on which the tenants start, and on which something may be wrong."""
        return sorted(name(node) for node in self.world.first_nodes if "gpu" in name(node))[:SICK]

    @property
    def pool(self) -> Pool:
        return Pool.objects.select_related("cluster").get(cluster=self.world.cluster)

    def plant(self) -> None:
        world = self.world
        self.actors.plant(self.nodes)
        self.neighbours.plant()
        for called in self.nodes:
            world.store.patch(NODE, called, {"spec": {"providerID": provider_id(called)}}, how="merge")
        given = {"address": ADDRESS, "secret_from": SECRET_PLACE, "changed_by": "ada"}
        RepairReceiver.objects.create(cluster=world.cluster, changed_at=world.clock(), **given)
        self.tenants.plant()
        world.clock.move(3600)
        self.look()
        with connected(world):
            discover(world.cluster.pk, now=world.clock())
        for mode in (Mode.SHADOW, Mode.SUGGEST, Mode.ACT):
            given = {"actor": "ada", "reason": "A schedule.", "skip_trial": True}
            automatic.change_mode(self.pool, mode=mode, now=world.clock(), **given)
        world.clock.move(60)

    # Rounds of workers

    def due(self) -> list[Work]:
        """What the sweeps would queue now, and the sweeps themselves."""
        now = self.world.clock()
        operations = Operation.objects.due(now=now).order_by("pk").values_list("pk", flat=True)
        repairs = Repair.objects.due(now=now).order_by("pk").values_list("pk", flat=True)
        left_behind = {key for step in STEPS.values() for key in step.left_behind()}
        return [
            *(Work(OF_AN_OPERATION, key) for key in operations),
            *(Work(OF_A_REPAIR, key) for key in repairs),
            *(Work(OF_A_CLEAN_UP, key) for key in sorted(left_behind)),
            Work(OF_CASES),
            Work(OF_AUTOMATIC),
            Work(OF_STEPS),
            Work(OF_NEW),
            Work(OF_QUARANTINES),
            Work(OF_GONE),
            Work(OF_PULLS),
            *[Work(OF_WORK)] * (not ExternalWork.objects.filter(looked_at__gt=now - EVERY).exists()),
        ]

    def round(self, work: Work, who: str = "worker-1", **planned: Any) -> Turn:
        clock = self.world.clock
        rounds: dict[str, Callable[[], object]] = {
            OF_AN_OPERATION: partial(run_operation, work.key, owner=who, clock=clock),
            OF_A_REPAIR: partial(run_repair, work.key, owner=who, clock=clock),
            OF_A_CLEAN_UP: partial(clean_up_operation, work.key, clock=clock),
            OF_CASES: lambda: follow_cases(now=clock()),
            OF_AUTOMATIC: lambda: run_automatic_quarantine(now=clock()),
            OF_STEPS: lambda: run_automatic_steps(now=clock()),
            OF_NEW: lambda: run_new_nodes(now=clock()),
            OF_QUARANTINES: partial(follow_quarantines, clock=clock),
            OF_GONE: lambda: end_gone_quarantines(now=clock()),
            OF_PULLS: lambda: cancel_obsolete_pulls(now=clock()),
            OF_WORK: lambda: record_work(self.world.cluster.pk, now=clock()),
        }
        held = self._held_by_others(work)
        turn = self.world.live(Turn(who, of=work.mark, **planned), rounds[work.kind])
        began = OperationNode.objects.filter(pk__in=held).exclude(state__in=("pending", "cancelled"))
        self.begun_beside += [f"{work.mark} begins on {row.node_name}, which is remediated." for row in began]
        if work.kind == OF_PULLS and not turn.is_cut:
            self.world.say("worker", "sweep")
        return turn

    def _held_by_others(self, work: Work) -> list[int]:
        """Returns the keys of nodes on which an operation must not begin: the last look saw a remediator there."""
        row = ExternalWork.objects.filter(cluster=self.world.cluster).first()
        if work.kind != OF_AN_OPERATION or row is None:
            return []
        pending = OperationNode.objects.filter(operation=work.key, state="pending", node_name__in=list(row.by_node))
        pending = pending.filter(node_uid__in=Node.objects.values("uid"))
        steps = Operation.objects.get(pk=work.key).steps
        return list(pending.values_list("pk", flat=True)) if not WAITING.isdisjoint(steps) else []

    # What goes on beside them

    def step(self) -> None:
        """Tenants, test Jobs, the actors of repairs and the observer go on."""
        self.tenants.step()
        self._run_tests()
        self.actors.step()
        self.neighbours.step()
        self.look()

    def _run_tests(self) -> None:
        """The Job controller and the kubelets go on; a Job that ends is a word about its node."""
        before = {name(job) for job in self.world.jobs.ended()}
        self.world.jobs.step()
        for job in self.world.jobs.ended():
            if name(job) not in before:
                self.world.say("job", f"{'completed' if self.world.jobs.has_passed(job) else 'broke'} {name(job)}")

    def look(self) -> None:
        """Makes rows of what changed. A node that is not there any more is gone."""
        cluster, now = self.world.cluster, self.world.clock()
        before = dict(Node.objects.filter(cluster=cluster).values_list("uid", "name"))
        keys = dict(Node.objects.filter(cluster=cluster).values_list("uid", "pk"))
        self.world.rows.look(now=now)
        left = before.keys() - set(Node.objects.filter(cluster=cluster).values_list("uid", flat=True))
        GoneNode.objects.bulk_create(
            GoneNode(cluster=cluster, node_id=keys[each], uid=each, name=before[each], gone_at=now) for each in left
        )

    def boot(self, called: str) -> None:
        """A node boots anew, and is Ready. Its fault is gone."""
        if self.world.store.shelf(NODE).records.get(called) is None:
            return
        boot_id = f"boot-{self.world.store.version}"
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        body = {"status": {"nodeInfo": {"bootID": boot_id}, "conditions": [ready]}}
        self.world.line.notify("kubelet", "PATCH", f"/api/v1/nodes/{called}/status", body)
        self.world.say("kubelet", f"boot {self.uid_of(called)}")
        self.mend(called)

    def uid_of(self, called: str) -> str:
        return uid(self.world.store.get(NODE, called))

    def break_node(self, called: str) -> None:
        """A fault shows on a node: a finding that a trigger reads, new now."""
        now = self.world.clock.moment()  # newer than a test that began just now
        node = Node.objects.filter(cluster=self.world.cluster, name=called).first()
        if node is None:
            return
        number = Finding.objects.filter(cluster=self.world.cluster).count()
        Finding.objects.create(
            cluster=self.world.cluster, node=node, subject=f"GPU {number} of {called}", rule="gpu-row-remap",
            severity="critical", fingerprint="x", title="A memory row was not remapped.", steps=["Drain the node."],
            since=now, opened_at=now, confirmed_at=now, updated_at=now, state=FindingState.OPEN,
        )  # fmt: skip
        self.world.say("rule", f"fault {node.uid}")

    def mend(self, called: str) -> None:
        """Nothing shows on the node any more."""
        self._end_findings(node__name=called)

    def mend_all(self) -> None:
        self._end_findings()

    def _end_findings(self, **which: Any) -> None:
        now = self.world.clock()
        shown = Finding.objects.filter(cluster=self.world.cluster, resolved_at=None, **which)
        shown.update(state=FindingState.RESOLVED, resolved_at=now, updated_at=now)


@contextmanager
def in_its_place(ground: CaseWorld) -> Iterator[None]:
    """Requests to the API server and to receivers of repairs end in this process."""
    receiver = mock.patch.object(repair_round, "post_to", ground.actors.post_to)
    with connected(ground.world), receiver, mock.patch.dict(os.environ, SECRETS):
        yield


@lru_cache
def case_ground() -> tuple[CaseWorld, Kept]:
    """With a draft of a plan, which writes nothing."""
    world = world_of(SHAPES[0])
    world.put_back(world.drafted)
    ground = CaseWorld(world)
    ground.plant()
    return ground, world.keep()
