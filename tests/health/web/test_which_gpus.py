"""How many GPUs a node misses is the fleet's to say, and which a finding's: its page says both in one sentence."""

import pytest

from tests import make
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
UNKNOWN = "It is unknown which of these GPUs: no source names it."


@pytest.fixture
def node():
    return make.a_node(make.a_cluster(), "gpu-1", gpu_allocatable=7)


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


def test_says_that_nobody_knows_only_where_no_finding_names_one(viewer, node):
    before = page(viewer, f"/nodes/{node.pk}").text
    make.a_finding(node.cluster, "GPU 3 of gpu-1", node=node, rule="gpu-silent")

    after = page(viewer, f"/nodes/{node.pk}").text

    assert UNKNOWN in before
    assert "1 GPU missing: seen before, not allocatable now. Findings name GPU 3 (GPU is silent)." in after
    assert "It is unknown which of these GPUs: no source names it" not in after
    assert "It is unknown which of these GPUs" not in after


def test_names_each_gpu_once_with_all_that_is_wrong(viewer, node):
    for subject, rule in [
        ("GPU 5 of gpu-1", "gpu-xid"),
        ("GPU 3 of gpu-1", "gpu-silent"),
        ("GPU 3 of gpu-1", "gpu-xid"),
    ]:
        make.a_finding(node.cluster, subject, node=node, rule=rule)

    said = page(viewer, f"/parts/nodes/{node.pk}/which").text

    assert said.startswith("Findings name GPU 3 (GPU is silent, ")
    assert said.count("GPU 3") == said.count("GPU 5") == 1


def test_what_is_wrong_with_a_gpu_and_takes_none_away_explains_nothing(viewer, node):
    make.a_finding(node.cluster, "GPU 3 of gpu-1", node=node, rule="gpu-hot")

    assert page(viewer, f"/parts/nodes/{node.pk}/which").text == UNKNOWN


def test_a_stranger_is_told_nothing_of_it(node):
    page(visiting(make.a_user("eve")), f"/parts/nodes/{node.pk}/which", status=404)
