"""Which pod has which GPU where neither DRA nor a kubelet says it: as the exporter of the node does."""

import re
from typing import Any

import httpx
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

    wait_until(lambda: named(viewer, name), what="a pod that metrics name", timeout_s=ROUND_S)
    wait_until(  # pods come and go, and are named with the next round
        lambda: shown(viewer, name) == told(gpu_cluster, name),
        what=lambda: f"{told(gpu_cluster, name)}; shown is {shown(viewer, name)}",
        timeout_s=ROUND_S,
        every_s=1,
    )

    assert [one for one in proxy.requests() if one.path.endswith(":9400/proxy/metrics") and one.code == 200]
    (node,) = viewer.all("/api/v1/nodes", search=name)

    def is_on_page() -> bool:
        page = viewer.http.get(f"/nodes/{node['id']}").text
        names = {name for pair in told(gpu_cluster, name).items() for name in pair}
        return "seen by the node's exporter" in page and all(name in page for name in names)

    wait_until(is_on_page, what="each GPU and its pod on the node's page", timeout_s=ROUND_S, every_s=1)


@pytest.mark.nightly
def test_an_xid_that_an_exporter_tells_is_found(viewer: Visitor, gpu_cluster: Cluster, stack: RecordedStack):
    """Without a Prometheus. An application's: a note that passes, so that no node is the worse for it afterwards."""
    name = gpu_cluster.nodes("a100")[0].metadata.name
    wait_until(  # an Xid that is there at the first look is no news
        lambda: last_xid(viewer, name, 2)["state"] == "fresh", what="a first look", timeout_s=ROUND_S, every_s=1
    )
    fault = {"key": "xid", "node": name, "gpu": 2, "code": 31}
    # Its certificate is its own, and it listens on loopback.
    simulator = httpx.Client(base_url=stack.simulator_url, verify=False, timeout=PATIENCE_S)  # noqa: S501
    simulator.post("/simulator/faults", json=fault).raise_for_status()

    wait_until(lambda: noted(viewer, f"GPU 2 of {name}"), what="a finding of the Xid", timeout_s=2 * ROUND_S, every_s=1)

    simulator.delete("/simulator/faults", params=fault).raise_for_status()
    simulator.close()
    assert last_xid(viewer, name, 2)["value"] == 31


def last_xid(viewer: Visitor, node: str, gpu: int) -> dict[str, Any]:
    (row,) = viewer.all("/api/v1/nodes", search=node)
    devices = viewer.get(f"/api/v1/nodes/{row['id']}/telemetry")["devices"]
    found: dict[str, Any] = next(each["metrics"]["xid"] for each in devices if each["index"] == gpu)
    return found


def noted(viewer: Visitor, gpu: str) -> bool:
    found = viewer.all("/api/v1/findings", rule="gpu-xid", open="true")
    return any(each["subject"] == gpu and each["severity"] == "note" for each in found)


def shown(viewer: Visitor, node: str) -> dict[str, str]:
    """By UUID, the pod that is said to have it now."""
    taken = {gpu["uuid"]: gpu["allocations"][0] for gpu in viewer.all("/api/v1/gpus", node=node) if gpu["allocations"]}
    return {uuid: one["pod"]["name"] for uuid, one in taken.items() if one["is_current"]}


def named(viewer: Visitor, node: str) -> list[dict]:
    gpus = viewer.all("/api/v1/gpus", node=node)
    return [one for gpu in gpus for one in gpu["allocations"] or () if one["reported_by"] == "metrics"]


def told(cluster: Cluster, node: str) -> dict[str, str]:
    """By UUID, the pod that the exporter names, asked for past Quarterdeck."""
    where = {"label_selector": "app=nvidia-dcgm-exporter", "field_selector": f"spec.nodeName={node}"}
    (pod,) = cluster.core.list_namespaced_pod("gpu-operator", **where).items
    address = f"{pod.metadata.name}:9400"
    text = cluster.core.connect_get_namespaced_pod_proxy_with_path(address, "gpu-operator", "metrics")
    labels = [dict(LABELS.findall(line)) for line in text.splitlines() if line.startswith("DCGM_FI_DEV_GPU_UTIL{")]
    return {each["UUID"]: each["pod"] for each in labels if "pod" in each}
