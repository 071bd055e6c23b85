"""A pod that no node's labels fit waits for no room: it does not come once others end."""

import pytest

from health.stack.causes import FreeRoom, Weight, why_waits
from health.stack.causes.predicates import fits_no_node
from tests.health.stack.signs import a_pod, an_event, signs

FULL = FreeRoom(noun="GPU", asks=1, free=0, most=0, node="", largest=8)
SELECTOR = "67 node(s) didn't match Pod's node affinity/selector"
OTHERS_TAINTED = (
    f"3 node(s) had untolerated taint {{node-role.kubernetes.io/control-plane: }}, {SELECTOR.replace('67', '64')}"
)
ONE_AWAY = f"{SELECTOR.replace('67', '66')}, 1 node(s) had untolerated taint {{node.kubernetes.io/not-ready: }}"
TAIL = " preemption: 0/67 nodes are available: 67 Preemption is not helpful for scheduling."


def waiting(reasons: str, *events: object, room: FreeRoom | None = FULL):
    pod = a_pod(
        phase="Pending", reason="Unschedulable", message=f"0/67 nodes are available: {reasons}.{TAIL}", events=events
    )
    return why_waits(signs("", pod, node="", is_placed=False, room=room))


@pytest.mark.parametrize(
    "reasons",
    [SELECTOR, OTHERS_TAINTED],
)
@pytest.mark.parametrize("room", [FULL, None])
def test_what_no_nodes_labels_fit_is_wrong_and_waits_for_nobody(reasons: str, room: FreeRoom | None):
    cause = waiting(reasons, room=room)

    assert (cause.key, cause.weight) == ("matches_no_node", Weight.WRONG)
    assert "No node matches" in cause.sentence
    assert "once others end" not in cause.action
    assert reasons in cause.quote


@pytest.mark.parametrize(
    "reasons",
    [
        "35 node(s) didn't match Pod's node affinity/selector, 32 Insufficient nvidia.com/gpu",
        "66 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable",
        ONE_AWAY,
    ],
)
def test_a_node_that_fits_and_is_taken_or_away_is_waited_for(reasons: str):
    assert waiting(reasons).key == "no_room"


def test_nodes_that_an_autoscaler_adds_are_waited_for():
    scaling = an_event("pod triggered scale-up: [{gpu-h200 0->1 (max: 4)}]", "TriggeredScaleUp")

    assert waiting(SELECTOR, scaling).weight is Weight.WAITING


@pytest.mark.parametrize(
    ("reason", "named"),
    [
        ("1 Insufficient cpu", "too little cpu"),
        ("1 Too many pods", "too many pods"),
        ("1 node(s) had untolerated taint {a: b}", "the taint a: b"),
        ("1 node(s) didn't match Pod's node affinity/selector", "node selector or affinity"),
        ("1 node(s) didn't match node selector", "node selector or affinity"),
        ("1 Insufficient nvidia.com/gpu", "too little nvidia.com/gpu"),
        ("1 node(s) didn't match PersistentVolume's node affinity", "a volume"),
        ("1 node(s) had volume node affinity conflict", "a volume"),
        ("1 node(s) exceed max volume count", "a volume"),
        ("1 node(s) did not have enough available disk", "a volume"),
        ("1 node(s) were unschedulable", "cordoned nodes"),
        ("1 node(s) didn't match pod topology spread constraints", "the placement of its other pods"),
        ("1 node(s) didn't match pod affinity rules", "the placement of its other pods"),
        ("1 node(s) didn't match pod anti-affinity rules", "the placement of its other pods"),
        ("1 node(s) didn't satisfy existing pods anti-affinity rules", "the placement of its other pods"),
        ("1 node(s) didn't have free ports for the requested pod ports", "a port in use"),
    ],
)
def test_each_reason_of_the_scheduler_is_named(reason: str, named: str):
    pod = a_pod(phase="Pending", message=f"0/1 nodes are available: {reason}.")
    found = fits_no_node(signs("", pod, node="", is_placed=False))

    assert found.facts == {"scheduler": f"The scheduler names {named}."}
    assert found.steps
