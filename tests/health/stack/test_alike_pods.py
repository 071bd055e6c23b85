"""Pods that differ in their names share the rule of their cause, and each is named in its own steps."""

from collections import Counter

import pytest

from health.stack import pods as stack_pods
from health.stack.pods import reasons
from tests.make import NOON, a_cluster, a_node, a_pod

pytestmark = pytest.mark.django_db
CRASH = {"status": "CrashLoopBackOff", "is_ready": False, "stuck_container": "main", "restarts": 9}


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
