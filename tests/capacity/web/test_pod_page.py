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
    return ClusterEvent.objects.create(cluster=cluster, about_uid=uid, message=message, uid=message[:64], **row | given)


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


def test_a_crashing_pod_shows_its_cause_and_the_line_that_tells_it(viewer, cluster):
    broken = {"is_ready": False, "stuck_container": "main", "status": "CrashLoopBackOff"}
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"
    pod = make.a_pod(make.a_node(cluster), waiting_reason="CrashLoopBackOff: back-off 5m0s", last_words=line, **broken)

    text = page(viewer, f"/pods/{pod.pk}").text

    assert "Why it does not run" in text
    assert text.count(line) == 1
    assert "Container main: CrashLoopBackOff: back-off 5m0s" in text


def test_a_waiting_pod_says_why_and_who_holds_what_it_misses(viewer, cluster):
    node = make.a_node(cluster, "gpu-1", requested={"nvidia.com/gpu": 7}, cpu_allocatable_m=128_000)
    make.a_pod(node, "holder", gpus=7)
    message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    pod = make.a_pending_pod(cluster, "train", gpus=2, placement={"conditions": conditions})

    seen = page(viewer, f"/pods/{pod.pk}")

    assert "Restarts" not in seen.text  # of a pod that never started: the reason comes first

    assert "Too few free GPUs: the pod requests 2 GPUs. 1 node qualifies. 1 GPU is free there in total." in seen.text
    assert "1 node lacks only 1 GPU." in seen.text
    assert "Nodes in the cluster 1 Have 2 GPUs free 0 −1" in seen.text
    assert "gpu-1 1 GPU free of 2 GPUs team-a/holder 7 GPUs" in seen.text
    assert message in seen.text
    assert "This check counts the same nodes." in seen.text
    answer = calling(make.a_user(role="viewer")).get(f"/api/v1/pods/{pod.pk}/why-pending").json()["why_pending"]
    assert (answer["key"], answer["agreement_ratio"], answer["differences"]) == ("no_room", 1.0, [])
    assert answer["near_nodes"][0]["holders"] == ["team-a/holder: 7 GPUs"]
    assert [step["left"] for step in answer["funnel"]] == [1, 0]
    assert [(each["fits_now"], each["fits_later"]) for each in answer["changes"]] == [(1, 1), (0, 1), (None, None)]
    assert page(viewer, "/pods").text.count("Too few free GPUs") == 1


def test_a_scheduler_that_disagrees_decides(viewer, cluster):
    make.a_node(cluster, "gpu-1", cpu_allocatable_m=1000)
    message = "0/1 nodes are available: 1 Insufficient rdma/hca."
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    pod = make.a_pending_pod(cluster, placement={"conditions": conditions})

    text = page(viewer, f"/pods/{pod.pk}").text

    assert "The scheduler rejects 1 node: insufficient rdma/hca. 1 node fits by the checked requirements." in text
    assert "The scheduler's message differs. The scheduler decides." in text


def test_a_pod_with_a_node_does_not_wait(cluster):
    pod = make.a_pod(make.a_node(cluster))

    answer = calling(make.a_user(role="viewer")).get(f"/api/v1/pods/{pod.pk}/why-pending").json()

    assert answer == {"why_pending": None}


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
    pod = make.a_pending_pod(
        cluster, HOSTILE, uid="uid-of-x", placement=placement, waiting_reason=HOSTILE, claims=[HOSTILE]
    )
    an_event(cluster, pod.uid, HOSTILE, reason=HOSTILE)

    page(viewer, f"/pods/{pod.pk}")


def test_an_unknown_pod_is_not_found(viewer):
    assert viewer.get("/pods/4711").status_code == 404


def deciding_object(bob, pod):
    found = calling(bob).get(f"/api/v1/pods/{pod.pk}/why-pending").json()["why_pending"]["deciding_object"]
    return found and (found["kind"], found["name"], found["page"])


def a_new_pod(cluster, name, **given):
    """The scheduler has had no time to report on it."""
    return make.a_pending_pod(cluster, name, created_at=NOON, **given)


def test_what_decides_has_a_kind_and_the_page_that_shows_it(viewer, cluster):
    bob = make.a_user("amy", role="viewer")
    only = make.a_node(cluster, "gpu-1", gpus=8, is_unschedulable=True, allocatable={"nvidia.com/gpu": 8})
    held = a_new_pod(cluster, "held")
    too_large = a_new_pod(cluster, "large", gpus=16)
    gated = a_new_pod(cluster, "gated", placement={"gates": ["example.com/hold"]})
    labels = {"node_selector": {"nvidia.com/gpu.product": "B9"}}
    elsewhere = a_new_pod(cluster, "elsewhere", placement=labels)
    claims = a_new_pod(cluster, "claims", gpus=0, claims=["gone"])

    assert deciding_object(bob, held) == ("node", "gpu-1", f"/nodes/{only.pk}")
    assert deciding_object(bob, too_large) == (
        "resource", "nvidia.com/gpu", f"/clusters/{cluster.pk}#free-gpus-title",
    )  # fmt: skip
    assert deciding_object(bob, gated) == ("scheduling gate", "example.com/hold", "")
    kind, name, address = deciding_object(bob, elsewhere)
    assert (kind, name) == ("node label", "nvidia.com/gpu.product=B9")
    assert viewer.get(address).status_code == 200
    assert deciding_object(bob, claims)[0] == "ResourceClaim"
    assert f"/nodes/{only.pk}" in page(viewer, f"/pods/{held.pk}").links
    assert "Decided by the scheduling gate example.com/hold ." in page(viewer, f"/pods/{gated.pk}").text


def test_the_newest_report_of_an_autoscaler_is_shown_with_its_time(viewer, cluster):
    make.a_node(cluster, "gpu-1", gpus=2)
    pod = make.a_pending_pod(cluster, "train", placement={"scheduler": "default-scheduler"})
    refused = 'Failed to schedule pod, node limits have been exhausted for nodepool "gpu"'
    an_event(cluster, pod.uid, "Pod should schedule on: nodeclaim/gpu-x7", reason="Nominated", source="karpenter",
             last_at=NOON - timedelta(minutes=9))  # fmt: skip
    an_event(cluster, pod.uid, refused, source="karpenter", last_at=NOON - timedelta(minutes=3))

    seen = page(viewer, f"/pods/{pod.pk}")
    told = (
        calling(make.a_user("eve", role="viewer"))
        .get(f"/api/v1/pods/{pod.pk}/why-pending")
        .json()["why_pending"]["scaling"]
    )

    assert "Karpenter is at its maximum 3 min ago NodePool gpu has used up its limits." in seen.text
    assert refused in seen.text
    assert (told["summary"], told["at"]) == ("NodePool gpu has used up its limits.", "2026-11-21T11:57:00Z")
