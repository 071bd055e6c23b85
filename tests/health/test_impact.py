import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.impact import NAMED, AllocatedPod, impact_of

PODS = st.lists(
    st.builds(
        AllocatedPod,
        namespace=st.sampled_from(("a", "b")),
        name=st.text("xyz", min_size=1, max_size=4),
        owner=st.sampled_from(("", "Job/train")),
        gpus=st.integers(0, 8),
        boards=st.frozensets(st.integers(0, 3), max_size=2),
        has_unplaced=st.booleans(),
    ),
    max_size=9,
)


@given(pods=PODS, gpu=st.none() | st.integers(0, 3))
def test_it_counts_pods_that_are_there_and_names_the_first(pods, gpu):
    found = impact_of(pods, gpu=gpu)

    assert found.pods <= len(pods)
    assert len(found.names) == min(found.pods, NAMED)
    assert found.jobs <= found.pods
    assert found.sentence.endswith(".")
    if gpu is None:
        assert (found.pods, found.gpus) == (len(pods), sum(pod.gpus for pod in pods))
    elif found.is_one_of:
        assert not any(gpu in pod.boards for pod in pods)
    assert found.pods + found.perhaps <= len(pods)
    assert not (found.perhaps and found.is_one_of)


def a_pod(name="p", gpus=1, **given):
    return AllocatedPod("team-a", name, gpus=gpus, **given)


@pytest.mark.parametrize(
    ("pods", "gpu", "says"),
    [
        ([], None, "No pod has GPUs there."),
        ([a_pod(gpus=8)], None, "1 pod in 1 namespace has 8 GPUs there."),
        (
            [a_pod("a", owner="Job/x"), a_pod("b", owner="Job/x")],
            None,
            "2 pods of 1 job in 1 namespace have 2 GPUs there.",
        ),
        ([a_pod(gpus=0)], None, "1 pod in 1 namespace has slices, shares or GPUs by claims there."),
        (
            [a_pod(gpus=2), a_pod("q", gpus=0)],
            None,
            "2 pods in 1 namespace have 2 GPUs and slices, shares or GPUs by claims there.",
        ),
        ([a_pod(boards=frozenset({3}))], 3, "1 pod in 1 namespace has this GPU."),
        ([a_pod(boards=frozenset({3}))], 4, "No pod has this GPU."),
        (
            [a_pod(gpus=8, boards=frozenset(range(7)), has_unplaced=True), a_pod("q", boards=frozenset({8}))],
            7,
            "Perhaps 1 pod in 1 namespace has this GPU. No source names the GPUs of this pod.",
        ),
        (
            [a_pod("one", gpus=0, boards=frozenset({3})), a_pod("q", gpus=0)],
            3,
            "1 pod in 1 namespace has this GPU, and perhaps 1 other pod of its node: it is unknown which GPU it has.",
        ),
        (
            [a_pod("one", gpus=0, boards=frozenset({3})), *(a_pod(name, gpus=0) for name in "abc")],
            3,
            (
                "1 pod in 1 namespace has this GPU, and perhaps some of 3 other pods of its node: "
                "it is unknown which GPUs they have."
            ),
        ),
        (
            [a_pod(), a_pod("q")],
            4,
            "Perhaps one of 2 pods in 1 namespace has this GPU. No source names the GPUs of these pods.",
        ),
    ],
)
def test_it_says_whom_it_hits(pods, gpu, says):
    assert impact_of(pods, gpu=gpu).sentence == says


def test_what_nobody_read_is_not_nobody():
    assert impact_of([], is_known=False).sentence == "The pods with GPUs there are unknown: pods were not read."


def test_who_has_a_whole_gpu_has_it_alone():
    assert impact_of([a_pod("one", boards=frozenset({3})), a_pod("q", gpus=0)], gpu=3).perhaps == 0


def test_who_is_said_to_share_another_gpu_does_not_share_this_one():
    sharing = [a_pod("one", gpus=0, boards=frozenset({3})), a_pod("q", gpus=0, boards=frozenset({2}))]

    assert impact_of(sharing, gpu=3).perhaps == 0


@pytest.mark.parametrize(("others", "says"), [(1, "1 pod and perhaps another"), (2, "1 pod and perhaps others")])
def test_a_row_says_that_others_may_share_it(others, says):
    pods = [a_pod("one", gpus=0, boards=frozenset({3})), *(a_pod(f"{each}", gpus=0) for each in range(others))]

    assert impact_of(pods, gpu=3).short == says
