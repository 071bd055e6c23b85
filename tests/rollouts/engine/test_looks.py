"""What gates see of changed nodes is recorded when it changes, and deleted after its time."""

from datetime import timedelta

import pytest

from fleet.models import Node
from rollouts.engine.looks import NODE_LOOKS, STAGE_LOOKS, read_seen, tidy
from rollouts.lifecycle import TargetState
from rollouts.models import GateLook
from rollouts.models.gate_look import KEPT, MOST
from tests.make import a_pod
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.rounds


def changed(ground: Ground) -> None:
    ground.armed(gates={"driver_version": {}, "failure_budget": {}, "findings": {}, "soak": {}})
    ground.round()
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(4)
    assert ground.target().state == TargetState.CHANGED


def looks(ground: Ground) -> list[GateLook]:
    return list(GateLook.objects.filter(stage=ground.stage(), node_uid=ground.target().node_uid))


def test_a_round_records_a_node_only_when_something_changed_there(ground: Ground):
    changed(ground)
    before = len(looks(ground))
    assert before
    ground.rounds(2)
    assert len(looks(ground)) == before

    pod = a_pod(Node.objects.get(name=CANARY), gpus=1, is_ready=False)
    ground.rounds(2)

    *_, last = looks(ground)
    assert (len(looks(ground)), last.number) == (before + 1, before + 1)
    (seen,) = [one for one in read_seen(last, NODE_LOOKS).workloads if one.name == str(pod)]
    assert not seen.is_ready
    of_stage = read_seen(GateLook.objects.filter(stage=ground.stage(), node_uid="").last(), STAGE_LOOKS)
    assert of_stage.has_health


@pytest.mark.nightly
def test_a_node_has_so_many_looks_at_most(ground: Ground):
    changed(ground)
    before = len(looks(ground))
    GateLook.objects.update(number=MOST - 1)
    for number in range(3):
        a_pod(Node.objects.get(name=CANARY), f"late-{number}", gpus=1)
        ground.round()

    *_, last = looks(ground)
    assert (len(looks(ground)), last.number) == (before + 1, MOST)
    assert read_seen(last, NODE_LOOKS) is None


@pytest.mark.nightly
def test_old_looks_are_deleted(ground: Ground):
    changed(ground)

    assert tidy(now=ground.clock()) == 0
    assert tidy(now=ground.clock() + KEPT + timedelta(days=1)) > 0
    assert not GateLook.objects.exists()
