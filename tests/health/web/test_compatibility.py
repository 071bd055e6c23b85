"""What fits together, on the page of a node."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark
from health.web.compatibility import source_of
from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


def a_node(**given):
    cluster = make.a_cluster(server_version="v1.36.4")
    make.a_driver_object(cluster, "cluster-policy", kind="ClusterPolicy", operator_version="v26.7.0")
    row = {
        "os_image": "Ubuntu 24.04.2 LTS",
        "container_runtime": "containerd://2.3.1",
        "driver_version": "595.91.07",
        "gpu_vendor": "nvidia",
    }
    return make.a_node(cluster, **row | given)


def test_a_node_says_what_is_known_to_fail_on_it(viewer):
    node = a_node(gpu_product="NVIDIA-GH200-480GB", mig_strategy="single")
    make.a_node(node.cluster, gpu_vendor="nvidia", driver_version="595.91.07")

    seen = page(viewer, f"/nodes/{node.pk}")

    assert "known to fail CDMM with MIG on Grace" in seen.text
    assert "Turn MIG off on these nodes." in seen.text
    assert f"/clusters/{node.cluster_id}#compatibility" in seen.links


def test_what_is_so_on_every_node_stands_on_the_clusters_page_only(viewer):
    node = a_node(gpu_product="NVIDIA-GH200-480GB", mig_strategy="single")

    seen = page(viewer, f"/nodes/{node.pk}")
    of_cluster = page(viewer, f"/clusters/{node.cluster_id}")

    assert "CDMM with MIG on Grace" in of_cluster.text
    assert "CDMM with MIG on Grace" not in seen.text
    assert (
        "No deviations on this node. 1 answer that most GPU nodes of the cluster share is not “supported”" in seen.text
    )


def test_a_node_that_is_all_right_says_so(viewer):
    assert (
        "All compared versions are validated by NVIDIA and still receive fixes."
        in page(viewer, f"/nodes/{a_node().pk}").text
    )


def test_what_fits_together_in_a_cluster_that_is_not_seen_is_not_green(viewer):
    node = a_node()
    Bookmark.objects.update(last_seen_at=NOON - timedelta(minutes=3))

    for place in (f"/parts/nodes/{node.pk}/compatibility", f"/parts/clusters/{node.cluster_id}/compatibility"):
        html = viewer.get(place).content.decode()
        assert "were validated by NVIDIA, as last seen." in html, place
        assert "is-ok" not in html.partition("<details")[0], place


@pytest.mark.parametrize("given", [{"is_gpu_node": False}, {"gpu_vendor": "amd"}])
def test_a_node_without_gpus_of_nvidia_has_no_such_card(viewer, given):
    assert "Compatibility" not in page(viewer, f"/nodes/{a_node(**given).pk}").text


def test_a_source_in_a_repository_can_be_opened():
    href, short = source_of("NVIDIA/gpu-operator:deployments/gpu-operator/values.yaml@v26.7.0")

    assert href == "https://github.com/NVIDIA/gpu-operator/blob/v26.7.0/deployments/gpu-operator/values.yaml"
    assert short == "values.yaml"
    assert source_of("https://github.com/NVIDIA/gpu-operator/issues/1361")[1] == "gpu-operator #1361"
    assert source_of("https://docs.nvidia.com/x/y.html") == ("https://docs.nvidia.com/x/y.html", "docs.nvidia.com")
