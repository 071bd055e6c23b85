"""Hazard Z1: a version is one field for all nodes, so every one of them is held before it is written."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts.components.driver import NO_AUTO_UPGRADE
from rollouts.engine.decide import decide
from rollouts.engine.decide.acts import MovePlan, PlaceHolds, ReleaseUnmanagedNodes, WriteVersion
from rollouts.engine.snapshot import NodeSnapshot, Snapshot
from rollouts.lifecycle import PlanState
from tests.make import NOON
from tests.rollouts.make import NEW, OLD, a_node_snapshot, a_policy, a_snapshot, not_yet_written, with_facts


def holding(*nodes: NodeSnapshot, **given) -> Snapshot:
    return not_yet_written(a_snapshot(nodes=nodes), **given)


def settled(name: str, **given) -> NodeSnapshot:
    return a_node_snapshot(name, upgrade_state="upgrade-done", **given)


def unheld(name: str, **given) -> NodeSnapshot:
    return settled(name, has_label=False, label_is_ours=False, **given)


def test_holds_every_node_first():
    """Z1: target or not."""
    decision = decide(holding(settled("a"), unheld("b"), unheld("c", hold_wanted=None)), now=NOON)

    assert decision.acts == (PlaceHolds({"uid-of-b": "b", "uid-of-c": "c"}),)
    assert decision.waiting_for.startswith("Holding every node of the driver object before ")


def test_writes_nothing_while_the_operator_is_seen_to_be_down():
    """Z4: the fleet would be armed, and nobody would change any of it."""
    decision = decide(holding(settled("a"), operator_down="The GPU operator does not run."), now=NOON)

    assert decision.acts == ()
    assert decision.waiting_for.startswith("The GPU operator does not run. The plan waits until it runs")


def test_writes_the_version_once_every_node_is_held():
    """Z1."""
    decision = decide(holding(settled("a"), settled("b")), now=NOON)

    assert decision.acts == (WriteVersion(OLD, NEW),)


def test_lets_go_of_nodes_that_left_the_object_before_it_writes():
    """A hold that is wanted of a node outside the object is in the way of the version, and nobody else takes it off."""
    snapshot = replace(holding(settled("a")), unmanaged_nodes=(unheld("left"),))

    decision = decide(snapshot, now=NOON)

    assert decision.acts == (ReleaseUnmanagedNodes({"uid-of-left": "left"}),)


nodes = st.builds(
    lambda name, **given: a_node_snapshot(name, **given),
    name=st.sampled_from("abcdef"),
    has_label=st.booleans(),
    label_is_ours=st.booleans(),
    upgrade_state=st.sampled_from(["", "upgrade-done", "upgrade-required", "drain-required", "upgrade-failed"]),
    hold_wanted=st.sampled_from([None, True, False]),
    hold_is_foreign=st.booleans(),
    is_ready=st.sampled_from([None, True, False]),
    is_unschedulable=st.booleans(),
    pod_hash=st.sampled_from(["", "hash-old", "hash-new"]),
)


@settings(max_examples=150)
@given(st.lists(nodes, max_size=4, unique_by=lambda node: node.uid))
def test_never_writes_while_any_node_is_not_held_or_still_on_its_way(found: list[NodeSnapshot]):
    """Z1, for every mixture of nodes."""
    decision = decide(holding(*found), now=NOON)

    if any(isinstance(act, WriteVersion) for act in decision.acts):
        assert all(node.is_held and not node.has_begun for node in found)


def test_a_label_without_our_name_beside_it_is_made_ours():
    decision = decide(holding(settled("a", label_is_ours=False)), now=NOON)

    assert decision.acts == (PlaceHolds({"uid-of-a": "a"}),)


def test_a_label_that_somebody_else_wants_holds_as_well():
    decision = decide(holding(settled("a", label_is_ours=False, hold_is_foreign=True)), now=NOON)

    assert decision.acts == (WriteVersion(OLD, NEW),)


def test_waits_for_nodes_that_are_on_their_way_from_an_earlier_change():
    decision = decide(holding(settled("a"), a_node_snapshot("b", upgrade_state="drain-required")), now=NOON)

    assert not decision.acts
    assert "such as b" in decision.waiting_for


def test_waits_for_the_daemonset_controller():
    decision = decide(holding(settled("a"), unsettled=("nvidia-driver",)), now=NOON)

    assert not decision.acts


@pytest.mark.parametrize("version", ["999.99.99", "", NEW])
def test_a_version_that_somebody_else_wrote_halts(version: str):
    """Z9: the holds stay."""
    decision = decide(holding(settled("a"), object_version=version), now=NOON)

    assert [move.to for move in decision.moves if isinstance(move, MovePlan)] == [PlanState.HALTED]
    assert not decision.acts


def test_our_own_write_is_recognised_after_a_crash():
    snapshot = holding(settled("a"), object_version=NEW, write_intended=True)

    decision = decide(snapshot, now=NOON)

    assert [move.to for move in decision.moves] == [PlanState.PROMOTING]


def test_an_intent_that_was_not_carried_out_is_carried_out():
    decision = decide(holding(settled("a"), write_intended=True), now=NOON)

    assert decision.acts == (WriteVersion(OLD, NEW),)


@pytest.mark.parametrize("blocked", ["stopped_reason", "paused_reason", "stale_reason"])
def test_neither_holds_nor_writes_while_something_says_stop(blocked: str):
    """Z33: the switch in the cluster stops everything."""
    for node in (settled("a"), unheld("a")):
        decision = decide(with_facts(holding(node), **{blocked: "Because."}), now=NOON)

        assert not decision.acts
        assert decision.waiting_for == "Because."


def test_nothing_is_written_while_the_upgrade_controller_is_off():
    """Z2."""
    decision = decide(holding(settled("a"), policy=a_policy(off=NO_AUTO_UPGRADE)), now=NOON)

    assert not decision.acts
    assert "autoUpgrade" in decision.waiting_for


def test_a_node_that_another_plan_is_changing_is_waited_for():
    decision = decide(holding(settled("a"), unheld("b", busy_with="plan-7")), now=NOON)

    assert not decision.acts
    assert decision.waiting_for == "plan-7 is changing b. The plan waits, because a node has only one change at a time."
