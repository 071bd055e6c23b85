"""How many nodes may start (hazards Z3, Z6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.actors.gpu_operator import keys, slots
from simulator.actors.gpu_operator.policy import Policy
from simulator.actors.gpu_operator.snapshot import Seen, Snapshot, UnscheduledPods, take_snapshot
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.kinds import DAEMON_SET
from tests.simulator.actors.stage import NEW, a_fleet

READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def a_node(*, cordoned: bool = False, ready: bool = True) -> Seen:
    status = READY if ready else {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    node = {"metadata": {"name": "n"}, "spec": {"unschedulable": cordoned}, "status": status}
    return Seen(node, {"metadata": {"name": "p"}}, None, "")


def a_snapshot(**counts: int) -> Snapshot:
    return Snapshot({UpgradeState[state]: [a_node() for _ in range(count)] for state, count in counts.items()})


def test_failed_nodes_hold_their_slot():
    snapshot = a_snapshot(REQUIRED=5, FAILED=1)

    assert slots.available(snapshot, Policy(max_parallel=1, max_unavailable=None)) == 0


def test_waiting_and_settled_nodes_hold_none():
    snapshot = a_snapshot(REQUIRED=5, DONE=3, UNKNOWN=1)

    assert slots.available(snapshot, Policy(max_parallel=2, max_unavailable=None)) == 2


def test_zero_parallel_upgrades_means_no_limit():
    snapshot = a_snapshot(REQUIRED=7, DONE=3)

    assert slots.available(snapshot, Policy(max_parallel=0, max_unavailable=None)) == 7


@pytest.mark.parametrize("gone", [{"cordoned": True}, {"ready": False}], ids=["cordoned", "not ready"])
def test_nodes_that_are_away_for_any_reason_use_up_max_unavailable(gone):
    snapshot = Snapshot({UpgradeState.REQUIRED: [a_node() for _ in range(7)], UpgradeState.DONE: [a_node(**gone)]})

    assert slots.available(snapshot, Policy(max_parallel=5, max_unavailable=1)) == 0
    assert slots.available(snapshot, Policy(max_parallel=5, max_unavailable=3)) == 2


def test_nodes_about_to_be_cordoned_count_as_unavailable():
    snapshot = a_snapshot(REQUIRED=6, CORDON=2)

    assert slots.available(snapshot, Policy(max_parallel=8, max_unavailable=3)) == 1


def test_a_share_is_rounded_up():
    assert Policy(max_unavailable="25%").unavailable_limit(5) == 2


@given(
    counts=st.dictionaries(st.sampled_from([state.name for state in UpgradeState]), st.integers(0, 9)),
    parallel=st.integers(0, 6),
    limit=st.one_of(st.integers(1, 9), st.sampled_from(["1%", "25%", "100%"])),
)
def test_never_more_than_the_limit_of_unavailable_nodes(counts, parallel, limit):
    snapshot = a_snapshot(**counts)

    free = slots.available(snapshot, Policy(max_parallel=parallel, max_unavailable=limit))

    allowed = Policy(max_unavailable=limit).unavailable_limit(slots.total(snapshot))
    assert free <= max(0, allowed)


def test_skipped_nodes_consume_no_slot():
    stage = a_fleet(6, max_parallel=1)
    held, free = "gpu-h100-001", "gpu-h100-003"
    stage.skip(held)

    stage.driver("h100", version=NEW)
    stage.until(lambda: stage.state(free) == UpgradeState.DONE and free in stage.history)

    assert stage.state(held) == UpgradeState.REQUIRED


def test_one_driver_set_with_a_missing_pod_stops_every_pool():
    stage = a_fleet(2)
    sets, _, _ = stage.store.list(DAEMON_SET, label_selector=f"{keys.COMPONENT}={keys.DRIVER_COMPONENT}")
    owner = next(each for each in sets if "a100" in str(each["metadata"]["ownerReferences"]))
    world = stage.play.world
    counted = {**owner["status"], "desiredNumberScheduled": 2}

    world[DAEMON_SET].take(
        "MODIFIED", {**owner, "metadata": {**owner["metadata"], "resourceVersion": "999999"}, "status": counted}
    )

    with pytest.raises(UnscheduledPods, match="should not have Unscheduled pods"):
        take_snapshot(world)
