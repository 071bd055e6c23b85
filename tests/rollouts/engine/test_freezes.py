"""A freeze in whole rounds: what was let go comes back, what had begun ends, a rollback goes on (Z3, Z32)."""

from datetime import timedelta

import pytest

from edges.transition_errors import LostRace
from fleet.models import Node
from rollouts.commands import fleet_freezes, plan_control
from rollouts.commands.fleet_freezes import Where
from rollouts.engine.act import version
from rollouts.lifecycle import TargetState
from rollouts.models import Plan
from rollouts.queries.plan_view import plan_on_page
from tests.make import a_pool
from tests.rollouts.engine.ground import CANARY, NODES, OLD, REST, Ground

SAYS = "Cluster north is frozen by bea: Quarter end."


def frozen(ground: Ground, **given):
    return fleet_freezes.freeze(Where(ground.cluster), actor="bea", reason="Quarter end.", now=ground.clock(), **given)


def a_pool_of(ground: Ground, *nodes: str):
    pool = a_pool(ground.cluster, "some", selector="tier=some")
    for name in nodes:
        ground.label(name, tier="some")
        Node.objects.get(cluster=ground.cluster, name=name).pools.add(pool)
    return pool


def test_a_freeze_calls_back_what_was_released_and_wakes_the_plan(ground: Ground):
    """Z3: a released node is held again in the round that the freeze asks for."""
    ground.armed()
    ground.rounds(2)
    assert ground.target().state == TargetState.RELEASED
    Plan.objects.filter(pk=ground.plan.pk).update(next_look_at=ground.clock() + timedelta(hours=1))

    frozen(ground)

    ground.plan.refresh_from_db()
    assert ground.plan.next_look_at <= ground.clock()
    assert ground.plan.waiting_for == SAYS
    ground.round()
    assert ground.held() == set(NODES)
    assert ground.target().state == TargetState.HELD
    assert ground.plan.waiting_for == SAYS


def test_what_had_begun_goes_on_and_nothing_new_goes(ground: Ground):
    ground.armed()
    ground.rounds(2)
    ground.set_state(CANARY, "drain-required")
    ground.round()
    frozen(ground)
    ground.writes()

    ground.rounds(3)

    assert ground.target().state == TargetState.CHANGING
    assert CANARY not in ground.held()
    assert ground.releases() == []


def test_a_plan_that_is_frozen_while_it_holds_writes_no_version(ground: Ground):
    ground.start()
    ground.round()
    frozen(ground)

    ground.rounds(3)

    assert ground.version() == OLD
    assert ground.plan.waiting_for == SAYS


def test_a_freeze_that_comes_between_decision_and_write_wins(ground: Ground):
    ground.start()
    ground.rounds(1)
    writer = ground.writer()
    frozen(ground)

    with pytest.raises(LostRace, match="frozen by bea"):
        version._intend(writer.plan, now=ground.clock())

    assert Plan.objects.get(pk=ground.plan.pk).write_intended_at is None


def test_lifting_it_lets_the_plan_go_on(ground: Ground):
    ground.armed()
    row = frozen(ground)
    ground.rounds(2)
    assert ground.releases() == []

    fleet_freezes.lift(row, actor="bea", reason="It is over.", now=ground.clock())
    ground.rounds(2)

    assert ground.releases() == [CANARY]


@pytest.mark.nightly
def test_a_frozen_pool_keeps_its_own_nodes_and_the_others_go(ground: Ground):
    ground.armed(max_unavailable=3)
    ground.rounds(2)
    pool = a_pool_of(ground, CANARY)
    fleet_freezes.freeze(Where(ground.cluster, pool), actor="bea", reason="Quarter end.", now=ground.clock())

    ground.round()

    assert ground.held() == set(NODES)
    assert ground.plan.waiting_for == f"Holding {CANARY} again. Pool north/some is frozen by bea: Quarter end."
    ground.round()
    assert ground.plan.waiting_for == "Canary: 1 node must still change. Pool north/some is frozen by bea: Quarter end."


def changed_and_going_back(ground: Ground) -> None:
    """The canary changed; the rollback has put the old version back and every node waits for its wave."""
    ground.armed()
    ground.rounds(2)
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(2)
    plan_control.roll_back(ground.plan, actor=ground.ada, reason="Bad.", now=ground.clock())
    ground.rounds(2)
    for name in REST:
        ground.set_state(name, "upgrade-done")
    ground.set_state(CANARY, "upgrade-required")
    ground.writes()


@pytest.mark.parametrize("also_rollbacks", [False, True])
def test_a_freeze_holds_a_rollback_only_where_it_says_so(ground: Ground, also_rollbacks: bool):
    """Z32."""
    changed_and_going_back(ground)
    frozen(ground, binds_rollbacks=also_rollbacks)

    ground.rounds(6)

    assert ground.version() == OLD
    assert (CANARY in ground.releases()) is not also_rollbacks
    assert (plan_on_page(ground.plan, now=ground.clock()).why == SAYS) is also_rollbacks


@pytest.mark.nightly
def test_the_stop_holds_a_rollback_until_it_is_lifted(ground: Ground):
    changed_and_going_back(ground)
    row = fleet_freezes.stop(actor="bea", reason="Smoke.", now=ground.clock())
    ground.rounds(6)
    assert CANARY not in ground.releases()
    assert ground.plan.waiting_for == "The fleet is stopped by bea: Smoke."

    fleet_freezes.lift(row, actor="bea", reason="A toaster.", now=ground.clock())
    ground.rounds(8)  # what never changed was not let go either

    assert CANARY in ground.releases()
