"""An idle canary waits for proof: a test Job that a person adds, or tenants, whose proof outlasts them (Z27, Z41)."""

from datetime import timedelta

import pytest

from fleet.models import Pod
from rollouts.commands.test_jobs import add_test_jobs
from rollouts.gates.base import UNTESTED
from rollouts.lifecycle import StageState, TargetState
from rollouts.models import GateAnswer, Target, TestJob
from tests.make import a_pod
from tests.rollouts.engine.ground import CANARY, Ground
from tests.rollouts.engine.test_test_jobs import completes, jobs

pytestmark = pytest.mark.rounds

GATES = {"driver_version": {}, "failure_budget": {}, "workloads_ready": {}}


@pytest.fixture
def idle(ground: Ground) -> Ground:
    """Its canary has changed, and no tenant's pod has a GPU there."""
    ground.armed(gates=GATES)
    Pod.objects.filter(is_tenant=True).delete()
    ground.round()
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(4)
    assert ground.target().state == TargetState.CHANGED
    return ground


def answer(ground: Ground) -> GateAnswer:
    return ground.stage().answers.get(gate="workloads_ready", is_current=True)


def serves(ground: Ground) -> Pod:
    node = ground.cluster.nodes.get(name=CANARY)
    return a_pod(node, started_at=ground.clock(), ready_since=ground.clock())


def test_an_idle_canary_does_not_pass(idle: Ground):
    assert (answer(idle).answer, answer(idle).cause) == ("wait", UNTESTED)
    assert idle.stage().state == StageState.SOAKING


@pytest.mark.nightly
def test_it_passes_once_a_test_job_that_somebody_added_has_passed(idle: Ground):
    add_test_jobs(idle.stage(), actor=idle.ada, reason="The canary is idle.", now=idle.clock())
    idle.rounds(2)
    assert len(jobs(idle)) == 1
    assert not idle.node(CANARY)["spec"].get("unschedulable"), "a node in service stays in service"

    completes(idle)
    idle.rounds(3)

    assert TestJob.objects.get().outcome == "passed"
    assert answer(idle).value_of("Test Job passed on") == CANARY
    assert idle.stage().state == StageState.PASSED


@pytest.mark.nightly
def test_what_a_tenant_has_shown_outlasts_its_pod(idle: Ground):
    pod = serves(idle)
    idle.rounds(1)
    assert Target.objects.get(node_name=CANARY, stage__index=0).tenants_ready_at is not None

    pod.delete()
    idle.rounds(2)

    assert answer(idle).answer == "pass"


def test_what_was_shown_before_the_node_changed_again_counts_no_more(idle: Ground):
    target = idle.target()
    Target.objects.filter(pk=target.pk).update(tenants_ready_at=target.state_since - timedelta(seconds=1))

    idle.rounds(1)

    assert answer(idle).cause == UNTESTED
