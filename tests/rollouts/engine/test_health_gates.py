"""A GPU of the canary reports a new Xid: its rule opens a finding, the gate fails, and the plan halts."""

from datetime import timedelta
from typing import Any

import pytest

from fleet.models import Node, Observer
from health.evaluation.overdue_clusters import record_evaluation
from health.models import Finding, TelemetrySource
from health.telemetry.snapshot import GpuDevice
from rollouts.engine import gpu_health
from rollouts.engine.gpu_health import read_plan_health, unchanged_peers
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import GateAnswer
from tests.health.conftest import _redis, redis  # noqa: F401 (fixtures)
from tests.health.evaluation.saying import Saying
from tests.make import a_finding, a_node_event, a_source
from tests.rollouts.engine.ground import CANARY, REST, Ground

pytestmark = [pytest.mark.rounds, pytest.mark.usefixtures("redis")]
GATES: dict[str, dict[str, Any]] = {
    "driver_version": {}, "failure_budget": {}, "telemetry_fresh": {}, "findings": {}, "xid": {},
}  # fmt: skip
GPUS = 8


class Fleet:
    """The ground's cluster with an exporter on each node: every GPU is well, but those that a test names."""

    def __init__(self, ground: Ground) -> None:
        self.ground, self.say = ground, Saying(ground.cluster)
        Observer.objects.get_or_create(cluster=ground.cluster, defaults={"lease_until": ground.clock()})
        a_source(ground.cluster, exported=["temperature_celsius", "xid"])
        names = sorted([CANARY, *REST])
        devices = tuple(GpuDevice(name, index, f"GPU-{name}-{index}") for name in names for index in range(GPUS))
        self.places = {(device.node_name, device.index): place for place, device in enumerate(devices)}
        self.say.devices = self.say.snapshot.devices = devices

    def report(self, *, xids: dict[tuple[str, int], int] | None = None, silent: tuple[str, ...] = ()) -> None:
        """One snapshot, one evaluation of the rules, one round."""
        now = self.ground.clock()
        TelemetrySource.objects.update(answered_at=now)
        xid = {self.places[gpu]: float(number) for gpu, number in (xids or {}).items()}
        quiet = [place for (name, _), place in self.places.items() if name in silent]
        self.say(now, xid=xid, silent=quiet)
        record_evaluation(self.ground.cluster.pk, now=now)
        self.ground.round()

    def soak(self, **given: Any) -> None:
        """Three minutes of reports, so that samples and evaluations are of after the change."""
        for _ in range(6):
            self.ground.clock.move(seconds=28)
            self.report(**given)

    def change_canary(self) -> None:
        self.report()
        self.ground.take_the_new_driver(CANARY)
        self.ground.set_state(CANARY, "upgrade-done")
        self.ground.rounds(3)
        assert self.ground.target().state == TargetState.CHANGED

    def answer(self, gate: str = "xid") -> GateAnswer:
        return self.ground.stage().answers.get(gate=gate, is_current=True)


@pytest.fixture
def fleet(ground: Ground) -> Fleet:
    ground.armed(gates=GATES)
    ground.plan.stages.filter(index=0).update(timeout_s=3600)
    return Fleet(ground)


def test_a_canary_with_a_new_xid_halts_the_plan(fleet: Fleet):
    fleet.change_canary()
    assert fleet.answer().answer == "wait"

    fleet.report(xids={(CANARY, 1): 79})

    assert (fleet.answer().answer, fleet.answer().nodes) == ("fail", [CANARY])
    assert fleet.answer().title.startswith(f"GPU 1 of {CANARY}: Xid 79")
    assert fleet.ground.plan.state == PlanState.HALTED
    assert {Node.objects.get(name=name).driver_version for name in REST} == {fleet.ground.plan.from_version}


def test_a_healthy_canary_passes_once_samples_and_rules_are_of_after_the_change(fleet: Fleet):
    fleet.change_canary()
    fleet.report()
    assert fleet.answer().cause == "not-evaluated"

    fleet.soak()

    assert {gate: fleet.answer(gate).answer for gate in GATES} == dict.fromkeys(GATES, "pass")
    assert fleet.ground.stage().state == StageState.PASSED


@pytest.mark.nightly
def test_the_xid_that_a_node_had_before_its_change_does_not_halt_it(fleet: Fleet):
    fleet.report(xids={(CANARY, 1): 79})
    assert fleet.ground.target().baseline["findings"]
    fleet.ground.take_the_new_driver(CANARY)
    fleet.ground.set_state(CANARY, "upgrade-done")

    fleet.soak(xids={(CANARY, 1): 79})

    assert fleet.answer().answer == "pass"
    assert fleet.answer().value_of("Before the change").startswith(f"GPU 1 of {CANARY}: Xid 79")


@pytest.mark.nightly
def test_an_exporter_that_stays_silent_after_the_change_holds_the_stage(fleet: Fleet):
    fleet.change_canary()

    fleet.soak(silent=(CANARY,))

    assert (fleet.answer("telemetry_fresh").answer, fleet.answer("telemetry_fresh").cause) == ("wait", "gpus-silent")
    assert fleet.ground.stage().state == StageState.SOAKING


@pytest.mark.nightly
def test_a_reset_in_the_soak_makes_it_wait_for_new_samples(fleet: Fleet):
    fleet.change_canary()
    fleet.soak()
    node = Node.objects.get(name=CANARY)
    fleet.ground.plan.stages.filter(index=0).update(state=StageState.SOAKING)
    a_node_event(node, at=fleet.ground.clock() - timedelta(seconds=1), kind="reset", detail={"gpu": 0})

    fleet.report()

    assert fleet.answer().cause == "counters-restarted"


@pytest.mark.nightly
def test_findings_of_unchanged_nodes_are_read_for_comparison(fleet: Fleet):
    fleet.change_canary()
    fleet.soak()
    ill = Node.objects.get(name=REST[0])
    a_finding(ill.cluster, f"GPU 0 of {ill.name}", node=ill, rule="gpu-xid", since=fleet.ground.clock())
    stages = list(fleet.ground.plan.stages.all())
    nodes = {node.uid: node for node in Node.objects.all()}

    health = read_plan_health(fleet.ground.plan, stages, nodes, now=fleet.ground.clock()).evidence

    assert health is not None
    assert {name: [one.rule for one in found] for name, found in health.peers.items()} == {
        REST[0]: ["gpu-xid"], REST[1]: [],
    }  # fmt: skip


def test_findings_of_the_days_before_are_read_once_a_changed_node_has_one(fleet: Fleet):
    """One that never opened, one in shadow mode and one from before these days are no background."""
    long_ago, before = fleet.ground.clock() - timedelta(days=20), fleet.ground.clock() - timedelta(days=5)
    ill = Node.objects.get(name=REST[0])
    Node.objects.update(created_at=long_ago)
    fleet.change_canary()
    fleet.soak()
    cases = {"gpu-hot": before, "gpu-nvlink-errors": None, "gpu-throttled": before, "gpu-xid": long_ago}
    for rule, opened_at in cases.items():
        row = a_finding(ill.cluster, f"GPU 0 of {ill.name}", node=ill, rule=rule, since=opened_at or before)
        Finding.objects.filter(pk=row.pk).update(
            opened_at=opened_at, resolved_at=before, is_shadow=rule == "gpu-throttled"
        )
    stages = list(fleet.ground.plan.stages.all())
    nodes = {node.uid: node for node in Node.objects.all()}

    def past():
        evidence = read_plan_health(fleet.ground.plan, stages, nodes, now=fleet.ground.clock()).evidence
        assert evidence is not None
        return evidence.past

    Finding.objects.filter(node__name=CANARY).delete()
    without, canary = past(), Node.objects.get(name=CANARY)
    at = fleet.ground.clock()
    a_finding(canary.cluster, f"GPU 0 of {CANARY}", node=canary, rule="gpu-hot", since=at, opened_at=at)
    found = past()

    assert without is None
    assert found is not None
    assert [(one.node, one.rule, one.since) for one in found.findings if one.rule in cases] == [
        (REST[0], "gpu-hot", before)
    ]
    assert set(found.nodes) == {CANARY, *REST}
    assert found.ends_at - found.nodes[CANARY] == timedelta(days=14)


def test_peers_are_of_the_same_cohort_where_they_are_enough(fleet: Fleet, monkeypatch):
    """A node with another kernel tells less about this one."""
    fleet.change_canary()
    stages = list(fleet.ground.plan.stages.prefetch_related("targets"))
    changed = [Node.objects.get(name=CANARY)]
    Node.objects.filter(name=REST[0]).update(kernel=changed[0].kernel, os_image=changed[0].os_image)
    Node.objects.filter(name=REST[1]).update(kernel="6.99")

    few = unchanged_peers(fleet.ground.plan, stages, changed, fleet.ground.clock())
    monkeypatch.setattr(gpu_health, "FEWEST_PEERS", 1)
    enough = unchanged_peers(fleet.ground.plan, stages, changed, fleet.ground.clock())

    assert (set(few.names.values()), few.alike) == ({REST[0], REST[1]}, "the same GPU")
    assert (set(enough.names.values()), enough.alike) == ({REST[0]}, "the same GPU, kernel and OS image")
