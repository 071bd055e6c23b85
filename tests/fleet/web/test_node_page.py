from datetime import timedelta

import pytest

from tests import make
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
        node, is_ready=False, waiting_because="CrashLoopBackOff: back-off", last_words="insmod failed", restarts=4
    )

    seen = page(viewer, f"/nodes/{node.pk}")

    assert "Driver not ready" in seen.text
    assert "570.172.08-ubuntu22.04" in seen.text
    assert "keeps crashing (CrashLoopBackOff, 4 restarts so far). Its last line: insmod failed" in seen.text


def test_names_an_operand_that_should_run_here_and_does_not(viewer):
    cluster = make.a_cluster()
    node = make.a_node(cluster, labels={"nvidia.com/gpu.deploy.dcgm-exporter": "paused-for-driver-upgrade"})
    make.an_operand(cluster, "dcgm-exporter", node_selector={"nvidia.com/gpu.deploy.dcgm-exporter": "true"})

    seen = page(viewer, f"/nodes/{node.pk}")

    assert "DCGM exporter paused" in seen.text
    assert "nvidia.com/gpu.deploy.dcgm-exporter=paused-for-driver-upgrade" in seen.text


def test_shows_the_last_lines_of_what_crashed(viewer):
    node = make.a_node(make.a_cluster())
    pod = a_driver_pod(node, is_ready=False, waiting_because="CrashLoopBackOff: back-off")
    make.a_crash_log(pod, "Installing", "Could not resolve Linux kernel version")

    seen = page(viewer, f"/nodes/{node.pk}")

    assert "There are no headers for kernel 6.8.0-60-generic" in seen.text
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


def test_a_label_that_vanished_is_unknown_since_and_not_the_version_it_had(viewer):
    node = make.a_node(make.a_cluster(), driver_unknown_since=NOON - timedelta(minutes=7))

    seen = page(viewer, f"/nodes/{node.pk}")

    assert "Unknown since 11:53 UTC: the label is gone. It last said 570.172.08." in seen.text


def test_a_driver_of_the_host_is_observed_never_managed(viewer):
    node = make.a_node(make.a_cluster(), labels={"nvidia.com/gpu.deploy.driver": "pre-installed"})

    seen = page(viewer, f"/nodes/{node.pk}")

    assert "pre-installed: observed, never managed" in seen.text
    assert "rolled out" not in seen.text


def test_says_that_it_does_not_know_which_gpu_is_sick(viewer):
    node = make.a_node(make.a_cluster(), gpu_allocatable=7)

    seen = page(viewer, f"/nodes/{node.pk}")

    assert "1 GPU is missing: there once, and not to be allocated now. Which of them is not known" in seen.text


def test_a_pod_that_nobody_makes_again_is_named(viewer):
    node = make.a_node(make.a_cluster())
    make.a_pod(node, "lonely", owner_kind="", owner_name="")

    assert "a drain does not bring it back" in page(viewer, f"/nodes/{node.pk}").text


def test_an_unseen_cluster_says_since_when_this_is_how_it_was(viewer):
    node = make.a_node(make.a_cluster(seen_at=NOON - timedelta(minutes=3)))

    assert "Not seen since 11:57:00 UTC" in page(viewer, f"/nodes/{node.pk}").text


def test_a_stranger_gets_404():
    node = make.a_node(make.a_cluster())
    client = visiting(make.a_user())

    for path in (f"/nodes/{node.pk}", f"/parts/nodes/{node.pk}", f"/parts/nodes/{node.pk}/timeline"):
        assert client.get(path).status_code == 404


def test_hostile_words_are_shown_and_not_run(viewer):
    node = make.a_node(
        make.a_cluster(), HOSTILE, uid="hostile", labels={HOSTILE: HOSTILE},
        taints=[{"key": HOSTILE, "effect": "NoSchedule"}],
    )  # fmt: skip
    make.a_pod(node, HOSTILE, uid="hostile", waiting_because=HOSTILE)
    make.a_node_event(node, HOSTILE)

    assert HOSTILE in page(viewer, f"/nodes/{node.pk}").text
    assert HOSTILE in page(viewer, f"/parts/nodes/{node.pk}/timeline").text


def test_the_number_of_queries_does_not_grow_with_the_pods(viewer, queries_of):
    node = make.a_node(make.a_cluster())
    make.a_pod(node)
    with_one = queries_of(viewer, f"/nodes/{node.pk}")

    for _ in range(30):
        make.a_pod(node)

    assert queries_of(viewer, f"/nodes/{node.pk}") == with_one
