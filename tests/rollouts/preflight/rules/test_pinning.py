"""Users of a GPU that the operator does not see (gpu-operator #2570)."""

import pytest

from rollouts.preflight.rules.pinned_drivers import pin_the_driver
from tests.rollouts.make import lines_of, steps_of
from tests.rollouts.preflight.make import a_pod, facts

NONE = {"resources": (), "is_tenant": False, "labels": {}}


def how(pod, **given) -> list[str]:
    return [line for check in pin_the_driver(facts(pod, **given)) for line in lines_of(check)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (NONE | {"runtime_class": "nvidia"}, "its runtimeClass is nvidia"),
        (NONE | {"runtime_class": "nvidia-cdi"}, "its runtimeClass is nvidia-cdi"),
        (NONE | {"visible_devices": "all"}, "NVIDIA_VISIBLE_DEVICES is all"),
        ({"resources": ("volcano.sh/vgpu-number",)}, "it requests volcano.sh/vgpu-number"),
        ({"resources": ()}, "its scheduler gave it a part of one"),
    ],
)
def test_a_user_without_a_request_that_the_operator_sees_is_named_with_how(given, expected):
    assert how(a_pod(**given)) == [f"team-a/model-0 on node-1: {expected}"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        NONE,
        NONE | {"runtime_class": "gvisor"},
        {"runtime_class": "nvidia", "visible_devices": "all"},
        NONE | {"is_operand": True, "runtime_class": "nvidia"},
    ],
)
def test_who_is_evicted_or_stopped_or_uses_none_pins_nothing(given):
    assert how(a_pod(**given)) == []


CLAIMS = {"resources": (), "claims_gpus": True}


@pytest.mark.parametrize(
    ("evicts", "expected"),
    [
        (True, []),
        (False, ["it claims them; operators before 26.7.0 do not evict such pods"]),
        (
            None,
            ["it claims them; only operators from 26.7.0 on evict such pods, and the operator's version is unknown"],
        ),
    ],
)
def test_claims_are_evicted_by_newer_operators_only(evicts, expected):
    said = how(a_pod(**CLAIMS), evicts_claims=evicts)

    assert said == [f"team-a/model-0 on node-1: {line}" for line in expected]


def test_it_is_said_in_one_sentence():
    (check,) = pin_the_driver(facts(*(a_pod(f"kube-system/m-{n}", **NONE, visible_devices="all") for n in range(2))))

    assert check.sentence == (
        "The operator does not evict 2 pods with GPUs. While such a pod runs, the old driver stays loaded."
    )
    assert "nvidia.com/gpu.deploy.client" in steps_of(check)
