"""The last lines of what crashed, from a real API server with its kubelets behind it."""

import time
from collections.abc import Iterator
from datetime import timedelta
from time import process_time

import pytest
from django.utils import timezone

from fleet.models import Pod
from health.logs import crashes
from health.models import CrashLog
from health.stack import read_stack
from tests import make
from tests.api_server import ApiServer, an_api_server
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db

PODS = "/api/v1/namespaces/gpu-operator/pods"
DRIVER = "app.kubernetes.io/component=nvidia-driver"
CRASHING = "broken_operand:how=headers"


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Two machines whose driver finds no kernel headers."""
    folder = tmp_path_factory.mktemp("sick")
    with an_api_server(folder, "--fleet", "small", "--nodes", "2", "--speed", "60", "--faults", CRASHING) as server:
        yield server


@pytest.fixture
def cluster(sick):
    uid = sick.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    return make.a_cluster(uid=uid, kubeconfig=sick.kubeconfig, context=sick.context)


@pytest.fixture
def crashed(sick, cluster) -> Pod:
    """A driver pod that crashed, as the observer would write it."""
    until = time.monotonic() + PATIENCE_S
    while True:
        for pod in sick.get(f"{PODS}?labelSelector={DRIVER}")["items"]:
            for status in pod["status"].get("containerStatuses") or ():
                if status["restartCount"] and "waiting" in status["state"]:
                    return a_row(cluster, pod["metadata"], status)
        assert time.monotonic() < until, "no driver crashed"
        time.sleep(0.1)


def a_row(cluster, metadata, status, **given) -> Pod:
    node = make.a_node(cluster)
    row = {"uid": metadata["uid"], "restarts": status["restartCount"], "stuck_container": status["name"]}
    words = {"waiting_reason": "CrashLoopBackOff: back-off", "is_ready": False, "operand": "driver"}
    return make.a_pod(node, metadata["name"], namespace="gpu-operator", gpus=0, **row | words | given)


def test_a_crash_is_read_once_and_tells_why(sick, cluster, crashed):
    read = [crashes.read_due_logs(cluster, clock=timezone.now) for _ in range(2)]

    (kept,) = CrashLog.objects.all()
    assert read == [1, 0]
    assert (kept.restarts, kept.refused) == (crashed.restarts, "")
    assert "Could not resolve Linux kernel version" in kept.lines
    (driver,) = read_stack(crashed.node, now=timezone.now()).operands
    assert driver.cause.key == "kernel_headers"


def test_the_next_crash_is_read_again(cluster, crashed):
    crashes.read_due_logs(cluster, clock=timezone.now)
    Pod.objects.update(restarts=crashed.restarts + 1)

    assert crashes.read_due_logs(cluster, clock=timezone.now) == 1
    assert CrashLog.objects.get().restarts == crashed.restarts + 1


def test_what_is_not_allowed_is_said_with_the_rule_and_not_asked_for_again(sick, cluster, crashed):
    make.a_pod(
        crashed.node, "other", namespace="gpu-operator", gpus=0, operand="driver", is_ready=False,
        stuck_container="c", waiting_reason="CrashLoopBackOff: x",
    )  # fmt: skip
    sick.suffer("errors", code=403, path="/log")
    before = len(sick.requests())

    read = crashes.read_due_logs(cluster, clock=timezone.now)

    asked = [one for one in sick.requests()[before:] if "/log" in one["path"]]
    sick.delete("/simulator/faults?key=error_500")  # the headers stay missing
    assert (read, len(asked)) == (2, 1)
    assert all("not allowed: the right get on pods/log is missing" in row.refused for row in CrashLog.objects.all())
    assert crashes.read_due_logs(cluster, clock=timezone.now) == 0


def test_another_cluster_in_its_place_is_not_asked(cluster, crashed):
    cluster.uid = "another"

    assert crashes.read_due_logs(cluster, clock=timezone.now) == 0
    assert not CrashLog.objects.exists()


def test_a_cluster_that_does_not_answer_costs_nothing(cluster, crashed):
    cluster.kubeconfig = "/nowhere"

    assert crashes.read_due_logs(cluster, clock=timezone.now) == 0


def test_a_pod_that_is_gone_is_remembered_as_such(cluster, crashed):
    Pod.objects.update(name="gone")

    crashes.read_due_logs(cluster, clock=timezone.now)

    assert CrashLog.objects.get().refused == "the pod is gone."


@pytest.mark.parametrize(
    "given",
    [
        {"is_ready": True},
        {"operand": ""},
        {"deleted_at": make.NOON},
        {"waiting_reason": "ImagePullBackOff: no such image", "restarts": 0},
        {"stuck_container": "", "operand": "dcgm"},
        {"stuck_container": "toolkit-validation", "waiting_reason": "", "started_at": make.NOON},
        {
            "operand": "dcgm",
            "stuck_container": "toolkit-validation",
            "waiting_reason": "",
            "started_at": make.NOON - timedelta(hours=1),
        },
    ],
)
def test_what_has_no_log_worth_asking_for(given):
    node = make.a_node(make.a_cluster(kubeconfig="/nowhere"))
    row = {"operand": "driver", "is_ready": False, "stuck_container": "c", "waiting_reason": "CrashLoopBackOff: x"}
    make.a_pod(node, gpus=0, **row | given)

    assert not list(crashes._due(node.cluster, now=make.NOON))


@pytest.mark.parametrize(
    ("given", "container"),
    [
        ({"operand": "driver", "phase": "Running"}, "nvidia-driver-ctr"),
        (
            {"operand": "operator-validator", "phase": "Pending", "stuck_container": "cuda-validation"},
            "cuda-validation",
        ),
        (
            {"operand": "device-plugin", "phase": "Pending", "stuck_container": "nvidia-driver-installer"},  # GKE's
            "nvidia-driver-installer",
        ),
    ],
)
def test_what_neither_ends_nor_becomes_ready_is_asked_too(given, container):
    node = make.a_node(make.a_cluster())
    make.a_pod(node, gpus=0, is_ready=False, started_at=make.NOON - timedelta(minutes=6), **given)

    (due,) = crashes._due(node.cluster, now=make.NOON)

    assert (due.container, due.has_crashed) == (container, False)


@pytest.mark.parametrize(
    ("operand", "label", "failed", "container"),
    [
        ("mig-manager", "nvidia.com/mig.config.state", "failed", "nvidia-mig-manager"),
        ("cc-manager", "nvidia.com/cc.mode.state", "failed", "nvidia-cc-manager"),
        ("vgpu-device-manager", "nvidia.com/vgpu.config.state", "failed", "nvidia-vgpu-device-manager"),
        ("amd-config-manager", "dcm.amd.com/gpu-config-profile-state", "failure", ""),
    ],
)
def test_a_manager_that_says_by_a_label_that_it_failed_is_asked_too(operand, label, failed, container):
    """They go on running, so that they are ready: gpu-operator, assets/state-*-manager."""
    node = make.a_node(make.a_cluster(), labels={label: failed})
    well = make.a_node(node.cluster, labels={label: "success"})
    make.a_pod(node, gpus=0, operand=operand, is_ready=True)
    make.a_pod(well, gpus=0, operand=operand, is_ready=True)

    (due,) = crashes._failed_by_label(node.cluster, now=make.NOON)

    assert (due.pod.node_name, due.container, due.has_crashed) == (node.name, container, False)
    CrashLog.objects.create(
        cluster=node.cluster, pod_uid=due.pod.uid, container=container, restarts=due.pod.restarts, read_at=make.NOON
    )
    assert not list(crashes._failed_by_label(node.cluster, now=make.NOON + timedelta(minutes=1)))


def test_what_is_ready_and_offers_nothing_is_read():
    node = make.a_node(make.a_cluster(), gpus=0, capacity={})
    well = make.a_node(node.cluster)
    long_ago = {"gpus": 0, "is_ready": True, "started_at": make.NOON - timedelta(hours=1)}
    for each in (node, well):
        make.a_pod(each, operand="amd-dra-driver", **long_ago)
        make.a_pod(each, operand="dcgm", **long_ago)
    make.a_pod(node, operand="device-plugin", **long_ago | {"started_at": make.NOON})

    (due,) = crashes._offering_nothing(node.cluster, now=make.NOON)

    assert (due.pod.node_name, due.container, due.has_crashed) == (node.name, "plugin", False)


def test_what_is_ready_is_read_where_a_finding_misses_its_work_and_again_while_it_does():
    silent = make.a_node(make.a_cluster())
    well = make.a_node(silent.cluster)
    long_ago = {"gpus": 0, "is_ready": True, "started_at": make.NOON - timedelta(hours=1)}
    for each in (silent, well):
        make.a_pod(each, operand="dcgm-exporter", **long_ago)
        make.a_pod(each, operand="driver", **long_ago)
    make.a_finding(silent.cluster, node=silent, rule="exporter-silent")
    make.a_finding(silent.cluster, "node away", rule="exporter-silent")

    (due,) = crashes._missed(silent.cluster, now=make.NOON)

    assert (due.pod.node_name, due.pod.operand, due.has_crashed) == (silent.name, "dcgm-exporter", False)
    make.a_crash_log(due.pod, "x", container="", read_at=make.NOON)
    assert not list(crashes._missed(silent.cluster, now=make.NOON + timedelta(minutes=14)))
    assert list(crashes._missed(silent.cluster, now=make.NOON + timedelta(minutes=15)))


def test_each_ready_operand_has_its_turn(django_assert_num_queries):
    """Also pods of another rule, and those beyond what a run reads."""
    nodes = [make.a_node(make.a_cluster())]
    nodes += [make.a_node(nodes[0].cluster) for _ in range(crashes.AT_MOST + 1)]
    long_ago = {"gpus": 0, "is_ready": True, "started_at": make.NOON - timedelta(hours=1)}
    read = []
    for node in nodes[:-1]:
        pod = make.a_pod(node, operand="dcgm-exporter", **long_ago)
        make.a_finding(node.cluster, node=node, rule="exporter-silent")
        if len(read) < crashes.AT_MOST:
            read.append(make.a_crash_log(pod, "x", container="", read_at=make.NOON - len(read) * timedelta(seconds=1)))
    make.a_pod(nodes[-1], operand="driver", **long_ago)
    make.a_finding(nodes[-1].cluster, node=nodes[-1], rule="gpus-never-offered")

    with django_assert_num_queries(1):
        now = [due.pod.node_name for due in crashes._missed(nodes[0].cluster, now=make.NOON)]
    later = [due.pod.uid for due in crashes._missed(nodes[0].cluster, now=make.NOON + crashes.AGAIN)]

    assert now == [nodes[-2].name, nodes[-1].name]
    assert later[2:] == [log.pod_uid for log in reversed(read[2:])]


def test_a_ready_driver_is_read_where_gpus_are_missing():
    node = make.a_node(make.a_cluster())
    make.a_pod(node, operand="driver", gpus=0, is_ready=True, started_at=make.NOON - timedelta(hours=1))
    make.a_finding(node.cluster, node=node, rule="allocatable-below-expected")

    (due,) = crashes._missed(node.cluster, now=make.NOON)

    assert (due.pod.operand, due.container) == ("driver", "nvidia-driver-ctr")


def test_what_crashed_comes_before_what_is_slow_and_a_driver_first():
    node, long_ago = make.a_node(make.a_cluster()), make.NOON - timedelta(hours=1)
    stuck = {"gpus": 0, "is_ready": False, "stuck_container": "c", "started_at": long_ago}
    make.a_pod(node, "slow", operand="operator-validator", **stuck)
    make.a_pod(node, "plugin", operand="device-plugin", waiting_reason="CrashLoopBackOff: x", **stuck)
    make.a_pod(node, "driver", operand="driver", waiting_reason="CrashLoopBackOff: x", **stuck)

    due = sorted(crashes._due(node.cluster, now=make.NOON), key=crashes._urgency)

    assert [one.pod.name for one in due] == ["driver", "plugin", "slow"]


def test_the_logs_of_pods_that_are_gone_go_with_them(cluster, crashed):
    make.a_crash_log(Pod(cluster=cluster, uid="gone", stuck_container="c", restarts=1), "old")

    crashes.read_due_logs(cluster, clock=timezone.now)

    assert not CrashLog.objects.filter(pod_uid="gone").exists()


def test_a_log_is_kept_without_progress_escapes_and_what_is_too_long():
    lines = ["first", "\x1b[31mred\x1b[0m", "  [#####   ]  69%", ".....", "", "10%\r100%", "x y " * 500]

    assert crashes.lines_to_store(lines).splitlines()[:-1] == ["first", "red", "100%"]
    assert len(crashes.lines_to_store(f"{number} " + "word " * 200 for number in range(100))) <= crashes.KEPT_CHARS
    assert len(crashes.lines_to_store(str(number) for number in range(100)).splitlines()) == crashes.KEPT_LINES


@pytest.mark.parametrize("line", [".", "-", "a.", "token", "a://", "-eyJa", "password=x "])
def test_a_line_without_an_end_costs_no_more_than_its_length(line):
    """A ruler of 8 kB took nine seconds, and one of 64 kB would have taken ten minutes of a worker."""

    def cost_s(length: int) -> float:
        began = process_time()
        crashes.lines_to_store([line * (length // len(line)) + "!"])
        return process_time() - began

    few, many = (min(cost_s(length) for _ in range(3)) for length in (1_000, 8_000))

    assert many < 16 * max(few, 1e-3)


def test_what_is_cut_off_a_line_leaves_no_part_of_a_secret():
    secret = "k3" * 20
    said = f"{'word ' * 399}{secret}"

    assert crashes.lines_to_store([said, f"{'A1' * 900} {said[-240:]}"]).count("k3") == 0
