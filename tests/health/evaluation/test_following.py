"""From rows to the findings that compare: pods of one template, versions of a driver, cordons, combinations."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Bookmark, Cluster, ExporterReading, Node, Observer, ResourceSlice
from gpu.labels import WAS_CORDONED
from health.evaluation import evaluation_round, workload_failures
from health.evaluation.workload_failures import workloads_by_node
from health.models import Finding
from tests.make import NOON, a_cluster, a_driver_object, a_node, a_pod, counted
from tests.reports import told

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
CRASHES = {"status": "CrashLoopBackOff", "is_ready": False, "stuck_container": "main", "restarts": 9,
           "waiting_reason": "CrashLoopBackOff: back-off 5m0s"}  # fmt: skip


@pytest.fixture
def cluster():
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    return cluster


def looked(cluster, *minutes: float) -> None:
    for each in minutes:
        at = NOON + each * MINUTE
        Bookmark.objects.filter(cluster=cluster).update(last_seen_at=at)
        evaluation_round.evaluate_cluster(cluster, now=at)


def found(rule: str) -> list[str]:
    return [told(row) for row in Finding.objects.open().filter(rule=rule).order_by("pk")]


def of_one_template(node, *, uid="rs-1", **given):
    return a_pod(node, owner_kind="ReplicaSet", owner_name="infer-7f9c", owner_uid=uid, **given)


def a_failing_workload(cluster, *, elsewhere: int = 3, **given):
    sick = a_node(cluster, "gpu-sick")
    for _ in range(2):
        of_one_template(sick, **CRASHES | given)
    for number in range(elsewhere):
        of_one_template(a_node(cluster, f"gpu-{number}"), image=given.get("image", ""))
    return sick


def test_pods_of_a_template_that_fail_on_one_node_alone_are_its_finding_and_the_crashes_are_listed_under_it(cluster):
    a_failing_workload(cluster)

    looked(cluster, 0, 5)

    (text,) = found("workload-fails-here")
    assert text.startswith("team-a/infer-7f9c fails only on gpu-sick")
    assert "Failing pods of team-a/infer-7f9c here: 2\nRunning on other nodes: 3" in text
    assert Finding.objects.get(rule="pods-failing").parent.rule == "workload-fails-here"


def test_the_cuda_versions_that_fail_and_run_on_a_node_are_known(cluster):
    sick = a_failing_workload(cluster, image="team/infer:cuda13.0")
    a_pod(sick, image="nvidia/cuda:12.4.1-base")
    a_pod(sick, image="team/any:latest")

    (here,) = workloads_by_node(cluster, now=NOON)["gpu-sick"]

    assert (here.cuda, here.running_cuda) == ("13.0", ("12.4",))


def test_pods_of_another_template_prove_nothing(cluster):
    sick = a_node(cluster, "gpu-sick")
    for _ in range(2):
        of_one_template(sick, uid="rs-old", **CRASHES)
    for number in range(3):
        of_one_template(a_node(cluster, f"gpu-{number}"), uid="rs-new")

    looked(cluster, 0, 5)

    assert found("workload-fails-here") == []


def test_a_workload_that_fails_on_half_of_its_nodes_has_the_kernel_of_these_as_suspect(cluster):
    """H4: the failure is found also where no node is the only one."""
    for number in range(4):
        of_one_template(a_node(cluster, f"gpu-old-{number}", kernel="5.15"), **CRASHES)
        of_one_template(a_node(cluster, f"gpu-new-{number}", kernel="6.8"))

    found = workloads_by_node(cluster, now=NOON)

    (here,) = found["gpu-old-0"]
    assert set(found) == {f"gpu-old-{number}" for number in range(4)}
    assert here.suspects.title == "Probable cause: kernel"
    assert here.suspects.suspects[0].counts == "on 4 of 4 failed nodes and 0 of 4 good nodes"


def test_a_workload_that_fails_on_half_of_its_nodes_is_a_finding_of_each(cluster):
    for number in range(4):
        of_one_template(a_node(cluster, f"gpu-old-{number}", kernel="5.15"), **CRASHES)
        of_one_template(a_node(cluster, f"gpu-new-{number}", kernel="6.8"))

    looked(cluster, 0, 5)

    findings = Finding.objects.open().filter(rule="workload-fails-on-some")
    assert {finding.node.name for finding in findings} == {f"gpu-old-{number}" for number in range(4)}
    assert {finding.summary for finding in findings} == {"Probable cause: kernel"}
    assert not Finding.objects.open().filter(rule="workload-fails-here").exists()


def test_jobs_that_failed_for_good_on_one_node_count_for_an_hour(cluster):
    over = {"phase": "Failed", "status": "Error", "is_ready": False, "crashed_at": NOON - 20 * MINUTE}
    a_failing_workload(cluster, **over | {"waiting_reason": "", "stuck_container": ""})

    assert [each.failing for each in workloads_by_node(cluster, now=NOON)["gpu-sick"]] == [2]
    assert workloads_by_node(cluster, now=NOON + 41 * MINUTE) == {}


FAILED = {"phase": "Failed", "status": "Error", "is_ready": False, "crashed_at": NOON - 20 * MINUTE,
          "waiting_reason": "", "stuck_container": ""}  # fmt: skip


@pytest.mark.parametrize("key", ["image", "ray.io/group", "training.kubeflow.org/replica-type"])
def test_groups_of_one_owner_that_have_a_template_each_are_not_compared_with_each_other(cluster, key):
    """A RayCluster, a PyTorchJob, an MPIJob own the pods of all their templates themselves."""

    def of_group(node, group, **given):
        told = {"image": group} if key == "image" else {"labels": {key: group}, "image": "train:1"}
        return a_pod(node, owner_kind="RayCluster", owner_name="ray", owner_uid="ray-1", **told | given)

    sick = a_node(cluster, "gpu-sick")
    for _ in range(2):
        of_group(sick, "prefill", **CRASHES)
    for number in range(3):
        of_group(a_node(cluster, f"gpu-{number}"), "decode")
    assert workloads_by_node(cluster, now=NOON) == {}

    for number in range(3):
        of_group(Node.objects.get(name=f"gpu-{number}"), "prefill")
    (here,) = workloads_by_node(cluster, now=NOON)["gpu-sick"]

    assert (here.failing, here.running_elsewhere) == (2, 3)


@pytest.mark.parametrize(
    ("indices", "severity", "said"),
    [
        ((None, None, None), "note", "Failing pods of team-a/train here: 1\nTries: 3"),
        (("4", "4", "4"), "note", "Failing pods of team-a/train here: 1\nTries: 3"),
        (("4", "5", "5"), "warning", "Failing pods of team-a/train here: 2\nTries: 3"),
    ],
)
def test_tries_of_one_piece_of_work_of_a_job_are_one_failure_of_its_node(cluster, indices, severity, said):
    def of_job(node, index=None, **given):
        labels = {"batch.kubernetes.io/job-completion-index": index} if index else {}
        return a_pod(node, owner_kind="Job", owner_name="train", owner_uid="job-1", labels=labels, **given)

    sick = a_node(cluster, "gpu-sick")
    for index in indices:
        of_job(sick, index, **FAILED)
    for number in range(3):
        of_job(a_node(cluster, f"gpu-{number}"), f"{number}")

    looked(cluster, 0, 5)

    finding = Finding.objects.open().get(rule="workload-fails-here")
    assert finding.severity == severity
    assert said in told(finding)


def test_tries_of_a_job_elsewhere_are_one_failure_there(cluster):
    sick, other = a_node(cluster, "gpu-sick"), a_node(cluster, "gpu-other")
    of_job = {"owner_kind": "Job", "owner_name": "train", "owner_uid": "job-1"}
    for node in (sick, other, other, other):
        a_pod(node, **of_job | FAILED)
    a_pod(a_node(cluster, "gpu-1"), **of_job)

    (here,) = workloads_by_node(cluster, now=NOON)["gpu-sick"]

    assert (here.failing, here.failing_elsewhere) == (1, 1)


def test_of_many_owners_that_fail_the_same_ones_are_looked_at_each_time(cluster, monkeypatch):
    monkeypatch.setattr(workload_failures, "TEMPLATES", 2)
    for uid in ("rs-3", "rs-1", "rs-2"):
        of_one_template(a_node(cluster), uid=uid, **CRASHES)
        of_one_template(a_node(cluster), uid=uid)

    found = workload_failures._failing_templates(cluster, now=NOON)

    assert found == ["rs-1", "rs-2"]


def test_pods_are_read_without_the_labels_of_their_nodes(cluster):
    a_failing_workload(cluster)

    with CaptureQueriesContext(connection) as asked:
        workloads_by_node(cluster, now=NOON)

    joined = [each["sql"] for each in asked if 'JOIN "fleet_node"' in each["sql"]]
    assert joined
    assert not any('"fleet_node"."labels"' in sql for sql in joined)


def test_a_pod_that_its_kubelet_evicted_did_not_fail_by_itself(cluster):
    over = {"phase": "Failed", "status": "Evicted", "is_ready": False, "crashed_at": NOON - 20 * MINUTE}
    a_failing_workload(cluster, **over | {"waiting_reason": "Evicted: The node was low on resource: memory."})

    assert workloads_by_node(cluster, now=NOON) == {}


def test_nothing_is_blamed_while_its_driver_is_replaced(cluster):
    a_failing_workload(cluster)
    Node.objects.filter(name="gpu-sick").update(upgrade_state="pod-restart-required")

    looked(cluster, 0, 5)

    assert found("workload-fails-here") == []


def test_where_the_exporter_says_which_gpu_the_gpu_is_named(cluster):
    node = a_node(cluster, "gpu-sick", layout="gpu=whole")
    pods = [of_one_template(node, **(CRASHES if number == 3 else {})) for number in range(4)]
    devices = [
        {"uuid": f"GPU-{number}", "index": number, "gi_id": "", "profile": "",
         "pods": [{"uid": pod.uid, "namespace": pod.namespace, "name": pod.name, "container": "main"}]}
        for number, pod in enumerate(pods)
    ]  # fmt: skip
    ExporterReading.objects.create(cluster=cluster, node_name=node.name, devices=devices, read_at=NOON, tried_at=NOON)

    (here,) = workloads_by_node(cluster, now=NOON)["gpu-sick"]

    assert (here.gpu, here.failing, here.running) == (3, 1, 3)


def test_it_costs_the_same_for_few_and_for_many(cluster, django_assert_max_num_queries):
    for number in range(12):
        of_one_template(a_node(cluster, f"sick-{number}"), uid=f"rs-{number}", **CRASHES)
        of_one_template(a_node(cluster, f"well-{number}"), uid=f"rs-{number}")

    with django_assert_max_num_queries(9):
        assert len(workloads_by_node(cluster, now=NOON)) == 12


def test_a_driver_pod_and_a_label_that_disagree_are_a_finding_once_they_do_so_for_ten_minutes(cluster):
    node = a_node(cluster, "gpu-1", driver_version="570.172.08")
    a_pod(node, operand="driver", gpus=0, image="nvcr.io/nvidia/driver:580.95.05-ubuntu22.04")

    looked(cluster, 0, 9)
    assert found("versions-disagree") == []
    looked(cluster, 10)

    assert "570.172.08\nThe image of its driver pod: 580.95.05-ubuntu22.04" in found("versions-disagree")[0]


@pytest.mark.parametrize(
    "given",
    [
        {"is_ready": False},
        {"deleted_at": NOON},
        {"image": "nvcr.io/nvidia/driver@sha256:0123"},
        {"image": "registry/driver:latest"},
        {"image": "registry/driver:2.1-ubuntu22.04"},
        {"image": "registry/driver:580.95.05-grid-ubuntu22.04"},
        {"image": "registry/vgpu-guest-driver:580.95.05-ubuntu22.04"},
        {"image": "nvcr.io/nvidia/driver:570.172.08-ubuntu22.04"},
    ],
)
def test_a_driver_pod_that_has_not_loaded_its_driver_or_does_not_say_which_disagrees_with_nobody(cluster, given):
    image = {"image": "nvcr.io/nvidia/driver:580.95.05-ubuntu22.04"}
    a_pod(a_node(cluster, "gpu-1", driver_version="570.172.08"), operand="driver", gpus=0, **image | given)

    looked(cluster, 0, 10)

    assert found("versions-disagree") == []


@pytest.mark.parametrize("given", [{"driver_unknown_since": NOON}, {"gpu_vendor": "amd"}, {"driver_version": ""}])
def test_a_node_without_a_label_or_of_another_vendor_disagrees_with_nobody(cluster, given):
    a_pod(a_node(cluster, "gpu-1", **given), operand="driver", gpus=0, image="x/driver:580.95.05-ubuntu22.04")

    looked(cluster, 0, 10)

    assert found("versions-disagree") == []


def test_of_slices_the_newest_generation_counts(cluster):
    node = a_node(cluster, "gpu-1", driver_version="580.95.05")
    for generation, version in ((1, "570.172.8"), (2, "580.95.5")):
        ResourceSlice.objects.create(
            cluster=cluster, uid=f"slice-{generation}", name=f"slice-{generation}", driver="gpu.nvidia.com",
            pool="gpu-1", pool_generation=generation, node_name=node.name, changed_at=NOON,
            devices=[{"name": "gpu-0", "driver_version": version}],
        )  # fmt: skip

    looked(cluster, 0, 10)
    assert found("versions-disagree") == []
    ResourceSlice.objects.filter(pool_generation=2).update(devices=[{"name": "gpu-0", "driver_version": "570.172.8"}])
    looked(cluster, 11, 21)

    assert "Its ResourceSlice: 570.172.8" in found("versions-disagree")[0]


@pytest.mark.parametrize(("version", "is_named"), [("v1.35.0", True), ("v1.34.9", False), ("", False)])
def test_missing_gpus_of_an_incomplete_pool_name_the_pool(cluster, version, is_named):
    """Before 1.35, the scheduler allocates from it: it is no cause."""
    Cluster.objects.update(server_version=version)
    gpus = {"gpu.nvidia.com": 2}
    a_node(cluster, "gpu-1", expected=gpus, capacity=gpus, allocatable={"gpu.nvidia.com": 0})
    ResourceSlice.objects.create(
        cluster=cluster, uid="slice-1", name="slice-1", driver="gpu.nvidia.com", pool="gpu-1", pool_slices=2,
        node_name="gpu-1", changed_at=NOON,
    )  # fmt: skip

    looked(cluster, 0, 2)

    text = found("allocatable-below-expected")[0]
    assert ("Pool gpu-1 of gpu.nvidia.com: 1 of 2 ResourceSlices" in text) is is_named


def test_a_cordon_that_an_upgrade_takes_off_is_remembered_after_its_note_is_gone(cluster):
    """Z7."""
    node = a_node(
        cluster, "gpu-1", upgrade_state="pod-restart-required", annotations={WAS_CORDONED: "true"},
        is_unschedulable=True,
    )  # fmt: skip
    looked(cluster, 0)
    assert found("cordon-removed") == []

    Node.objects.filter(pk=node.pk).update(is_unschedulable=False)
    looked(cluster, 1)
    Node.objects.filter(pk=node.pk).update(upgrade_state="upgrade-done", annotations={})
    looked(cluster, 2, 60)
    assert found("cordon-removed")[0].startswith("A driver upgrade removed the cordon of gpu-1")

    Node.objects.filter(pk=node.pk).update(is_unschedulable=True)
    looked(cluster, 61)
    assert found("cordon-removed") == []
    Node.objects.filter(pk=node.pk).update(is_unschedulable=False)
    looked(cluster, 62)
    assert found("cordon-removed") == []


def test_a_cordon_that_nobody_set_again_is_told_for_a_day(cluster):
    node = a_node(cluster, "gpu-1", upgrade_state="validation-required", annotations={WAS_CORDONED: "true"})
    looked(cluster, 0)
    Node.objects.filter(pk=node.pk).update(upgrade_state="upgrade-done", annotations={})

    looked(cluster, 24 * 60 - 1)
    assert found("cordon-removed") != []
    looked(cluster, 24 * 60 + 1)

    assert found("cordon-removed") == []


@pytest.mark.parametrize(
    "state",
    [
        "upgrade-done", "upgrade-required", "cordon-required", "wait-for-jobs-required", "pod-deletion-required",
        "drain-required", "upgrade-failed",
    ],
)  # fmt: skip
def test_a_cordon_that_a_person_took_off_before_the_driver_s_pod_restarted_is_theirs(cluster, state):
    a_node(cluster, "gpu-1", upgrade_state=state, annotations={WAS_CORDONED: "true"})

    looked(cluster, 0)

    assert found("cordon-removed") == []


def test_a_combination_that_is_known_to_fail_is_one_finding_of_the_cluster(cluster):
    cluster.server_version = "v1.36.4"
    cluster.save(update_fields=["server_version"])
    a_driver_object(cluster, "cluster-policy", kind="ClusterPolicy", operator_version="v26.7.0", uses_nri=True)
    for number in range(3):
        a_node(cluster, f"gpu-{number}", gpu_vendor="nvidia", container_runtime="cri-o://1.33.4")
    counted()

    looked(cluster, 0)
    assert found("unsupported-combination") == []
    looked(cluster, 30)

    finding = Finding.objects.open().get(rule="unsupported-combination")
    assert (finding.subject, finding.node, finding.severity) == ("GPU stack", None, "warning")
    assert "it needs CRI-O 1.34 or newer" in told(finding)
    assert "node" not in finding.fingerprint  # it is not written again when a node joins
