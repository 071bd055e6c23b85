"""Places in the ledger in whole rounds: taken with the intent, kept while a node is out, and given back."""

import pytest
from django.db import transaction

from edges.transition_errors import LostRace
from fleet.models import Node
from operations.ledger.disruptions import record_disruptions
from operations.models import Disruption, DomainBudget
from rollouts.commands import plan_control
from rollouts.engine.act import waves
from rollouts.engine.decide.acts import ReleaseWave
from rollouts.lifecycle import TargetState
from rollouts.models import Hold, Plan
from rollouts.queries.plan_view import plan_on_page
from tests.make import a_pool
from tests.rollouts.engine.ground import CANARY, REST, Ground

WAVE = ReleaseWave(0, (CANARY,), "1 node: the stage may have 1.")


def one_pool(ground: Ground, *, most: int = 1) -> None:
    pool = a_pool(ground.cluster, "h100", max_unavailable=most)
    pool.nodes.set(Node.objects.filter(cluster=ground.cluster))


def another_plan_has(ground: Ground, name: str) -> Plan:
    plan = ground.plan
    other = Plan.objects.create(
        cluster=ground.cluster, title="other", object_name="b200", object_uid="uid-b200", from_version="1",
        to_version="2", author="ada", last_editor="ada", created_at=plan.created_at, edited_at=plan.created_at,
        state="promoting", state_since=plan.created_at, lease_until=ground.clock(),
    )  # fmt: skip
    node = Node.objects.get(cluster=ground.cluster, name=name)
    pools = [["pool", str(pool.pk)] for pool in node.pools.all()]
    Disruption.objects.create(
        cluster=ground.cluster,
        taken_by=other.mark,
        binds_rollbacks=True,
        node_uid=node.uid,
        node_name=name,
        domains=pools,
        taken_at=ground.clock(),
    )
    return other


def somebody_has(ground: Ground, name: str, by: str = "quarantine") -> None:
    node = Node.objects.get(cluster=ground.cluster, name=name)
    with transaction.atomic():
        record_disruptions(ground.cluster.pk, {node.uid: name}, by=by, is_rollback=False, now=ground.clock())


def disruptions() -> list[str]:
    return [one.node_name for one in Disruption.objects.in_force()]


def goes_through(ground: Ground, name: str) -> None:
    ground.set_state(name, "drain-required")
    ground.round()
    ground.take_the_new_driver(name)
    ground.set_state(name, "upgrade-done")


def test_a_release_loses_to_the_place_that_another_plan_took_since(ground: Ground):
    """Z15."""
    ground.armed()
    one_pool(ground)
    writer = ground.writer()
    another_plan_has(ground, REST[0])

    with pytest.raises(LostRace, match="Pool north/h100 may have 1 node unavailable and has 1"):
        waves.release_wave(writer, WAVE)

    assert ground.releases() == []
    assert ground.target().state == TargetState.HELD
    assert Hold.objects.get(plan=ground.plan, node_name=CANARY).is_wanted
    assert not ground.stage().waves.exists()
    assert disruptions() == [REST[0]]


def test_it_waits_and_says_for_whom_and_goes_once_the_place_is_free(ground: Ground):
    ground.armed()
    one_pool(ground)
    other = another_plan_has(ground, REST[0])

    ground.rounds(2)

    assert ground.releases() == []
    said = f"Pool north/h100 may have 1 node unavailable and has 1: {REST[0]} (plan-{other.pk})."
    assert plan_on_page(ground.plan, now=ground.clock()).why == f"Canary: 1 node must still change. {said}"
    Disruption.objects.filter(taken_by=other.mark).give_back(now=ground.clock())
    ground.rounds(1)
    assert ground.releases() == [CANARY]
    assert disruptions() == [CANARY]


def test_it_waits_for_who_is_no_plan_and_says_for_whom(ground: Ground):
    """Z15: quarantine and repair are to take from the same ledger."""
    ground.armed()
    one_pool(ground)
    somebody_has(ground, REST[0])

    ground.rounds(2)

    assert ground.releases() == []
    said = f"Pool north/h100 may have 1 node unavailable and has 1: {REST[0]} (quarantine)."
    assert plan_on_page(ground.plan, now=ground.clock()).why == f"Canary: 1 node must still change. {said}"
    Disruption.objects.filter(taken_by="quarantine").give_back(now=ground.clock())
    ground.rounds(1)
    assert ground.releases() == [CANARY]


def test_a_node_that_somebody_else_has_out_does_not_go(ground: Ground):
    ground.armed()
    somebody_has(ground, CANARY)

    ground.rounds(2)

    assert ground.releases() == []
    said = f"quarantine already changes {CANARY}. A node has only one change at a time."
    assert plan_on_page(ground.plan, now=ground.clock()).why == f"Canary: 1 node must still change. {said}"
    assert Disruption.objects.in_force().get().taken_by == "quarantine"


def test_a_release_loses_to_who_took_its_node_since(ground: Ground):
    ground.armed()
    writer = ground.writer()
    somebody_has(ground, CANARY)

    with pytest.raises(LostRace, match=f"quarantine already changes {CANARY}"):
        waves.release_wave(writer, WAVE)

    assert ground.releases() == []
    assert ground.target().state == TargetState.HELD


def test_a_node_that_is_back_in_order_gives_its_place_back(ground: Ground):
    ground.armed()
    ground.rounds(2)
    assert disruptions() == [CANARY]
    goes_through(ground, CANARY)
    assert disruptions() == [CANARY]

    ground.rounds(3)

    assert ground.target().state == TargetState.CHANGED
    assert disruptions() == []


def test_one_that_changed_and_is_not_ready_keeps_its_place(ground: Ground):
    ground.armed()
    ground.rounds(2)
    goes_through(ground, CANARY)
    ground.look()
    Node.objects.filter(cluster=ground.cluster, name=CANARY).update(is_ready=False)

    for _ in range(3):
        ground.round(look=False)

    assert ground.target().state == TargetState.CHANGED
    assert disruptions() == [CANARY]


@pytest.mark.nightly
def test_one_that_failed_keeps_its_place_until_it_is_taken_out(ground: Ground):
    ground.armed(canaries=2)
    ground.rounds(2)
    [out] = disruptions()
    ground.set_state(out, "drain-required")
    ground.round()
    ground.set_state(out, "upgrade-failed")
    ground.rounds(2)
    assert ground.target(out).state == TargetState.FAILED
    assert disruptions() == [out]

    plan_control.exclude(ground.target(out), actor=ground.ada, reason="It is broken.", now=ground.clock())
    ground.rounds(2)

    assert out not in disruptions()


@pytest.mark.nightly
def test_a_recalled_node_gives_its_place_back_once_it_is_seen_not_to_have_begun(ground: Ground):
    """Z3."""
    ground.armed()
    ground.rounds(2)
    plan_control.pause(ground.plan, actor=ground.ada, reason="Wait.", now=ground.clock())

    ground.round()
    assert ground.target().state == TargetState.HELD
    assert disruptions() == [CANARY]
    ground.rounds(2)

    assert disruptions() == []


def test_a_recalled_node_that_began_in_that_moment_keeps_its_place(ground: Ground):
    ground.armed()
    ground.rounds(2)
    plan_control.pause(ground.plan, actor=ground.ada, reason="Wait.", now=ground.clock())
    ground.round()
    ground.set_state(CANARY, "cordon-required")

    ground.rounds(3)

    assert disruptions() == [CANARY]


def test_a_broken_node_of_another_object_counts_in_its_zone(ground: Ground):
    ground.armed()
    zone = Node.objects.get(cluster=ground.cluster, name=CANARY).zone
    DomainBudget.objects.create(cluster=ground.cluster, kind="zone", max_unavailable=1, by="root", at=ground.clock())
    other = Node.objects.filter(cluster=ground.cluster).exclude(name=CANARY).first()
    Node.objects.filter(pk=other.pk).update(
        zone=zone, is_gpu_node=True, is_unschedulable=True, name="gpu-b200-001", uid="uid-b200"
    )

    ground.rounds(2)

    assert ground.releases() == []
    said = f"Zone {zone} may have 1 node unavailable and has 1: gpu-b200-001 (cordoned)."
    assert said in ground.plan.waiting_for


@pytest.mark.nightly
def test_a_rollback_takes_places_too(ground: Ground):
    ground.armed()
    ground.rounds(2)
    goes_through(ground, CANARY)
    ground.rounds(3)
    one_pool(ground)
    other = another_plan_has(ground, REST[0])
    plan_control.roll_back(ground.plan, actor=ground.ada, reason="Bad.", now=ground.clock())
    ground.rounds(2)
    for name in (CANARY, *REST):
        ground.set_state(name, "upgrade-required" if name == CANARY else "upgrade-done")
    ground.writes()

    ground.rounds(6)
    assert CANARY not in ground.releases()
    assert f"(plan-{other.pk})" in ground.plan.waiting_for
    Disruption.objects.filter(taken_by=other.mark).give_back(now=ground.clock())
    ground.rounds(2)

    assert CANARY in ground.releases()
