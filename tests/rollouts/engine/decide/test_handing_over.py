"""Hazard Z38: a plan that is given up releases no node to somebody else's version, unless a person has decided so."""

from dataclasses import replace
from typing import Any

import pytest

from operations.failure_domains import Allowance, Budgets, Domain, DomainKind
from rollouts.engine.decide import decide
from rollouts.engine.decide.acts import (
    ClearUpgradeState,
    Decision,
    HandOver,
    LiftHolds,
    MovePlan,
    PlaceHolds,
    ReleaseUnmanagedNodes,
    RequeueFailed,
)
from rollouts.engine.snapshot import NodeSnapshot, Snapshot
from rollouts.lifecycle import PlanState
from tests.make import NOON
from tests.rollouts.make import (
    DAEMONSET,
    NEW_HASH,
    OLD,
    OLD_HASH,
    a_node_snapshot,
    a_policy,
    a_rollback_stage,
    a_snapshot,
    not_yet_written,
    put_back,
    with_facts,
)

OTHER, OTHER_HASH = "590.1.1", "hash-other"
STOP, FROZEN = "The fleet is stopped by bea: Smoke.", "Cluster north is frozen by bea: Quarter end."
BEFORE_OR_AFTER = pytest.mark.parametrize("write_intended", [False, True])


def held(name: str = "a", **given: Any) -> NodeSnapshot:
    return a_node_snapshot(name, **given)


def gone_over(name: str = "a", **given: Any) -> NodeSnapshot:
    """Let go, and not begun."""
    return held(name, **{"has_label": False, "label_is_ours": False, "hold_wanted": False} | given)


def arrived(name: str = "z", **given: Any) -> NodeSnapshot:
    row = {"driver_version": OTHER, "pod_hash": OTHER_HASH, "upgrade_state": "upgrade-done"}
    return gone_over(name, **row | given)


def given_up(*nodes: NodeSnapshot, most: int = 1, **given: Any) -> Snapshot:
    """Somebody else wrote a third version while the plan was holding."""
    row: dict[str, Any] = {
        "state": PlanState.ABORTING,
        "object_version": OTHER,
        "newest_hashes": {DAEMONSET: OTHER_HASH},
        "sealed_hashes": {DAEMONSET: OLD_HASH},
    }
    snapshot = a_snapshot(a_rollback_stage(max_unavailable=most), nodes=nodes)
    return not_yet_written(snapshot, **row | given)


def decided(snapshot: Snapshot) -> Decision:
    return decide(snapshot, now=NOON)


def handed_over(*nodes: NodeSnapshot, **given: Any) -> Snapshot:
    return given_up(*nodes, **{"handed_to": OTHER, "handed_by": "ada"} | given)


def releases_outside_waves(decision: Decision) -> tuple[Any, ...]:
    return tuple(act for act in decision.acts if isinstance(act, LiftHolds | ReleaseUnmanagedNodes | HandOver))


@BEFORE_OR_AFTER
def test_no_node_is_released_to_a_version_of_somebody_else(*, write_intended: bool):
    decision = decided(given_up(held("a"), held("b"), write_intended=write_intended))

    assert (decision.acts, decision.moves) == ((), ())
    assert decision.waiting_for == (
        f"Somebody else set the version to {OTHER}. 2 nodes stay held. If released, they would take that change. "
        f"A person decides: hand over the nodes, or restore {OLD} and its template."
    )


def test_nor_before_the_daemonsets_have_followed_it():
    assert decided(given_up(held(upgrade_state="upgrade-done"), newest_hashes={DAEMONSET: OLD_HASH})).acts == ()


@BEFORE_OR_AFTER
def test_nor_to_a_template_of_somebody_else(*, write_intended: bool):
    changed = "spec.env of NVIDIADriver h100 was changed by somebody else"
    snapshot = given_up(held(), object_version=OLD, template_change=changed, write_intended=write_intended)

    decision = decided(snapshot)

    assert (decision.acts, decision.moves) == ((), ())
    assert decision.waiting_for.startswith(f"{changed}. 1 node stays held")


def test_nor_where_somebody_else_wrote_the_version_that_the_plan_was_to_write():
    snapshot = given_up(held(), object_version="580.95.05", newest_hashes={DAEMONSET: NEW_HASH})

    assert decided(snapshot).acts == ()


def test_nor_to_a_template_that_a_person_took_for_the_plan():
    """They approved stages of it, and not that all of its nodes go at once."""
    never_changed = held(pod_hash=OLD_HASH, upgrade_state="upgrade-required")
    snapshot = given_up(
        never_changed, object_version=OLD, newest_hashes={DAEMONSET: "a"}, recorded_hashes={DAEMONSET: "a"}
    )

    decision = decided(snapshot)

    assert decision.acts == ()
    assert "A person decides" in decision.waiting_for


def test_what_was_released_before_it_came_and_has_not_begun_is_held_again():
    decision = decided(given_up(gone_over("a"), held("b"), gone_over("c", upgrade_state="cordon-required")))

    assert decision.acts == (PlaceHolds({"uid-of-a": "a"}),)


def test_it_ends_where_it_holds_none_of_them():
    decision = decided(given_up(gone_over("c", upgrade_state="cordon-required")))

    (move,) = decision.moves
    assert isinstance(move, MovePlan)
    assert move.reason.startswith(f"Given up. Somebody else set the version to {OTHER}.")


def test_with_the_old_version_back_it_lets_go_and_empties_nobody_for_nothing():
    """The operator asks a queued node no more whether it has to change (nvidia.md 2.8)."""
    queued, done = held("a"), held("b", upgrade_state="upgrade-done")
    back = {"object_version": OLD, "newest_hashes": {DAEMONSET: OLD_HASH}}

    first, then = (decided(given_up(*nodes, **back)) for nodes in ((queued, done), (done,)))

    assert first.acts == (ClearUpgradeState({"uid-of-a": "a"}),)
    assert then.acts == (LiftHolds({"uid-of-b": "b"}),)


def test_it_waits_for_the_controller_before_it_believes_that_nothing_changes():
    back = {"object_version": OLD, "newest_hashes": {DAEMONSET: OLD_HASH}, "unsettled": ("nvidia-driver",)}

    assert decided(given_up(held(upgrade_state="upgrade-done"), **back)).acts == ()


# By a person's word


def test_handed_over_nodes_go_in_waves_within_the_budget_of_the_plan():
    first = decided(handed_over(held("a"), held("b"), held("c"), most=2))
    then = decided(handed_over(gone_over("a"), gone_over("b"), held("c"), most=2))

    assert first.acts == (HandOver({"uid-of-a": "a", "uid-of-b": "b"}),)
    assert first.waiting_for == f"Releasing a, b to {OTHER}, as ada decided."
    assert then.acts == ()
    assert then.waiting_for == (
        f"1 node must still change to {OTHER}; the plan may have 2 unavailable: 2 nodes on the way."
    )


def test_and_within_the_slots_of_the_operator():
    decision = decided(handed_over(held("a"), held("b"), most=9, policy=a_policy(max_parallel=1)))

    assert decision.acts == (HandOver({"uid-of-a": "a"}),)


def test_and_within_the_budgets_of_failure_domains():
    rack = Domain(DomainKind.RACK, "r1")
    full = Budgets({rack: Allowance("rack r1", 1, {"x": "x (plan-9)"})}, {"a": (rack,)})

    decision = decided(handed_over(held("a"), budgets=full))

    assert decision.acts == ()
    assert "Rack r1 may have 1 node unavailable" in decision.waiting_for


@pytest.mark.parametrize(
    "given", [{"stopped_reason": STOP}, {"frozen_reason": FROZEN}, {"restrained": {"uid-of-a": FROZEN}}]
)
def test_and_not_under_the_stop_or_a_freeze(given: dict[str, Any]):
    decision = decided(handed_over(held("a"), **given))

    assert decision.acts == ()
    assert (STOP if "stopped_reason" in given else FROZEN) in decision.waiting_for


@pytest.mark.parametrize(
    "given", [{"stopped_reason": STOP}, {"frozen_reason": FROZEN}, {"restrained": {"uid-of-a": FROZEN}}]
)
def test_which_hold_again_what_was_released_and_has_not_begun(given: dict[str, Any]):
    """Z3."""
    begun = gone_over("b", upgrade_state="drain-required")

    assert decided(handed_over(gone_over("a"), begun, most=3, **given)).acts == (PlaceHolds({"uid-of-a": "a"}),)


def test_a_decision_stands_for_the_version_that_was_seen():
    fourth = handed_over(held("a"), gone_over("b"), object_version="595.0.1")

    decision = decided(fourth)

    assert decision.acts == (PlaceHolds({"uid-of-b": "b"}),)
    assert "Somebody else set the version to 595.0.1." in decision.waiting_for


def test_a_release_that_a_killed_worker_left_is_seen_through():
    unfinished = held("a", hold_wanted=False)

    assert decided(handed_over(unfinished, held("b"))).acts == (HandOver({"uid-of-a": "a"}),)


def test_a_node_that_failed_before_is_queued_again_and_goes_in_a_wave():
    """Z5: it keeps the operator's slot until then."""
    failed = held("a", upgrade_state="upgrade-failed", is_unschedulable=True)

    first, then = (decided(handed_over(node, held("b"))) for node in (failed, replace(failed, phase=held().phase)))

    assert first.acts == (RequeueFailed({"uid-of-a": "a"}),)
    assert then.acts == (HandOver({"uid-of-a": "a"}),)


def test_one_that_fails_on_its_way_is_a_persons():
    failed = gone_over("a", upgrade_state="upgrade-failed")

    decision = decided(handed_over(failed, held("b"), policy=a_policy(max_parallel=1)))

    assert decision.acts == ()
    assert "a failed, and keeps its slot: read the events there, then kubectl label node NODE" in decision.waiting_for


def test_with_every_node_there_it_ends_and_says_who_decided():
    (move,) = decided(handed_over(arrived())).moves

    assert move == MovePlan(
        PlanState.ABORTED, f"Given up. ada released the nodes to {OTHER}, which somebody else had requested."
    )


def test_it_does_not_end_while_one_is_on_its_way():
    decision = decided(handed_over(gone_over("a", upgrade_state="drain-required"), arrived()))

    assert (decision.moves, decision.waiting_for) == ((), f"1 node is on the way to {OTHER}.")


def test_a_handed_over_node_is_out_until_it_is_through():
    """Z15: its place in the ledger is not given back while it waits for the operator."""
    snapshot = handed_over(gone_over("a"), arrived("b"), disruptions=frozenset({"uid-of-a", "uid-of-b"}))

    assert decided(snapshot).given_back == {"uid-of-b"}


# The stop


def releases_under(snapshot: Snapshot) -> tuple[Any, ...]:
    return releases_outside_waves(decided(with_facts(snapshot, stopped_reason=STOP)))


@pytest.mark.parametrize(
    "snapshot",
    [
        given_up(held(upgrade_state="upgrade-done"), object_version=OLD, newest_hashes={DAEMONSET: OLD_HASH}),
        put_back(a_snapshot(nodes=(held(upgrade_state="upgrade-done"),))),
        replace(put_back(a_snapshot()), unmanaged_nodes=(held("left"),)),
        given_up(held(), object_trouble="NVIDIADriver h100 was deleted."),
    ],
    ids=["given up early", "put back", "left the object", "object gone"],
)
def test_nothing_is_released_under_the_stop_whoever_asks(snapshot: Snapshot):
    assert releases_outside_waves(decided(snapshot))
    assert releases_under(snapshot) == ()
    assert decided(with_facts(snapshot, stopped_reason=STOP)).waiting_for == STOP


@pytest.mark.parametrize("frozen", [{"frozen_reason": FROZEN}, {"restrained": {"uid-of-a": FROZEN}}])
def test_what_nothing_changes_is_released_under_a_freeze(frozen: dict[str, Any]):
    """Z32: a label that holds nothing back is no reason to keep a plan from its end."""
    back = {"object_version": OLD, "newest_hashes": {DAEMONSET: OLD_HASH}}

    assert decided(given_up(held(upgrade_state="upgrade-done"), **back, **frozen)).acts == (
        LiftHolds({"uid-of-a": "a"}),
    )
