"""The image that a starting pod waits for, from Events."""

from datetime import timedelta

import pytest

from capacity.pods.image_pulls import PendingPull, pending_pull_of
from fleet.models import ClusterEvent
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
IMAGE = "nvcr.io/nvidia/pytorch:25.10-py3"


@pytest.fixture
def node():
    return make.a_node(make.a_cluster("east"), "gpu-1")


def a_starting_pod(node, name: str, **given):
    return make.a_pod(node, name, phase="Pending", is_ready=False, ready_since=None, image=IMAGE, **given)


def told(pod, reason: str, message: str, *, ago: float) -> None:
    at = NOON - timedelta(minutes=ago)
    ClusterEvent.objects.create(
        cluster=pod.cluster, uid=f"{pod.name}-{reason}-{ago}", about_kind="Pod", about_name=pod.name,
        about_uid=pod.uid, reason=reason, message=message, last_at=at, changed_at=at,
    )  # fmt: skip


def pulled(pod, took: str, *, ago: float, size: str = "") -> None:
    told(pod, "Pulled", f'Successfully pulled image "{IMAGE}" in {took} ({took} including waiting){size}', ago=ago)


def test_a_pull_has_its_size_and_how_long_others_took(node):
    pod = a_starting_pod(node, "new", started_at=NOON - timedelta(minutes=9))
    beside = a_starting_pod(node, "beside", started_at=NOON)
    beside.image = "other:1"
    beside.save()
    told(pod, "Pulling", f'Pulling image "{IMAGE}"', ago=9)
    others = [make.a_pod(node, name) for name in ("a", "b", "c")]
    for other, took in zip(others, ("2m30.5s", "3m0s", "850ms"), strict=True):
        pulled(other, took, ago=30, size=". Image size: 21474836480 bytes.")

    found = pending_pull_of(pod)

    assert found is not None
    assert (found.image, found.size_bytes, found.others) == (IMAGE, 21474836480, 1)
    assert found.typical == timedelta(seconds=150.5)
    assert found.sentences(now=NOON)[0] == "Its size is 21 GB."
    assert "more than twice as long" in " ".join(found.sentences(now=NOON))
    assert (
        "3 other pulls in this cluster took"
        in page(visiting(make.a_user("bob", role="viewer")), f"/pods/{pod.pk}").text
    )
    answer = calling(make.a_user("eve", role="viewer")).get(f"/api/v1/pods/{pod.pk}").json()["image_pull"]
    assert (answer["typical_s"], answer["other_pulls"]) == (150.5, 3)


def test_an_image_that_nobody_else_pulled_has_no_invented_figures(node):
    pod = a_starting_pod(node, "new")
    told(pod, "Pulling", f'Pulling image "{IMAGE}"', ago=1)
    told(make.a_pod(node, "a"), "Pulled", f'Container image "{IMAGE}" already present on machine', ago=5)

    found = pending_pull_of(pod)

    assert found is not None
    assert (found.size_bytes, found.typical) == (None, None)
    assert found.sentences(now=NOON)[0] == "Its size is unknown here."


@pytest.mark.parametrize("end", ["Pulled", "BackOff", "Failed"])
def test_a_pull_that_ended_is_none_until_the_next_begins(node, end):
    pod = a_starting_pod(node, "new")
    told(pod, "Pulling", f'Pulling image "{IMAGE}"', ago=9)
    told(pod, end, f'Failed to pull image "{IMAGE}": not found', ago=8)

    assert pending_pull_of(pod) is None
    told(pod, "Pulling", f'Pulling image "{IMAGE}"', ago=1)
    assert pending_pull_of(pod) is not None
    assert pending_pull_of(make.a_pod(node, "running")) is None


def test_the_end_of_an_image_with_a_longer_name_is_not_the_end(node):
    pod = a_starting_pod(node, "new")
    told(pod, "Pulling", 'Pulling image "a:1"', ago=9)
    told(pod, "Pulled", 'Container image "a:1.1" already present on machine', ago=8)

    assert pending_pull_of(pod) is not None
    told(pod, "Failed", "Failed to pull a:1.", ago=7)
    assert pending_pull_of(pod) is None


@pytest.mark.parametrize(("size", "text"), [(123_456_789_012, "123 GB"), (2_500_000_000, "2.5 GB")])
def test_sizes_are_written_out_and_one_pull_makes_no_other_slow(size, text):
    pull = PendingPull("a:1", NOON - timedelta(hours=1), size, [timedelta(minutes=1)], 0)

    sentences = pull.sentences(now=NOON)

    assert sentences[0] == f"Its size is {text}."
    assert "twice" not in " ".join(sentences)
