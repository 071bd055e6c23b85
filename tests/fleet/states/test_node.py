import pytest

from fleet.states.node import TITLES, NodeState, node_state

WELL = {
    "is_ready": True,
    "is_unschedulable": False,
    "upgrade_state": "upgrade-done",
    "is_held": False,
    "gpus_missing": 0,
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, NodeState.READY),
        ({"is_held": True}, NodeState.HELD),
        ({"is_unschedulable": True, "is_held": True}, NodeState.CORDONED),
        ({"gpus_missing": 1, "is_unschedulable": True}, NodeState.GPUS_MISSING),
        ({"upgrade_state": "drain-required", "gpus_missing": 8}, NodeState.UPGRADING),
        ({"reconfiguring": "pending", "gpus_missing": 8, "is_unschedulable": True}, NodeState.RECONFIGURING),
        ({"reconfiguring": "pending", "is_ready": False}, NodeState.NOT_READY),
        ({"reconfiguring": "rebooting", "is_ready": None}, NodeState.RECONFIGURING),
        ({"reconfiguring": "pending", "upgrade_state": "drain-required"}, NodeState.UPGRADING),
        ({"upgrade_state": "upgrade-required", "is_held": True}, NodeState.HELD),
        ({"is_ready": False, "upgrade_state": "pod-restart-required"}, NodeState.NOT_READY),
        ({"is_ready": None}, NodeState.UNKNOWN),
        ({"upgrade_state": "upgrade-failed", "is_ready": False}, NodeState.UPGRADE_FAILED),
    ],
)
def test_the_worst_that_is_true_wins(given, expected):
    assert node_state(**WELL | given) == expected


def test_every_state_has_a_title():
    assert set(TITLES) == set(NodeState)
