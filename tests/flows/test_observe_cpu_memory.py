"""Pods that are not kept, on a simulated fleet: what they request is counted while they are there, kept or not."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import httpx
import pytest
from django.utils import timezone

from fleet.messages import announce, listeners, wake
from fleet.models import Cluster, Node, Observer, OtherPod, Pod
from fleet.observer.lease import list_watch
from fleet.observer.mirror import memory
from kube import client
from tests.api_server import ApiServer, an_api_server
from tests.flows.leases import hold_a_lease
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.observe, pytest.mark.django_db(transaction=True)]
GI = 2**30
NODE, PRESENT = "cpu-001", "nvidia.com/gpu.present"
PODS = "/api/v1/namespaces/web/pods"
REQUESTS = {"cpu": "1500m", "memory": "3Gi"}
LATE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "late"},
    "spec": {
        "nodeName": NODE,
        "containers": [{"name": "main", "image": "busybox:1", "resources": {"requests": REQUESTS}}],
    },
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with an_api_server(tmp_path_factory.mktemp("api"), "--fleet", "small", "--nodes", "2") as server:
        yield server


@pytest.fixture
def cluster(db: None, api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setattr(list_watch, "LOOK_UP_S", 0.1)
    for module, name in (
        (wake, "wake_observer"),
        (listeners, "notify"),
        (announce, "send"),
    ):
        monkeypatch.setattr(module, name, lambda *_: None)
    uid = client.kube_system_uid(client.connect(api.kubeconfig, api.context))
    row = Cluster.objects.create(
        name="north", uid=uid, kubeconfig=api.kubeconfig, context=api.context, added_at=timezone.now()
    )
    Observer.objects.create(cluster=row, lease_until=timezone.now() - timedelta(seconds=1))
    yield row
    api.change(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {PRESENT: None}}})
    httpx.delete(f"{api.url}{PODS}/late?gracePeriodSeconds=0", timeout=PATIENCE_S)


def created(api: ApiServer) -> str:
    """The UID of a pod that came late."""
    api.create(PODS, LATE)
    return api.get(f"{PODS}/late")["metadata"]["uid"]


def watch(cluster: Cluster, *, anew: bool = False, until: Callable[[], object] = lambda: True) -> tuple[int, int]:
    """Hold a lease, as the same worker or as another one, until it has seen something. What others request then."""
    if anew:
        memory.recall(cluster.pk, epoch=0)
    hold_a_lease(cluster, until=until, seconds=1.5)
    row = Node.objects.get(name=NODE)
    return row.cpu_others_m, row.memory_others_bytes


def test_a_simulated_fleet_has_pods_that_are_not_kept(cluster, api):
    watch(cluster)

    bound = [pod for pod in api.get("/api/v1/pods")["items"] if pod["metadata"]["namespace"] in ("kube-system", "web")]
    assert {row.uid for row in OtherPod.objects.all()} == {pod["metadata"]["uid"] for pod in bound}
    assert sum(Node.objects.values_list("cpu_others_m", flat=True)) == 2 * 100 + 100 + 3 * 500
    assert not Pod.objects.filter(namespace__in=("kube-system", "web")).exists()


@pytest.mark.parametrize("anew", [False, True])
def test_a_pod_that_is_not_kept_comes_and_goes(cluster, api, anew):
    cpu_m, memory_bytes = watch(cluster)

    late = OtherPod.objects.filter(uid=created(api))
    there = watch(cluster, anew=anew, until=late.exists)
    api.delete(f"{PODS}/late?gracePeriodSeconds=0")
    gone = watch(cluster, anew=anew, until=lambda: not late.exists())

    assert (there, gone) == ((cpu_m + 1500, memory_bytes + 3 * GI), (cpu_m, memory_bytes))


def test_a_pod_becomes_kept_reason_its_node_gets_gpus(cluster, api):
    late = OtherPod.objects.filter(uid=created(api))
    before = watch(cluster, until=late.exists)
    assert not Pod.objects.filter(name="late").exists()

    api.change(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {PRESENT: "true"}}})
    watch(cluster, until=Node.objects.filter(name=NODE, is_gpu_node=True).exists)
    after = watch(cluster, until=Pod.objects.filter(name="late").exists)  # what is kept there is listed again

    assert Node.objects.get(name=NODE).is_gpu_node
    assert Pod.objects.get(name="late").cpu_m == 1500
    assert not OtherPod.objects.filter(node_name=NODE).exists()
    assert after == before
