"""No node of production changes unasked, whatever it was when the plan was started."""

import pytest

from fleet.pools.changes import change_pool, create_pool
from fleet.pools.membership_writes import sort_cluster
from people.models import AuditEntry
from rollouts.commands import plan_control
from rollouts.lifecycle import PlanState, StageState, TargetState
from tests.make import NOON
from tests.rollouts.engine.ground import CANARY, NODES, REST, Ground
from tests.rollouts.engine.test_ends import say

pytestmark = pytest.mark.rounds


@pytest.fixture(autouse=True)
def production(ground: Ground) -> None:
    given = {"selector": "tier=prod", "environment": "production", "approval": "required"}
    create_pool(cluster=ground.cluster, actor="root", now=NOON, name="serving", **given)


def move_into_production(ground: Ground, name: str) -> None:
    ground.label(name, tier="prod")
    ground.look()
    sort_cluster(ground.cluster.pk)


def canary_passed(ground: Ground, **given: int) -> None:
    ground.armed(**given)
    ground.rounds(2)
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    for _ in range(6):
        if ground.stage().state == StageState.SOAKING:
            return
        ground.round()


def with_one_to_go(ground: Ground) -> str:
    """The second stage has let its first node go; the name of the other."""
    for _ in range(8):
        if ground.stage(1).waves.exists():
            return ground.stage(1).targets.get(state=TargetState.HELD).node_name
        ground.round()
    raise AssertionError(ground.plan.waiting_for)


@pytest.mark.nightly
def test_a_stage_waits_for_an_approval_once_a_node_of_it_is_production(ground: Ground):
    canary_passed(ground)
    move_into_production(ground, REST[0])
    ground.writes()

    ground.rounds(6)

    rest = ground.stage(1)
    assert (rest.state, rest.gate_options["approval"]) == (StageState.OPENING, {})
    assert ground.plan.state == PlanState.PROMOTING
    assert ground.releases() == []
    assert "0 of 1 approval given" in ground.plan.waiting_for
    said = ground.plan.events.get(what="stage", to="approval")
    assert f"{REST[0]} needs an approval before the change: pool serving is production." in said.reason
    assert AuditEntry.objects.filter(subject=ground.plan.mark, verb="ask", actor="engine").exists()


def test_a_stage_that_has_begun_halts_and_is_approved_before_it_goes_on(ground: Ground):
    canary_passed(ground)
    last = with_one_to_go(ground)
    move_into_production(ground, last)
    ground.writes()

    ground.rounds(2)
    assert ground.plan.state == PlanState.HALTED
    assert (f"Rest: {last} needs an approval before the change: pool serving is production.") in ground.plan.reason
    assert ground.held() == set(REST)  # what had not begun was called back

    say(plan_control.resume, ground)
    ground.rounds(4)
    assert ground.stage(1).state == StageState.OPENING
    assert ground.releases() == []


def test_a_label_that_no_row_shows_yet_is_seen_on_the_node_itself(ground: Ground):
    ground.armed()
    ground.look()
    ground.label(CANARY, tier="prod")

    ground.round(look=False)

    assert ground.held() == set(NODES)
    assert ground.target().state == TargetState.HELD


@pytest.mark.nightly
def test_a_pool_that_becomes_production_halts_what_has_begun_in_it(ground: Ground):
    given = {"selector": "nvidia.com/gpu.present=true", "approval": "required"}
    pool = create_pool(cluster=ground.cluster, actor="root", now=NOON, name="lab", **given | {"approval": "none"})
    canary_passed(ground)
    with_one_to_go(ground)

    change_pool(pool, actor="root", now=ground.clock(), environment="production", approval="required")

    ground.plan.refresh_from_db()
    assert ground.plan.state == PlanState.HALTED
    ground.writes()
    ground.rounds(2)
    assert ground.releases() == []


@pytest.mark.nightly
def test_what_has_changed_already_asks_nobody(ground: Ground):
    canary_passed(ground)
    move_into_production(ground, CANARY)

    ground.rounds(2)

    assert "approval" not in ground.stage().gate_options
    assert ground.plan.state == PlanState.PROMOTING
