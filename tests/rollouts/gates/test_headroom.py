from typing import Any

import pytest

from rollouts.gates.base import Answer, GateResult, NextWave, PodWants
from rollouts.gates.headroom import Headroom, without_room
from tests.make import NOON
from tests.rollouts.make import a_held_target, evidence, values_of

GPU, H100, A100 = "nvidia.com/gpu", "NVIDIA-H100", "NVIDIA-A100"


def wants(amount: int, name: str = "team-a/x", *, product: str = H100, resource: str = GPU) -> PodWants:
    return PodWants(name, product, {resource: amount})


def free(*amounts: int, product: str = H100, resource: str = GPU) -> dict[str, tuple[dict[str, int], ...]]:
    return {product: tuple({resource: amount} for amount in amounts)}


def evaluated(*pods: PodWants, has: Any = None, tolerate: int = 0, **given: Any) -> GateResult:
    row: dict[str, Any] = {"nodes": ("node-1",), "pods": pods, "free": has or {}}
    shown = evidence(a_held_target("node-1"), next_wave=NextWave(**row | given))
    return Headroom(tolerate=tolerate).evaluate(shown, now=NOON)


def test_passes_where_every_pod_fits_elsewhere():
    result = evaluated(wants(4), wants(2), has=free(4, 2))

    assert result.answer is Answer.PASS
    assert result.sentence == "2 GPU pods of the next wave fit elsewhere. Nodes of the wave: node-1."


def test_a_pod_that_asks_for_none_of_a_resource_fits_where_there_is_none_of_it():
    assert evaluated(wants(0), has={H100: ({},)}).answer is Answer.PASS


def test_of_a_wave_that_a_freeze_or_a_window_keeps_back_it_says_that():
    shown = evidence(a_held_target("node-1"), bound_reason="The fleet is frozen by ada: Quarter end.")

    result = Headroom().evaluate(shown, now=NOON)

    assert (result.answer, result.cause) == (Answer.WAIT, "bound")
    assert result.sentence == "No node can be released now. The fleet is frozen by ada: Quarter end."


def test_waits_with_the_deficit_in_numbers():
    result = evaluated(wants(4), wants(2), has=free(4, 1))

    assert (result.answer, result.nodes) == (Answer.WAIT, ("node-1",))
    assert (
        result.sentence
        == "1 of 2 GPU pods of the next wave fits on no other node. The pods would be pending after their eviction."
    )
    assert values_of(result) == {
        "Nodes of the wave": "node-1",
        "GPU pods": 2,
        "GPU pods without room": 1,
        "nvidia.com/gpu needed": 6,
        "nvidia.com/gpu free": 5,
        "Tolerated without room": 0,
    }


@pytest.mark.parametrize(("in_use", "shown"), [(0, None), (2, 2), (6, 6), (9, 6)])
def test_says_what_of_the_free_is_in_use_by_pods_that_anybody_may_displace(in_use: int, shown: int | None):
    result = evaluated(wants(4), has=free(4, 2), expendable={GPU: in_use})

    assert values_of(result).get(f"{GPU} in use by pods with a priority below -10") == shown


def test_what_is_free_in_pieces_is_no_room_for_a_large_pod():
    assert evaluated(wants(8), has=free(*[1] * 8)).answer is Answer.WAIT
    assert evaluated(*[wants(1)] * 8, has=free(*[1] * 8)).answer is Answer.PASS


@pytest.mark.parametrize(
    "has",
    [free(8, product=A100), free(8, resource="nvidia.com/mig-1g.10gb")],
    ids=["another product", "another resource"],
)
def test_room_of_another_kind_is_none(has):
    assert evaluated(wants(1), has=has).answer is Answer.WAIT


def test_the_largest_is_placed_first_and_where_the_least_is_left():
    wave = NextWave(("a",), (wants(1, "t/small"), wants(4, "t/large"), wants(3, "t/middle")), free(5, 3))

    assert without_room(wave) == []


@pytest.mark.parametrize(("tolerate", "answer"), [(1, Answer.WAIT), (2, Answer.PASS)])
def test_one_more_than_tolerated_waits(tolerate: int, answer: Answer):
    assert evaluated(wants(2), tolerate=tolerate).answer is answer


def test_devices_that_are_claimed_are_not_known_to_be_free():
    result = evaluated(claiming=1)

    assert (result.answer, result.is_final) == (Answer.WAIT, True)


def test_nodes_without_pods_go_and_so_does_nobody():
    assert evaluated().answer is Answer.PASS
    assert evaluated(nodes=()).answer is Answer.PASS


def test_who_goes_next_must_be_seen():
    unseen = Headroom().evaluate(evidence(a_held_target()), now=NOON)
    nobody = Headroom().evaluate(evidence(next_wave=NextWave((), (), {})), now=NOON)

    assert {unseen.answer, nobody.answer} == {Answer.WAIT}
