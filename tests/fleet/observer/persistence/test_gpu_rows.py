"""The GPU rows of a node follow its boards, and not what is offered of them."""

import pytest

from fleet.models import Gpu
from tests.fleet.documents import a_node_seen, time_sliced

pytestmark = pytest.mark.sqlite

GPU = "nvidia.com/gpu"


def test_gpus_that_turn_out_to_be_shares_have_no_rows(mirror):
    mirror.list("nodes", [a_node_seen(labels={}, resources={GPU: "32"})])
    assert Gpu.objects.count() == 32

    mirror.list("nodes", [a_node_seen(labels=time_sliced(4), resources={GPU: "32"})])

    assert Gpu.objects.count() == 8


def test_a_gpu_that_is_lost_keeps_its_row_while_it_is_shared(mirror):
    mirror.list("nodes", [a_node_seen(labels=time_sliced(4), resources={GPU: "32"})])

    mirror.list("nodes", [a_node_seen(labels=time_sliced(4) | {"nvidia.com/gpu.count": "7"}, resources={GPU: "28"})])

    assert Gpu.objects.count() == 8
