"""Pods that differ in their names share the rule of their cause, and each is named in its own steps."""

from collections import Counter

import pytest

from health.stack import pods as stack_pods
from health.stack.pods import reason_in_log, reasons
from tests.make import NOON, a_cluster, a_node, a_pod

pytestmark = pytest.mark.django_db
CRASH = {"status": "CrashLoopBackOff", "is_ready": False, "stuck_container": "main", "restarts": 9}


def test_a_further_line_with_a_known_cause_explains_a_general_last_line():
    crash = CRASH | {"last_words": "RuntimeError: Engine process failed to start. See stack trace for the root cause."}
    node = a_node(a_cluster())
    pods = [
        a_pod(node, "known", more_words="ValueError: a\nCUDA out of memory", **crash),
        a_pod(node, "general", **crash),
    ]

    found = reasons(pods, NOON)

    assert [found[pod.uid].key for pod in pods] == ["cuda_out_of_memory", "engine_failed"]
    assert found[pods[0].uid].quote == "CUDA out of memory"


def test_alike_pods_look_for_a_rule_once_and_keep_their_names(monkeypatch):
    searched = Counter()
    find = stack_pods.waiting_rule
    monkeypatch.setattr(stack_pods, "waiting_rule", lambda signs: searched.update(["rule"]) or find(signs))
    node = a_node(a_cluster())
    alike = [a_pod(node, f"train-{at}", waiting_reason="CrashLoopBackOff: back-off", **CRASH) for at in range(3)]
    other = a_pod(node, "other", waiting_reason="CrashLoopBackOff: back-off", last_words="CUDA out of memory", **CRASH)

    found = reasons([*alike, other], NOON)

    assert searched["rule"] == 2
    assert all(pod.name in " ".join(found[pod.uid].steps) for pod in alike)
    assert found[other.uid].key != found[alike[0].uid].key


def test_a_pod_without_a_node_is_told_of_the_resource_that_it_asks_for():
    tainted = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {amd.com/gpu: present}"
    waits = {"phase": "Pending", "is_ready": False, "waiting_reason": f"Unschedulable: {tainted}"}
    asked = {"nvidia.com/mig-1g.10gb": 1}
    pod = a_pod(a_node(a_cluster()), "waits", node_name="", resources=asked, **waits)
    pod.node = None

    assert "nvidia.com/mig.config" in reasons([pod], NOON)[pod.uid].action


def test_the_log_of_a_container_without_gpus_is_not_read_as_of_one_that_has_them():
    settings = {"without_gpus": ["proxy"]}
    pod = a_pod(a_node(a_cluster()), "both", resources={"nvidia.com/gpu": 1}, container_settings=settings)
    lines = ["RuntimeError: No CUDA GPUs are available"]

    steps = [reason_in_log(pod, name, lines, now=NOON).steps for name in ("main", "proxy")]

    assert ["Check that the container itself asks for a GPU." in each for each in steps] == [False, True]
