"""What pods take of a node: GPUs, slices and shares are three sums."""

import pytest

from fleet.models import Node
from fleet.observer.mirror.rows.text import INTEGER_MOST
from tests.fleet.documents import a_node_seen, a_pod_seen, mig_mixed, time_sliced

pytestmark = pytest.mark.sqlite

SLICE = "nvidia.com/mig-1g.10gb"


def asking(name: str, resources: dict[str, int], **more):
    containers = [{"name": "main", "resources": {"limits": {key: str(each) for key, each in resources.items()}}}]
    return a_pod_seen(name, containers=containers, **more)


def taken() -> tuple[int, int, int, dict[str, int]]:
    row = Node.objects.get()
    return row.gpu_allocated, row.slices_allocated, row.shares_allocated, row.requested


def test_time_slices_are_no_gpus(mirror):
    mirror.list("nodes", [a_node_seen(gpus=32, labels=time_sliced(4))])

    mirror.list("pods", [a_pod_seen("a", gpus=1), a_pod_seen("b", gpus=1)])

    assert taken() == (0, 0, 2, {"nvidia.com/gpu": 2})


def test_a_node_that_begins_to_be_shared_is_counted_again(mirror):
    mirror.list("nodes", [a_node_seen(gpus=8)])
    mirror.list("pods", [a_pod_seen("a", gpus=1)])
    before = taken()

    mirror.see("nodes", a_node_seen(gpus=32, labels=time_sliced(4)))
    mirror.flush()

    assert (before, taken()) == ((1, 0, 0, {"nvidia.com/gpu": 1}), (0, 0, 1, {"nvidia.com/gpu": 1}))


def test_slices_and_whole_gpus_of_one_node_are_apart(mirror):
    mirror.list("nodes", [a_node_seen(resources={"nvidia.com/gpu": 4, SLICE: 28}, labels=mig_mixed({"1g.10gb": 28}))])

    mirror.list("pods", [asking("a", {"nvidia.com/gpu": 2}), asking("b", {SLICE: 3})])

    assert taken() == (2, 3, 0, {"nvidia.com/gpu": 2, SLICE: 3})


def test_other_vendors_gpus_are_gpus(mirror):
    mirror.list("nodes", [a_node_seen(resources={"amd.com/gpu": 8}, labels={})])

    mirror.list("pods", [asking("a", {"amd.com/gpu": 3, "cpu": 4})])

    assert taken() == (3, 0, 0, {"amd.com/gpu": 3})


@pytest.mark.parametrize("name", ["nvidia.com/gpu", SLICE, "nvidia.com/gpu.shared"])
def test_what_pods_ask_for_together_fits_its_column_however_much_each_asks_for(mirror, name):
    """Whoever may make pods may name a node in them: no scheduler ever saw whether that many are there."""
    mirror.list("nodes", [a_node_seen()])

    mirror.list("pods", [asking("a", {name: 2**40}), asking("b", {name: 2**40})])

    *counts, requested = taken()
    assert sorted(counts) == [0, 0, INTEGER_MOST]
    assert requested == {name: 2 * INTEGER_MOST}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_is_done_holds_nothing(mirror, phase):
    mirror.list("nodes", [a_node_seen()])
    mirror.list("pods", [a_pod_seen("a", gpus=2)])

    mirror.see("pods", a_pod_seen("a", gpus=2, phase=phase))
    mirror.flush()

    assert taken() == (0, 0, 0, {})
