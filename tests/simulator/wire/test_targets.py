"""What a Prometheus is told of the exporters, in the labels of its own discovery of Kubernetes."""

from collections.abc import Callable

import httpx

from simulator.run import Simulation
from tests.patience import PATIENCE_S

MIX = "h100=1,preinstalled=1,amd=1,gaudi=1"


def test_each_exporter_is_a_target_with_what_discovery_would_say(start: Callable[..., Simulation]) -> None:
    fleet = start("--fleet", "mixed", "--nodes", "4", "--mix", MIX)

    told = httpx.get(f"{fleet.url}/simulator/targets", timeout=PATIENCE_S).json()

    by_node = {each["labels"]["__meta_kubernetes_pod_node_name"]: each for each in told}
    ports = {node: each["labels"]["__meta_kubernetes_pod_container_port_number"] for node, each in by_node.items()}
    assert ports == {
        "gpu-h100-001": "9400",
        "gpu-preinstalled-001": "9400",
        "gpu-amd-001": "5000",
        "gpu-gaudi-001": "41611",
    }
    for each in told:
        meta = {key.removeprefix("__meta_kubernetes_"): value for key, value in each["labels"].items()}
        port = meta["pod_container_port_number"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['pod_name']}:{port}/proxy/metrics"
        assert each["targets"] == [f"{meta['pod_ip']}:{port}"]
        assert httpx.get(f"{fleet.url}{path}", timeout=PATIENCE_S).text.startswith("# HELP")


def test_an_empty_cluster_has_none(simulation: Simulation) -> None:
    assert httpx.get(f"{simulation.url}/simulator/targets", timeout=PATIENCE_S).json() == []
