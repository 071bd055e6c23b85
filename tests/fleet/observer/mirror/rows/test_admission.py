"""Quotas, limits and priorities, as kubernetes.io/docs/concepts/{policy,scheduling-eviction} show them."""

import msgspec

from fleet.observer.mirror.rows.admission import limit_range_row, priority_class_row, quota_row
from kube.structs.cluster_objects import LimitRangeSeen, PriorityClassSeen, QuotaSeen

META = {"name": "compute", "namespace": "research", "uid": "uid-of-it"}
HARD = {"requests.cpu": "1", "requests.memory": "1Gi", "requests.nvidia.com/gpu": 4}


def test_a_quota_is_what_is_enforced_and_used():
    used = {"requests.cpu": "0", "requests.nvidia.com/gpu": "2"}
    document = {"metadata": META, "spec": {"hard": HARD | {"pods": "9"}}, "status": {"hard": HARD, "used": used}}

    row = quota_row(msgspec.convert(document, QuotaSeen, strict=False))

    assert row["hard"] == {"requests.cpu": "1", "requests.memory": "1Gi", "requests.nvidia.com/gpu": "4"}
    assert row["used"] == used


def test_a_quota_that_nobody_counted_yet_is_what_it_asks_for():
    row = quota_row(msgspec.convert({"metadata": META, "spec": {"hard": HARD}, "status": {}}, QuotaSeen, strict=False))

    assert (row["hard"]["requests.nvidia.com/gpu"], row["used"]) == ("4", {})


def test_a_limit_range_says_only_what_it_limits():
    limit = {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "500m"}, "max": {"cpu": "1"}}

    row = limit_range_row(msgspec.convert({"metadata": META, "spec": {"limits": [limit]}}, LimitRangeSeen))

    assert row["limits"] == [limit]


def test_a_priority_class_has_its_fields_beside_its_metadata():
    document = {
        "metadata": {"name": "high-priority-nonpreempting", "uid": "uid-of-it"},
        "value": 1000000,
        "preemptionPolicy": "Never",
        "globalDefault": False,
        "description": "This priority class will not cause other pods to be preempted.",
    }

    row = priority_class_row(msgspec.convert(document, PriorityClassSeen))

    assert (row["value"], row["is_default"], row["preemption_policy"]) == (1000000, False, "Never")
