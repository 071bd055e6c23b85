"""Which CUDA an image says that it was built with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu.images import cuda_of


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nvidia/cuda:12.8.1-base-ubuntu24.04", "12.8"),
        ("nvcr.io/nvidia/cuda:13.0.0-runtime-ubi9", "13.0"),
        ("pytorch/pytorch:2.7.0-cuda12.6-cudnn9-runtime", "12.6"),
        ("registry.local:5000/team/serve:v3-cu128", "12.8"),
        ("lmsysorg/sglang:v0.4.6-cu124", "12.4"),
        ("docker.io/rapidsai/base:25.04-cuda12.0-py3.12", "12.0"),
        ("REGISTRY.local/Torch:CUDA_11.8", "11.8"),
        ("vllm/vllm-openai:v0.6.3", ""),
        ("nvcr.io/nvidia/pytorch:25.01-py3", ""),
        ("team/barracuda:1.2", ""),
        ("team/cuda-tools:latest", ""),
        ("team/cu1284:1", ""),
        ("team/cuda:99.1", ""),
        ("team/app@sha256:cu128aaaa", ""),
        ("", ""),
    ],
)
def test_an_image_says_its_cuda_by_its_name_or_not_at_all(image, expected):
    assert cuda_of(image) == expected


def test_what_the_pod_requires_counts_before_the_name():
    required = "cuda>=12.8 brand=tesla,driver>=470,driver<471 brand=tesla,driver>=535,driver<536"

    assert cuda_of("nvidia/cuda:11.8.0-base", required) == "12.8"
    assert cuda_of("nvidia/cuda:11.8.0-base", "driver>=470") == "11.8"


@given(st.text(max_size=600), st.text(max_size=600))
def test_whatever_it_is_called_it_is_read(image, required):
    said = cuda_of(image, required)

    assert said == "" or 9 <= int(said.partition(".")[0]) < 30


@given(st.integers(9, 29), st.integers(0, 9))
def test_both_habits_of_writing_it_say_the_same(major, minor):
    written = [f"a/cuda:{major}.{minor}.1-base", f"a/b:cuda{major}.{minor}", f"a/b:1-cuda-{major}.{minor}-x"]
    short = [f"a/b:1-cu{major}{minor}"] if major > 9 else []

    assert {cuda_of(image) for image in written + short} == {f"{major}.{minor}"}
