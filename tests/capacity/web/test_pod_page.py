"""The page of one pod, and its answer in REST."""

from datetime import timedelta

import pytest

from fleet.models import ClusterEvent, Gpu, ResourceClaim, Workload
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def cluster():
    return make.a_cluster("east")


@pytest.fixture
def viewer():
    return visiting(make.a_user("bob", role="viewer"))


def an_event(cluster, uid: str, message: str, **given):
    row = {"about_kind": "Pod", "about_name": "x", "reason": "FailedScheduling", "last_at": NOON, "changed_at": NOON}
    return ClusterEvent.objects.create(cluster=cluster, about_uid=uid, message=message, uid=message, **row | given)


def test_a_running_pod_shows_its_gpus_owner_and_events(viewer, cluster):
    node = make.a_node(cluster, "gpu-1", gpus=2, pool=make.a_pool(cluster, "h200"))
    Gpu.objects.filter(index=1).update(uuid="GPU-b")
    pod = make.a_pod(node, "serving", devices={"nvidia.com/gpu": ["GPU-b"]}, image="vllm:1", owner_uid="job")
    row = {"kind": "Job", "namespace": "team-a", "name": "model", "uid": "job", "created_at": NOON, "changed_at": NOON}
    Workload.objects.create(cluster=cluster, **row)
    an_event(cluster, pod.uid, "Pulled the image")
    an_event(cluster, "job", "Created a pod", about_kind="Job")
    an_event(cluster, "job", "Long before", last_at=NOON - timedelta(days=1))
    an_event(cluster, "other", "Of another pod")

    seen = page(viewer, f"/pods/{pod.pk}")

    assert "serving Running" in seen.text
    assert f"/nodes/{node.pk}/gpus/1" in seen.links
    assert "GPU-b" in seen.text
    assert "h200" in seen.text
    assert "vllm:1" in seen.text
    assert "Pulled the image" in seen.text
    assert "Created a pod" in seen.text
    assert "Long before" not in seen.text
    assert "Of another pod" not in seen.text


def test_a_waiting_pod_shows_its_conditions_claims_and_what_it_asks_of_a_node(viewer, cluster):
    placement = {
        "node_selector": {"zone": "a"},
        "node_affinity": [[{"key": "rack", "operator": "In", "values": ["r1", "r2"]}]],
        "tolerations": [{"key": "", "operator": "Exists", "value": "", "effect": ""}],
        "gates": ["example.com/hold"],
        "volume_claims": ["data"],
        "conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/3 nodes", "at": "2026-11-21T11:00:00+00:00"}
        ],
    }
    pod = make.a_pending_pod(cluster, "train", placement=placement, claims=["there", "gone"])
    request = {"name": "gpu", "device_class": "gpu.nvidia.com", "count": 2}
    claim = {"namespace": "team-a", "name": "there", "uid": "c", "created_at": NOON, "changed_at": NOON}
    ResourceClaim.objects.create(cluster=cluster, requests=[request], **claim)

    text = page(viewer, f"/pods/{pod.pk}").text

    assert "PodScheduled False" in text
    assert "0/3 nodes" in text
    assert "there not allocated 2 of gpu.nvidia.com" in text
    assert "gone does not exist, or is not observed" in text
    assert "Node selector zone=a" in text
    assert "rack In r1, r2" in text
    assert "every taint:every effect" in text
    assert "Scheduling gates example.com/hold" in text
    assert "Volume claims data" in text


def test_rest_says_the_same(cluster):
    node = make.a_node(cluster, "gpu-1", gpus=1, pool=make.a_pool(cluster, "h200"))
    pod = make.a_pod(node, "serving")
    an_event(cluster, pod.uid, "Pulled the image")
    caller = calling(make.a_user("bob", role="viewer"))

    body = caller.get(f"/api/v1/pods/{pod.pk}").json()

    assert (body["pod"]["name"], body["owner"], body["pools"]) == ("serving", "Deployment model", ["h200"])
    assert body["events"][0]["message"] == "Pulled the image"
    assert body["placement"] == {}
    listed = caller.get("/api/v1/pods?state=ready&pool=h200&resource=nvidia.com/gpu&ordering=state").json()["results"]
    assert [row["id"] for row in listed] == [pod.pk]
    assert caller.get("/api/v1/pods?state=pending").json()["results"] == []
    assert caller.get("/api/v1/pods?state=nonsense").status_code == 400


def test_a_viewer_of_one_pool_finds_pods_of_its_nodes_alone(cluster):
    pool = make.a_pool(cluster, "h200")
    mine = make.a_pod(make.a_node(cluster, "gpu-1", pool=pool), "mine", owner_uid="job")
    theirs = make.a_pod(make.a_node(cluster, "gpu-2"), "theirs")
    waiting = make.a_pending_pod(cluster)
    row = {"kind": "Job", "namespace": "team-a", "name": "model", "uid": "job", "created_at": NOON, "changed_at": NOON}
    Workload.objects.create(cluster=cluster, **row)
    an_event(cluster, "job", "Created theirs", about_kind="Job")
    pia = make.a_user("pia", role="viewer", on=pool)

    for pod, status in ((mine, 200), (theirs, 404), (waiting, 404)):
        assert visiting(pia).get(f"/pods/{pod.pk}").status_code == status
        assert calling(pia).get(f"/api/v1/pods/{pod.pk}").status_code == status
    assert "Created theirs" not in page(visiting(pia), f"/pods/{mine.pk}").text


def test_what_people_wrote_is_text(viewer, cluster):
    placement = {
        "node_selector": {HOSTILE: HOSTILE},
        "gates": [HOSTILE],
        "conditions": [{"type": HOSTILE, "status": "x"}],
    }
    pod = make.a_pending_pod(cluster, HOSTILE, placement=placement, waiting_reason=HOSTILE, claims=[HOSTILE])
    an_event(cluster, pod.uid, HOSTILE, reason=HOSTILE)

    page(viewer, f"/pods/{pod.pk}")


def test_an_unknown_pod_is_not_found(viewer):
    assert viewer.get("/pods/4711").status_code == 404
