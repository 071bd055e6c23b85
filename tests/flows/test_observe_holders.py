"""Which pod holds which GPU where neither DRA nor a kubelet says it: as the exporter of the node does."""

import re

import pytest
from kubernetes import client

from demo.visitor import Visitor, wait_until
from tests.flows.cluster import Cluster
from tests.flows.proxy import Proxy
from tests.flows.recorded import RecordedStack
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.observe
ROUND_S = PATIENCE_S  # beat looks every 10 s whether a cluster's exporters are due, and they are every 30 s
LABELS = re.compile(r'(\w+)="([^"]*)"')


@pytest.fixture(autouse=True)
def _has_exporters(stack: RecordedStack, gpu_cluster: Cluster) -> None:
    """Actors give an API server of somebody else's no pods that answer: nothing could be asked through its proxy."""
    try:
        told(gpu_cluster, gpu_cluster.nodes("h100")[0].metadata.name)
    except client.ApiException as refusal:
        if not stack.fleet.kubeconfig:
            raise
        pytest.skip(f"the pods of this cluster are only written down, no exporter answers ({refusal.status})")


def test_a_held_gpu_has_the_name_of_its_pod_from_the_labels_of_its_exporter(
    viewer: Visitor, gpu_cluster: Cluster, proxy: Proxy
):
    name = gpu_cluster.nodes("h100")[0].metadata.name

    wait_until(lambda: named(viewer, name), what="a holder that metrics name", timeout_s=ROUND_S)
    wait_until(  # pods come and go, and are named with the next round
        lambda: shown(viewer, name) == told(gpu_cluster, name),
        what=lambda: f"{told(gpu_cluster, name)}; shown is {shown(viewer, name)}",
        timeout_s=ROUND_S,
        every_s=1,
    )

    assert [one for one in proxy.requests() if one.path.endswith(":9400/proxy/metrics") and one.code == 200]


def test_the_page_of_a_node_says_by_what_a_holder_is_known(viewer: Visitor, gpu_cluster: Cluster):
    name = gpu_cluster.nodes("h100")[0].metadata.name
    wait_until(lambda: named(viewer, name), what="a holder that metrics name", timeout_s=ROUND_S)
    (node,) = viewer.all("/api/v1/nodes", search=name)

    text = viewer.http.get(f"/nodes/{node['id']}").text

    for uuid, pod in told(gpu_cluster, name).items():
        assert uuid in text
        assert pod in text
    assert "seen by the node's DCGM exporter" in text


def shown(viewer: Visitor, node: str) -> dict[str, str]:
    """By UUID, the pod that is said to hold it now."""
    held = {gpu["uuid"]: gpu["holders"][0] for gpu in viewer.all("/api/v1/gpus", node=node) if gpu["holders"]}
    return {uuid: holder["pod"]["name"] for uuid, holder in held.items() if holder["is_current"]}


def named(viewer: Visitor, node: str) -> list[dict]:
    gpus = viewer.all("/api/v1/gpus", node=node)
    return [one for gpu in gpus for one in gpu["holders"] or () if one["told_by"] == "metrics"]


def told(cluster: Cluster, node: str) -> dict[str, str]:
    """By UUID, the pod that the exporter names, asked for past Quarterdeck."""
    where = {"label_selector": "app=nvidia-dcgm-exporter", "field_selector": f"spec.nodeName={node}"}
    (pod,) = cluster.core.list_namespaced_pod("gpu-operator", **where).items
    address = f"{pod.metadata.name}:9400"
    text = cluster.core.connect_get_namespaced_pod_proxy_with_path(address, "gpu-operator", "metrics")
    labels = [dict(LABELS.findall(line)) for line in text.splitlines() if line.startswith("DCGM_FI_DEV_GPU_UTIL{")]
    return {each["UUID"]: each["pod"] for each in labels if "pod" in each}
