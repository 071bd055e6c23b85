"""Quarantines whose cordon somebody else removes, and that every path out leaves the node as it was."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edges.transition_errors import LostRace
from fleet.models import Node
from gpu.labels import AUTOSCALER_LEAVE, EXCLUDED_BY, KARPENTER_LEAVE, PUT_BACK, UPGRADE_STATE
from operations import commands, quarantine_round
from operations.findings import REMOVED
from operations.models import Operation, Quarantine
from operations.quarantine_round import follow_quarantines
from people.models import AuditEntry
from simulator.kinds import CONFIG_MAP, NODE
from tests import make
from tests.operations.test_rounds import begin, end_pods, is_cordoned, node, owner, rounds, taken
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db


def observed(ground: Ground) -> None:
    Node.objects.filter(cluster=ground.cluster, name=CANARY).update(is_unschedulable=is_cordoned(ground))


def uncordon(ground: Ground, *, by_driver: bool = False) -> None:
    """Uncordons the node as kubectl or the driver manager does, and lets a round follow."""
    ground.store.patch(NODE, CANARY, {"spec": {"unschedulable": None}}, how="merge")
    if by_driver:
        ground.label(CANARY, **{UPGRADE_STATE: "uncordon-required"})
    observed(ground)
    follow_quarantines(clock=ground.clock)
    if by_driver:
        ground.label(CANARY, **{UPGRADE_STATE: "upgrade-done"})
    observed(ground)


def quarantined(ground: Ground) -> Operation:
    operation = rounds(ground, begin(ground, "quarantine", CANARY))
    observed(ground)
    return operation


def found(ground: Ground) -> list[str]:
    return [problem.title for _, problem in REMOVED.say(ground.cluster, now=ground.clock())]


def test_a_cordon_that_the_driver_manager_removed_is_written_again(ground: Ground):
    """Z7."""
    operation = quarantined(ground)
    uncordon(ground, by_driver=True)

    assert (is_cordoned(ground), owner(ground), found(ground)) == (True, operation.mark, [])
    assert AuditEntry.objects.filter(subject=operation.mark, verb="operation.cordon-again").count() == 1


def test_a_driver_pod_that_started_since_is_a_sign_of_it_too(ground: Ground):
    quarantined(ground)
    ground.clock.move(minutes=1)
    row = Node.objects.get(cluster=ground.cluster, name=CANARY)
    make.a_pod(row, "driver-2", operand="driver", gpus=0, created_at=ground.clock())
    uncordon(ground)

    assert is_cordoned(ground)


def test_a_cordon_that_somebody_removed_is_a_finding_with_two_ways_out(ground: Ground):
    """lifecycle R40: people are asked."""
    quarantined(ground)
    uncordon(ground)
    assert not is_cordoned(ground)
    assert found(ground) == [f"Somebody uncordoned the quarantined node {CANARY}"]

    rounds(ground, begin(ground, "quarantine", CANARY))
    observed(ground)
    assert (is_cordoned(ground), found(ground)) == (True, [])
    uncordon(ground)
    accepted = rounds(ground, begin(ground, "accept-uncordon", CANARY))

    assert node(accepted).reason == "Somebody else uncordoned the node, and it stays in service. No mark is left."
    assert (is_cordoned(ground), owner(ground), found(ground), taken()) == (False, None, [], [])
    assert not Quarantine.objects.in_force().exists()


def test_an_accepted_uncordon_releases_no_cordoned_node(ground: Ground):
    """lifecycle R39: it is no way around a validation."""
    quarantined(ground)
    accepted = rounds(ground, begin(ground, "accept-uncordon", CANARY))

    assert node(accepted).reason == "The node is cordoned again. Release it, or leave it in quarantine."
    assert (is_cordoned(ground), Quarantine.objects.in_force().count()) == (True, 1)


def test_a_cordon_is_not_written_again_while_a_release_runs(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    quarantined(ground)
    lost: list[str] = []

    def released_meanwhile(*_: Any, guard: Any, **__: Any) -> None:
        begin(ground, "release", CANARY).nodes.update(state="running")
        try:
            guard()
        except LostRace as race:
            lost.append(str(race))
            raise

    monkeypatch.setattr(quarantine_round, "cordon", released_meanwhile)
    uncordon(ground, by_driver=True)

    assert (lost, is_cordoned(ground)) == (["The quarantine is being ended."], False)


@pytest.mark.parametrize("karpenter", [True, False])
def test_an_autoscaler_leaves_a_quarantined_node_alone(ground: Ground, *, karpenter: bool):
    """lifecycle R19: empty nodes are what it removes."""
    if karpenter:
        ground.label(CANARY, **{"karpenter.sh/nodepool": "gpu"})
    else:
        ground.store.seed(CONFIG_MAP, {"metadata": {"name": "cluster-autoscaler-status"}}, "kube-system")
    quarantined(ground)
    key = KARPENTER_LEAVE if karpenter else AUTOSCALER_LEAVE
    assert ground.node(CANARY)["metadata"]["annotations"][key] == "true"
    rounds(ground, begin(ground, "release", CANARY))

    left = ground.node(CANARY)["metadata"].get("annotations", {})
    assert not {key, EXCLUDED_BY, PUT_BACK} & set(left)


EVENTS = ("driver uncordons", "somebody uncordons", "quarantine", "drain", "cancel")
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=12, suppress_health_check=SLOW, deadline=None)
@given(events=st.lists(st.sampled_from(EVENTS), max_size=4), leave=st.sampled_from([None, "false", "true"]))
def test_the_node_is_as_before_on_every_path_out(ground: Ground, events: list[str], leave: str | None):
    """lifecycle R4: every mark of ours is gone, and every value of others is there."""
    ground.store.patch(NODE, CANARY, {"metadata": {"annotations": {KARPENTER_LEAVE: leave}}}, how="merge")
    ground.label(CANARY, **{"karpenter.sh/nodepool": "gpu", UPGRADE_STATE: "upgrade-done"})
    before = ground.node(CANARY)
    quarantined(ground)
    for event in events:
        if "uncordons" in event:
            uncordon(ground, by_driver=event == "driver uncordons")
        elif event == "cancel":
            cancel_all(ground)
        else:
            given_up = {"unmanaged": True, "empty_dir": True}
            operation = rounds(ground, begin(ground, event, CANARY, options=given_up))
            end_pods(ground)
            rounds(ground, operation, 3)
        observed(ground)
    cancel_all(ground)
    rounds(ground, begin(ground, "release" if is_cordoned(ground) else "accept-uncordon", CANARY))

    after = ground.node(CANARY)
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert (after["metadata"].get("annotations") or {}) == (before["metadata"].get("annotations") or {})
    assert not Quarantine.objects.in_force().exists()
    assert taken() == []


def cancel_all(ground: Ground) -> None:
    for operation in Operation.objects.in_progress():
        commands.cancel(operation, actor="ada", reason="Enough.", now=ground.clock())
