import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.asserts import assertContains, assertNotContains

from fleet.models import ClusterEvent, GoneNode, Observer
from fleet.observer.mirror.rows.node import node_row
from tests import make
from tests.fleet.documents import a_node_seen
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


def a_driver_pod(node, tag="570.172.08-ubuntu22.04", **given):
    image = f"nvcr.io/nvidia/driver:{tag}"
    return make.a_pod(
        node, f"driver-{node.name}", namespace="gpu-operator", gpus=0, operand="driver", image=image, **given
    )


def test_shows_the_stack_with_versions_and_why_not(viewer):
    node = make.a_node(make.a_cluster())
    a_driver_pod(
        node, is_ready=False, waiting_reason="CrashLoopBackOff: back-off", last_words="insmod failed", restarts=4
    )

    seen = page(viewer, f"/nodes/{node.pk}")

    assert "Driver not ready" in seen.text
    assert "570.172.08-ubuntu22.04" in seen.text
    assert "keeps crashing (CrashLoopBackOff, 4 restarts so far)" in seen.text
    assert "insmod failed" in seen.text


def test_says_how_the_cluster_is_reached_to_its_admins_alone(viewer):
    """As its cluster's page and REST do."""
    cluster = make.a_cluster("north", context="arn:of-the-account")
    node = make.a_node(cluster, "gpu-001")
    admin = visiting(make.a_user("root", role="admin", on=cluster))

    assert "kubectl describe node gpu-001" in page(viewer, f"/nodes/{node.pk}").text
    assert "arn:of-the-account" not in viewer.get(f"/nodes/{node.pk}").content.decode()
    assert "kubectl --context arn:of-the-account describe node gpu-001" in page(admin, f"/nodes/{node.pk}").text
    assert "kubectl --context arn:of-the-account get node gpu-001 -o yaml" in page(admin, f"/nodes/{node.pk}").text


def test_the_sick_gpus_come_first_with_what_is_wrong(viewer):
    node = make.a_node(make.a_cluster(), "gpu-001", gpus=4)
    make.a_finding(node.cluster, "GPU 2 of gpu-001", node=node, rule="gpu-hot", severity="warning")
    fallen = make.a_finding(node.cluster, "GPU 3 of gpu-001", node=node, rule="gpu-xid", severity="critical")
    make.a_finding(node.cluster, "GPU 1 of gpu-001", node=node, rule="gpu-memory-full", severity="note")

    seen = page(viewer, f"/parts/nodes/{node.pk}")

    boards = [int(number) for number in re.findall(r"GPU (\d) 143771 MiB", seen.text)]
    assert boards == [3, 2, 0, 1]
    assert "GPU 3 143771 MiB Xid" in seen.text
    assert f"/findings?finding={fallen.pk}" in seen.links


def test_no_more_gpus_are_taken_than_there_are(viewer):
    node = make.a_node(make.a_cluster(), gpus=8, gpu_allocatable=7, requested={"nvidia.com/gpu": 8})

    assert "8 of 8 taken, 1 missing" in page(viewer, f"/parts/nodes/{node.pk}").text


def test_cordon_and_drain_are_copied_with_what_they_do(viewer):
    node = make.a_node(make.a_cluster(), "gpu-001")

    text = page(viewer, f"/nodes/{node.pk}").text

    assert (
        "Keeps new pods off the node. Pods that run stay. Undo it with kubectl uncordon. kubectl cordon gpu-001" in text
    )
    assert "kubectl drain gpu-001 --ignore-daemonsets --delete-emptydir-data" in text
    assert "evicts its pods" in text.partition("kubectl drain")[0]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"cordoned_by": "gpu-operator"}, "Cordoned by gpu-operator, as the API server has it."),
        ({}, "Cordoned; the API server does not show who set it."),
    ],
)
def test_says_whose_its_cordon_is(viewer, given, sentence):
    node = make.a_node(make.a_cluster(), is_unschedulable=True, **given)

    assert sentence in page(viewer, f"/nodes/{node.pk}").text
    assert viewer.get(f"/api/v1/nodes/{node.pk}").json()["cordoned_by"] == given.get("cordoned_by", "")


def test_names_an_operand_that_should_run_here_and_does_not(viewer):
    cluster = make.a_cluster()
    node = make.a_node(cluster, labels={"nvidia.com/gpu.deploy.dcgm-exporter": "paused-for-driver-upgrade"})
    make.an_operand(cluster, "dcgm-exporter", node_selector={"nvidia.com/gpu.deploy.dcgm-exporter": "true"})

    seen = page(viewer, f"/nodes/{node.pk}")

    assert "DCGM exporter paused" in seen.text
    assert "nvidia.com/gpu.deploy.dcgm-exporter=paused-for-driver-upgrade" in seen.text


def test_shows_the_last_lines_of_what_crashed(viewer):
    node = make.a_node(make.a_cluster())
    pod = a_driver_pod(node, "570.172.08-ubuntu24.04", is_ready=False, waiting_reason="CrashLoopBackOff: back-off")
    make.a_crash_log(pod, "Installing", "Could not resolve Linux kernel version")

    seen = page(viewer, f"/nodes/{node.pk}")

    assert "No headers for kernel 6.8.0-60-generic" in seen.text
    assert "2 lines of its log" in seen.text


def test_says_where_the_driver_versions_disagree(viewer):
    cluster = make.a_cluster()
    node = make.a_node(cluster, driver_owner="h200", is_held=True)
    make.a_driver_object(cluster, version="580.95.05")
    a_driver_pod(node)

    seen = page(viewer, f"/nodes/{node.pk}")

    assert (
        "The node runs 570.172.08, its driver pod carries 570.172.08-ubuntu22.04, the cluster asks for 580.95.05. "
        "It is held." in seen.text
    )


@pytest.mark.parametrize(("by", "says"), [("plan-7", ">held by plan-7<"), ("", ">held, not by us<")])
def test_says_by_whom_it_is_held(viewer, by, says):
    node = make.a_node(make.a_cluster(), is_held=True, held_by=by)

    html = viewer.get(f"/nodes/{node.pk}").content.decode()

    assert says in re.sub(r"<svg.*?</svg>", "", html, flags=re.DOTALL)


def test_a_label_that_vanished_is_unknown_since_and_not_the_version_it_had(viewer):
    node = make.a_node(make.a_cluster(), driver_unknown_since=NOON - timedelta(minutes=7))

    seen = page(viewer, f"/nodes/{node.pk}")

    assert "Unknown since 2026-11-21 11:53 UTC: the label is gone. Its last value was 570.172.08." in seen.text


def test_lists_say_of_a_label_that_vanished_what_it_was_and_since_when(viewer):
    node = make.a_node(make.a_cluster(), gpus=1, driver_unknown_since=NOON - timedelta(minutes=7))

    for path in ("/", "/gpus?column=driver", f"/nodes/{node.pk}/gpus/0"):
        assert "was 570.172.08 no label for 7 min" in page(viewer, path).text, path


def test_a_driver_of_the_host_is_observed_never_managed(viewer):
    node = make.a_node(make.a_cluster(), labels={"nvidia.com/gpu.deploy.driver": "pre-installed"})

    seen = page(viewer, f"/nodes/{node.pk}")

    assert "pre-installed: observed, never managed" in seen.text
    assert "rolled out" not in seen.text


def test_says_that_it_does_not_know_which_gpu_is_sick(viewer):
    node = make.a_node(make.a_cluster(), gpu_allocatable=7)

    seen = page(viewer, f"/nodes/{node.pk}")

    assert "1 GPU missing: seen before, not allocatable now. It is unknown which of these GPUs" in seen.text


def test_an_unmanaged_pod_is_named(viewer):
    node = make.a_node(make.a_cluster())
    make.a_pod(node, "lonely", owner_kind="", owner_name="")

    assert "unmanaged: a drain deletes it for good" in page(viewer, f"/nodes/{node.pk}").text


def test_an_unseen_cluster_says_since_when_this_is_how_it_was(viewer):
    node = make.a_node(make.a_cluster(seen_at=NOON - timedelta(minutes=3)))

    assert "Not observed since 11:57:00 UTC" in page(viewer, f"/nodes/{node.pk}").text


def test_a_stranger_gets_404():
    node = make.a_node(make.a_cluster())
    client = visiting(make.a_user())

    for path in (f"/nodes/{node.pk}", f"/parts/nodes/{node.pk}", f"/parts/nodes/{node.pk}/timeline"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/", "/nodes/{0}", "/nodes/{0}/gpus/0"])
def test_a_pool_that_is_not_seen_is_not_named_by_a_node_it_shares(path):
    cluster = make.a_cluster()
    mine = make.a_pool(cluster, "mine")
    node = make.a_node(cluster, pool=mine)
    node.pools.add(make.a_pool(cluster, "secret"))

    seen = page(visiting(make.a_user(role="viewer", on=mine)), path.format(node.pk)).text

    assert "mine" in seen
    assert "secret" not in seen


def test_hostile_words_are_shown_and_not_run(viewer):
    node = make.a_node(
        make.a_cluster(), HOSTILE, uid="hostile", labels={HOSTILE: HOSTILE},
        taints=[{"key": HOSTILE, "effect": "NoSchedule"}],
        conditions=[{"type": HOSTILE, "message": HOSTILE, "since": None}],
    )  # fmt: skip
    make.a_pod(node, HOSTILE, uid="hostile", waiting_reason=HOSTILE)
    make.a_node_event(node, HOSTILE)

    assert HOSTILE in page(viewer, f"/nodes/{node.pk}").text
    assert HOSTILE in page(viewer, f"/parts/nodes/{node.pk}/timeline").text


def a_condition(name, status="True", reason="", message=""):
    since = "2026-11-21T08:00:00Z"
    return {"type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


def with_conditions(*conditions):
    return make.a_node(make.a_cluster(), conditions=node_row(a_node_seen(conditions=list(conditions)))["conditions"])


def test_says_which_conditions_report_a_fault(viewer):
    ill = with_conditions(
        a_condition("GpuMemWatch", message="NVS: 1 row. Recommended Action=COMPONENT_RESET;"),
        a_condition("GpuPcieWatch", "False", message="No Health Failures"),
        a_condition("CWActive", message="so it is"),
    )

    text = page(viewer, f"/nodes/{ill.pk}").text

    assert "GpuMemWatch NVSentinel, critical NVS: 1 row. Recommended Action=COMPONENT_RESET;" in text
    assert "Recommended action: COMPONENT_RESET since 2026-11-21T08:00:00 UTC" in text
    assert "CWActive=True written by an unknown detector" in text
    assert "1 condition without a fault GpuPcieWatch=False" in text
    assert "reports a fault" not in text


def test_a_node_that_no_detector_writes_on_says_so(viewer):
    assert "no detector writes any on this node" in page(viewer, f"/nodes/{with_conditions().pk}").text
    fine = with_conditions(a_condition("GpuPcieWatch", "False"))
    assert "No other condition reports a fault." in page(viewer, f"/nodes/{fine.pk}").text


def test_rest_tells_each_condition_with_its_verdict(viewer):
    node = with_conditions(
        a_condition("AcceleratedHardwareReady", "False", "NvidiaXID48Error", "detected XID-48"),
        a_condition("KernelReady"),
    )

    bad, fine = viewer.get(f"/api/v1/nodes/{node.pk}").json()["conditions"]

    assert bad == {
        "type": "AcceleratedHardwareReady", "status": "False", "verdict": "wrong", "severity": "critical",
        "reporter": "EKS node monitoring agent", "message": "NvidiaXID48Error: detected XID-48",
        "recommended_action": "", "xids": [48], "since": "2026-11-21T08:00:00+00:00",
    }  # fmt: skip
    assert (fine["type"], fine["verdict"], fine["message"], fine["since"]) == ("KernelReady", "fine", "", None)


def test_a_condition_that_an_older_version_wrote_is_a_fault(viewer):
    since = "2026-11-21T08:00:00+00:00"
    node = make.a_node(make.a_cluster(), conditions=[{"type": "GpuMemWatch", "message": "NVS: 1 row.", "since": since}])

    (condition,) = viewer.get(f"/api/v1/nodes/{node.pk}").json()["conditions"]

    assert (condition["verdict"], condition["reporter"], condition["severity"]) == ("wrong", "NVSentinel", "critical")


def test_shows_what_detectors_report_by_events_alone(viewer):
    """NVSentinel writes a fault that is not fatal as an Event of the node."""
    node, said = make.a_node(make.a_cluster(), "gpu-001"), "Detected clocks event due to power violation in GPU 0."
    row = {
        "about_kind": "Node",
        "about_name": "gpu-001",
        "source": "gpu-health-monitor",
        "changed_at": NOON,
        "count": 3,
    }
    for name, given in {
        "GpuPowerWatchIsNotHealthy": {"is_warning": True, "message": said, "last_at": NOON - timedelta(minutes=4)},
        "OfAnHourAgo": {"is_warning": True, "last_at": NOON - timedelta(minutes=61)},
        "Starting": {"is_warning": False, "last_at": NOON},
        "OfAnother": {"is_warning": True, "last_at": NOON, "about_name": "gpu-002"},
    }.items():
        ClusterEvent.objects.create(cluster=node.cluster, uid=name, reason=name, **row | given)

    seen = page(viewer, f"/nodes/{node.pk}").text

    assert f"GpuPowerWatchIsNotHealthy Event of gpu-health-monitor, 3 times, last 4 min ago {said}" in seen
    assert [name for name in ("OfAnHourAgo", "Starting", "OfAnother") if name in seen] == []


def test_the_number_of_queries_does_not_grow_with_the_pods(viewer, queries_of):
    node = make.a_node(make.a_cluster())
    make.a_pod(node)
    with_one = queries_of(viewer, f"/nodes/{node.pk}")

    for _ in range(30):
        make.a_pod(node)

    assert queries_of(viewer, f"/nodes/{node.pk}") == with_one


def test_capacity_allocatable_expected_and_requested_stand_side_by_side(viewer):
    gpu = "nvidia.com/gpu"
    node = make.a_node(
        make.a_cluster(), gpu_allocatable=7, gpu_allocated=6, capacity={gpu: 8}, allocatable={gpu: 7},
        expected={gpu: 8}, requested={gpu: 6},
    )  # fmt: skip

    text = page(viewer, f"/nodes/{node.pk}").text

    assert "nvidia.com/gpu 8 8 7 6 1" in text
    assert "1 GPU in capacity, but not allocatable: the device plugin reports it as unhealthy." in text


@pytest.mark.parametrize(
    ("layout", "resource", "title", "memory"),
    [
        ("gpu=whole/time-slicing*4", "nvidia.com/gpu", "Time-slicing of GPUs", "Shared and not limited"),
        ("gpu=whole/mps*4", "nvidia.com/gpu", "MPS shares of GPUs", "holds each pod to a 4th of the memory"),
        ("gpu=1g.10gb", "nvidia.com/gpu", "MIG slices", "Separate for each slice, with the size of the profile"),
        (
            "gpu=whole mig-1g.10gb=1g.10gb",
            "nvidia.com/mig-1g.10gb",
            "MIG slices",
            "Separate for each slice, with the size of the profile",
        ),
    ],
)
def test_mig_time_slicing_and_mps_are_three_different_things(viewer, layout, resource, title, memory):
    offered = {"capacity": {resource: 14}, "allocatable": {resource: 14}, "expected": {resource: 14}}
    node = make.a_node(make.a_cluster(), layout=layout, requested={resource: 1}, **offered)
    make.a_pod(node, "infer", gpus=0, resources={resource: 1})

    text = page(viewer, f"/nodes/{node.pk}").text

    assert title in text
    assert memory in text
    assert "Now 1 pod: team-a/infer" in text
    assert "Each GPU belongs to one pod only" not in text


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_on_no_gpu_and_holds_none(viewer, phase):
    resource, amounts = "nvidia.com/gpu", {"nvidia.com/gpu": 14}
    offered = {"capacity": amounts, "allocatable": amounts, "expected": amounts}
    node = make.a_node(make.a_cluster(), layout="gpu=whole/time-slicing*4", **offered)
    make.a_pod(node, "done", gpus=0, resources={resource: 1}, is_tenant=True, phase=phase, status="Completed")

    text = page(viewer, f"/nodes/{node.pk}").text

    assert "Now nobody." in text
    assert "team-a/done Deployment model Completed" in text
    assert "1 time-slice" not in text


def test_who_shares_a_gpu_is_told_as_of_when_its_pods_were_seen(viewer):
    amounts = {"nvidia.com/gpu": 14}
    offered = {"capacity": amounts, "allocatable": amounts, "expected": amounts, "requested": {"nvidia.com/gpu": 1}}
    node = make.a_node(make.a_cluster(), layout="gpu=whole/time-slicing*4", **offered)
    make.a_pod(node, "infer", gpus=0, resources={"nvidia.com/gpu": 1})
    node.cluster.bookmarks.filter(kind="pods").update(state="failing", last_seen_at=NOON - timedelta(minutes=3))

    assert "As of 11:57:00 1 pod: team-a/infer" in page(viewer, f"/nodes/{node.pk}").text


def test_the_holder_of_a_gpu_is_named_where_its_kubelet_names_it(viewer):
    gpu = "nvidia.com/gpu"
    node = make.a_node(make.a_cluster(), gpus=2)
    make.a_pod(node, "named", resources={gpu: 1}, devices={gpu: ["GPU-1234"]})
    make.a_pod(node, "lost", resources={gpu: 1})

    text = page(viewer, f"/nodes/{node.pk}").text

    assert "GPU-1234 team-a/named named by the kubelet" in text
    assert "1 more GPU that nothing names" in text
    assert "The GPU of each of these pods is unknown. team-a/lost 1 GPU" in text


def test_a_node_without_gpus_lacks_neither_a_product_nor_a_pool(viewer):
    node = make.a_node(make.a_cluster(), gpus=0, is_gpu_node=False, gpu_product="", labels={})

    answer = viewer.get(f"/nodes/{node.pk}")

    assertContains(answer, "No GPU identified on this node.")
    assertNotContains(answer, "product not known")
    assertContains(answer, '<span class="na">in no pool</span>', html=True)


def test_a_node_that_never_named_a_gpu_says_what_that_means(viewer):
    nothing = {"gpu_capacity": None, "gpu_allocatable": None, "gpu_expected": None}
    node = make.a_node(make.a_cluster(), gpus=0, **nothing)

    assert "This node has never offered a GPU resource since the watch began" in page(viewer, f"/nodes/{node.pk}").text


def test_the_holder_of_a_gpu_is_named_by_the_labels_of_its_exporter_with_their_age(viewer):
    node = make.a_node(make.a_cluster(), gpus=2)
    make.an_exporter_round(node.cluster)
    told = make.a_device_told(0, make.a_pod(node, "train")), make.a_device_told(1)
    make.a_reading(node, *told, read_at=NOON - timedelta(seconds=12))

    text = page(viewer, f"/nodes/{node.pk}").text

    assert "GPU-0 team-a/train seen by the node's exporter 12 s ago" in text
    assert "The GPU of each of these pods is unknown" not in text


def test_what_an_exporter_said_long_ago_was_last_seen_then(viewer):
    node = make.a_node(make.a_cluster(), gpus=1)
    make.an_exporter_round(node.cluster)
    read_at = NOON - timedelta(minutes=10)
    make.a_reading(node, make.a_device_told(0, make.a_pod(node, "train")), read_at=read_at, refused="It is gone.")

    text = page(viewer, f"/nodes/{node.pk}").text

    assert "team-a/train last seen by the node's exporter 10 min ago" in text
    assert "was last read at 2026-11-21 11:50:00 UTC. Its values are from that time. It is gone." in text


def test_an_exporter_that_disagrees_with_an_allocation_is_shown(viewer):
    node = make.a_node(make.a_cluster(), gpus=2)
    pod = make.a_pod(node, "train", devices={"nvidia.com/gpu": ["GPU-0"]})
    make.a_reading(node, make.a_device_told(0), make.a_device_told(1, pod))

    text = page(viewer, f"/nodes/{node.pk}").text

    assert "names team-a/train on GPU-1, but its kubelet names GPU-0. The exporter's name is ignored." in text


def test_a_pod_that_crash_loops_is_called_as_kubectl_calls_it(viewer):
    node = make.a_node(make.a_cluster())
    why = "CrashLoopBackOff: back-off 5m0s"
    make.a_pod(node, "infer", status="CrashLoopBackOff", is_ready=False, stuck_container="main", waiting_reason=why)

    answer = viewer.get(f"/nodes/{node.pk}")

    assertContains(answer, 'glyphs.svg#bad"></use></svg>CrashLoopBackOff</span>')
    assertNotContains(answer, "</svg>running</span>")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"status": "Running"}, "Running"),
        ({"status": "Running", "is_ready": False}, "Running, not ready"),
        (
            {"status": "Running", "restarts": 9, "crashed_at": NOON - timedelta(minutes=4)},
            "Running, between two crashes",
        ),
        ({"status": "Running", "restarts": 9, "crashed_at": NOON - timedelta(hours=4)}, "Running"),
        ({"status": "Completed", "phase": "Succeeded", "is_ready": False}, "Completed"),
        ({"status": "Init:1/3", "phase": "Pending", "is_ready": False}, "Init:1/3"),
        ({"status": "Terminating", "deleted_at": NOON}, "Terminating"),
    ],
)
def test_a_pods_word_is_its_containers(viewer, given, word):
    node = make.a_node(make.a_cluster())
    make.a_pod(node, "infer", **given)

    assertContains(viewer.get(f"/nodes/{node.pk}"), f"</svg>{word}</span>")


def test_what_runs_on_a_node_that_does_not_report_is_not_known(viewer):
    node = make.a_node(make.a_cluster(), is_ready=None)
    make.a_pod(node, "infer", status="Running")
    a_driver_pod(node, status="Running")

    text = page(viewer, f"/nodes/{node.pk}").text

    assert text.count("nknown, last Running") == 2


def test_a_node_that_left_keeps_a_page_with_when_what_it_was_and_its_timeline(viewer):
    node = make.a_node(make.a_cluster("north"), "gpu-001")
    make.a_node_event(node, "Runs driver 570.172.08.")
    pk, was = node.pk, {"Driver": "570.172.08"}
    GoneNode.objects.create(node_id=pk, cluster=node.cluster, uid=node.uid, name=node.name, gone_at=NOON, was=was)
    node.delete()
    again = make.a_node(make.a_cluster("south"), "gpu-001")
    again.cluster = GoneNode.objects.get().cluster
    again.save()

    for address in (f"/nodes/{pk}", f"/parts/nodes/{pk}"):
        answer = viewer.get(address)
        assertContains(answer, "This node left north")
        assertContains(answer, f'href="/nodes/{again.pk}"')
    assertContains(viewer.get(f"/parts/nodes/{pk}/timeline"), "Runs driver 570.172.08.")
    assert visiting(make.a_user()).get(f"/nodes/{pk}").status_code == 404
    assert viewer.get("/nodes/987654").status_code == 404


def test_a_gpu_that_its_node_calls_unhealthy_says_so_on_its_own_page(viewer):
    amd = {"gpu": "GPU 1", "reason": "AMD's metrics exporter reports it as unhealthy", "index": 1, "uuid": ""}
    named = {"gpu": "GPU 1", "reason": "HAMi's device plugin reports it as unhealthy", "index": 1, "uuid": "GPU-c"}
    node = make.a_node(
        make.a_cluster(), gpus=3, unhealthy_gpus=[amd, named], devices_unhealthy={"GPU-a": "team-a/infer"}
    )
    for index, uuid in enumerate(("GPU-a", "GPU-b", "GPU-c")):
        node.gpus.filter(index=index).update(uuid=uuid)

    first, second, third = (page(viewer, f"/nodes/{node.pk}/gpus/{index}").text for index in range(3))

    assert "GPU-a: the kubelet reports it as unhealthy; team-a/infer uses it." in first
    assert "GPU 1: AMD's metrics exporter reports it as unhealthy." in second
    assert "GPU 1: HAMi's device plugin reports it as unhealthy." in third
    assert [text.count("reports it as unhealthy") for text in (first, second, third)] == [1, 1, 1]


@pytest.mark.parametrize("address", ["/nodes/{}", "/parts/nodes/{}"])
def test_the_page_and_all_its_parts_read_the_node_and_what_has_telemetry_of_its_cluster_once(viewer, address):
    node = make.a_node(make.a_cluster(), gpus=8)

    with CaptureQueriesContext(connection) as asked:
        assert viewer.get(address.format(node.pk)).status_code == 200

    said = [each["sql"] for each in asked]
    assert sum('"fleet_node"."annotations"' in sql for sql in said) == 1
    assert sum('"fleet_bookmark"."message"' in sql and '"kind" IN' not in sql for sql in said) == 1


def test_a_flush_while_it_is_read_is_newer_than_the_page(viewer):
    cluster = make.a_cluster()
    node = make.a_node(cluster)
    Observer.objects.create(cluster=cluster, batch=7, lease_until=NOON)

    def flush(execute, sql, *rest):
        answer = execute(sql, *rest)
        if '"fleet_node"."annotations"' in sql:
            Observer.objects.update(batch=8)
        return answer

    with connection.execute_wrapper(flush):
        text = viewer.get(f"/nodes/{node.pk}").content.decode()

    assert f"data-seq='{{&quot;cluster-{cluster.pk}&quot;: 7}}'" in text
