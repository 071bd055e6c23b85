"""AMD's and Gaudi's exporters, asked through the pod proxy as DCGM's are, into the same frame."""

from collections.abc import Iterator

import pytest
from django.utils import timezone

from fleet.models import ExporterReading
from gpu.operands import operand_of
from health.exporters import exporter_round
from health.sources import snapshots
from tests import make
from tests.api_server import ApiServer, an_api_server

pytestmark = [pytest.mark.rounds, pytest.mark.django_db]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    fleet = ("--fleet", "mixed", "--nodes", "2", "--mix", "amd=1,gaudi=1")
    with an_api_server(tmp_path_factory.mktemp("vendors"), *fleet) as server:
        yield server


@pytest.fixture
def cluster(api, redis):
    """Its nodes, exporters and tenants, as the observer would write them."""
    uid = api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    row = make.a_cluster(uid=uid, kubeconfig=api.kubeconfig, context=api.context, seen_at=timezone.now())
    names = [node["metadata"]["name"] for node in api.get("/api/v1/nodes")["items"]]
    vendors = {"gpu-amd-001": "amd", "gpu-gaudi-001": "habana"}
    nodes = {name: make.a_node(row, name, gpu_vendor=vendors[name]) for name in names if name in vendors}
    for pod in api.get("/api/v1/pods")["items"]:
        node, metadata = nodes.get(pod["spec"].get("nodeName", "")), pod["metadata"]
        operand = operand_of(metadata.get("labels", {}), metadata["name"])
        if node is not None:
            given = {"uid": metadata["uid"], "phase": pod["status"]["phase"], "gpus": 0, "operand": operand}
            make.a_pod(node, metadata["name"], namespace=metadata["namespace"], **given)
    snapshots.forget(row.pk)
    return row


def test_each_is_asked_at_its_own_port_and_is_in_the_frame(api, cluster):
    outcome = exporter_round.ask(cluster, clock=timezone.now)

    kept = snapshots.newest(cluster.pk)
    assert (outcome.state, outcome.exporters, outcome.answered, outcome.message) == ("asked", 2, 2, "")
    assert {(device.node_name, device.index) for device in kept.snapshot.devices} == {
        (name, index) for name in ("gpu-amd-001", "gpu-gaudi-001") for index in range(8)
    }
    for key in ("temperature_celsius", "gpu_utilisation_ratio", "memory_used_mib", "power_watts"):
        assert all(value == value for value in kept.snapshot.columns[key].values), key
    asked = {one["path"].partition("/pods/")[2] for one in api.requests() if one["path"].endswith("/proxy/metrics")}
    assert {path.rpartition(":")[2].partition("/")[0] for path in asked} == {"5000", "41611"}


def test_which_pods_hold_their_devices_is_read_of_both(cluster):
    exporter_round.ask(cluster, clock=timezone.now)

    for row in ExporterReading.objects.filter(cluster=cluster):
        assert [device["index"] for device in row.devices] == list(range(8))
        assert any(device["pods"] for device in row.devices), row.node_name
