"""With the default gates an idle canary waits for proof, in both driver modes and through a killed worker (P8, Z27)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from fleet.models import Pod
from rollouts.commands.stage_drafts import gates_by_default
from rollouts.engine import round as rounds
from rollouts.gates.base import UNTESTED
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import Hold
from rollouts.models.plan import LEASE
from simulator.fleets.plan import Mode
from simulator.run import Simulation
from tests.rollouts.engine.ground import Ground, a_ground
from tests.simulator.wire.conftest import start  # noqa: F401 (fixture)

pytestmark = pytest.mark.rounds


class KilledError(BaseException):
    """The process is gone: nothing after this line ran."""


@pytest.fixture(params=[Mode.NVIDIA_DRIVER, Mode.CLUSTER_POLICY])
def ground(request, db: None, start: Callable[..., Simulation]) -> Iterator[Ground]:  # noqa: F811
    simulation = start()
    made = a_ground(simulation, request.param)
    yield made
    made.connection.close()
    simulation.stop()


def change(ground: Ground, index: int) -> None:
    """The nodes of a stage take the new driver, and no tenant has a GPU there."""
    for target in ground.stage(index).targets.all():
        ground.free(target.node_name)
        ground.take_the_new_driver(target.node_name)
        ground.set_state(target.node_name, "upgrade-done")


def armed(ground: Ground, gates: Mapping[str, dict[str, Any]]) -> None:
    ground.start(gates=dict(gates))
    Pod.objects.filter(is_tenant=True).delete()
    ground.rounds(3)
    for name in ground.held():
        ground.set_state(name, "upgrade-required")
    ground.rounds(4)


def take_over(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker dies after it has recorded its answers, and another one goes on."""

    def killed(*_args: object, **_given: object) -> None:
        raise KilledError

    with monkeypatch.context() as crash:
        crash.setattr(rounds, "make_moves", killed)
        with pytest.raises(KilledError):
            ground.round()
    ground.clock.move(seconds=LEASE.total_seconds())
    for _ in range(2):
        ground.look()
        rounds.run_round(ground.plan.pk, owner="worker-2", clock=ground.clock)
        ground.clock.move(seconds=2)
    ground.plan.refresh_from_db()
    assert ground.plan.lease_owner == "worker-2"


def waits(ground: Ground, index: int) -> dict[str, str]:
    rows = ground.stage(index).answers.filter(is_current=True, answer="wait", is_advisory=False)
    return dict(rows.values_list("gate", "cause"))


def test_an_idle_canary_waits_for_proof(ground: Ground, monkeypatch, settings):
    settings.TEST_IMAGES = {}  # no test Job by default: nothing but tenants could prove anything
    # Nobody runs rules, a validator or approvals here: these would wait for themselves.
    others = {"approval", "findings", "validator_passed"}
    armed(ground, {key: given for key, given in gates_by_default().items() if key not in others})
    change(ground, 0)
    ground.rounds(4)
    ground.clock.move(minutes=45)  # longer than the soak
    take_over(ground, monkeypatch)

    assert waits(ground, 0) == {"workloads_ready": UNTESTED, "exposure": "idle", "soak": "not-begun"}
    assert ground.stage().state == StageState.SOAKING


def test_the_last_stage_waits_for_proof_too(ground: Ground, monkeypatch):
    """Nodes of a stage that passed prove nothing of it, and a plan does not end without a proof."""
    armed(ground, {"driver_version": {}, "failure_budget": {}, "workloads_ready": {}})
    for index in (0, 1):
        change(ground, index)
        ground.stage(index).targets.update(state=TargetState.CHANGED, state_since=ground.clock())
    ground.plan.stages.filter(index=0).update(state=StageState.PASSED)
    ground.plan.stages.filter(index=1).update(state=StageState.SOAKING, state_since=ground.clock(), timeout_s=600)
    Hold.objects.filter(plan=ground.plan).update(is_wanted=False)
    ground.rounds(2)
    take_over(ground, monkeypatch)

    assert waits(ground, 1) == {"workloads_ready": UNTESTED}
    assert (ground.plan.state, ground.stage(1).state) == (PlanState.PROMOTING, StageState.SOAKING)
