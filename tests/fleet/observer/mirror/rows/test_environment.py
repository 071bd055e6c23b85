"""What a pod's own spec says of the GPUs that its containers see."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.observer.mirror.rows.pod import pod_row
from kube.structs import PodSeen
from kube.structs.meta import Variable
from kube.structs.pod import Container
from tests.fleet.documents import a_pod_seen


def with_env(*containers: dict[str, str | None]) -> PodSeen:
    seen = a_pod_seen()
    made = [Container(env=[Variable(name, value) for name, value in env.items()]) for env in containers]
    return type(seen)(seen.metadata, type(seen.spec)(containers=made), seen.status)


@pytest.mark.parametrize("value", ["all", "0,1", "GPU-fef8089b"])
def test_a_container_that_is_let_see_gpus_is_found(value):
    assert pod_row(with_env({}, {"PATH": "/", "NVIDIA_VISIBLE_DEVICES": value}))["visible_devices"] == value


@pytest.mark.parametrize("value", ["", "void", "none", None])
def test_one_that_is_let_see_none_uses_none(value):
    assert pod_row(with_env({"NVIDIA_VISIBLE_DEVICES": value}))["visible_devices"] == ""


def test_the_first_that_says_something_counts():
    row = pod_row(with_env({"NVIDIA_VISIBLE_DEVICES": "void"}, {"NVIDIA_VISIBLE_DEVICES": "all"}))

    assert row["visible_devices"] == "all"


def test_the_cuda_that_it_requires_is_kept():
    assert pod_row(with_env({"NVIDIA_REQUIRE_CUDA": "cuda>=12.8 driver>=535"}))["required_cuda"] == (
        "cuda>=12.8 driver>=535"
    )


def test_a_pod_without_an_environment_says_nothing():
    row = pod_row(a_pod_seen())

    assert (row["visible_devices"], row["required_cuda"]) == ("", "")


@given(st.lists(st.dictionaries(st.text(max_size=5) | st.just("NVIDIA_VISIBLE_DEVICES"), st.none() | st.text())))
def test_whatever_stands_there_fits_its_column(containers):
    row = pod_row(with_env(*containers))

    assert len(row["visible_devices"]) <= 253
    assert "\x00" not in row["visible_devices"]
