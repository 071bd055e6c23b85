"""Whom a finding hits, by the rows of its node."""

import pytest

from fleet.models import Bookmark, Gpu
from gpu.resources import Layout, Way
from health.inbox.queries import impacts_of
from tests.make import NOON, a_cluster, a_device_told, a_finding, a_node, a_pod, a_reading

pytestmark = pytest.mark.django_db
SERIAL = "SER3"


@pytest.fixture
def node():
    cluster = a_cluster()
    Bookmark.objects.filter(cluster=cluster).update(listed_at=NOON)
    return a_node(cluster, "gpu-001", gpus=2)


def impact_of(node, subject: str, **given):
    finding = a_finding(node.cluster, f"{subject} of gpu-001", node=node, **given)
    return impacts_of([finding], now=NOON)[finding.pk]


def test_a_gpu_without_a_number_is_known_by_its_uuid(node):
    Gpu.objects.filter(node=node, index=1).update(uuid=SERIAL)
    mine, other = a_pod(node, "mine"), a_pod(node, "other")
    a_reading(node, a_device_told(0, other), a_device_told(1, mine, uuid=SERIAL))

    impact = impact_of(node, f"GPU {SERIAL}", gpu_uuid=SERIAL)

    assert (impact.is_gpu, impact.names) == (True, ("team-a/mine",))


def test_nothing_is_said_of_a_whole_node_where_nothing_tells_which_gpu_it_is(node):
    a_pod(node, "one")

    for impact in (impact_of(node, f"GPU {SERIAL}", gpu_uuid=SERIAL), impact_of(node, "GPU x", rule="other")):
        assert impact.sentence == "Perhaps 1 pod in 1 namespace has this GPU. No source names the GPUs of this pod."


def test_a_gpu_that_only_who_holds_it_names_is_known_by_that(node):
    a_pod(node, "mine", devices={"nvidia.com/gpu": [SERIAL]})
    a_pod(node, "other", devices={"nvidia.com/gpu": ["SER4"]})

    assert impact_of(node, f"GPU {SERIAL}", gpu_uuid=SERIAL).names == ("team-a/mine",)


def test_who_holds_one_more_than_its_exporter_names_may_hold_the_one_that_fell_off(node):
    third = a_node(node.cluster, "gpu-003", gpus=3)
    both = a_pod(third, "both", gpus=2)
    a_reading(third, a_device_told(0, both))

    impact = impact_of(third, "GPU 1")

    assert impact.short == "perhaps 1 pod, 2 GPUs"


def test_who_shares_a_gpu_beside_the_one_that_its_exporter_names_may_be_hit(node):
    """Of several who share one an exporter names the last, unless it was told to name all."""
    layout = Layout({"nvidia.com/gpu": Way(sharing="time-slicing", replicas=2)})
    type(node).objects.update(layout=str(layout))
    named, *_ = (a_pod(node, name, gpus=1) for name in ("named", "second", "third"))
    a_reading(node, a_device_told(0, named))

    impact = impact_of(node, "GPU 0")

    assert impact.names == ("team-a/named",)
    assert (impact.pods, impact.perhaps, impact.is_one_of) == (1, 2, False)


def test_slices_that_are_named_as_gpus_are_parts_of_gpus(node):
    """MIG, strategy single: a slice is a nvidia.com/gpu."""
    type(node).objects.update(layout=str(Layout({"nvidia.com/gpu": Way("1g.10gb")})))
    a_pod(node, "one", gpus=7)

    assert impact_of(node, "node").sentence == "1 pod in 1 namespace has slices, shares or GPUs by claims there."


def test_the_node_itself_is_all_of_its_gpus(node):
    a_pod(node, "one", gpus=2)

    assert impact_of(node, "node").sentence == "1 pod in 1 namespace has 2 GPUs there."
