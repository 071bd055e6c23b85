"""Rows of Kueue's objects and of PodGroups."""

from typing import Any

import msgspec

from fleet.models.queues import QueueSystem
from fleet.observer.mirror.rows.queues import kueue_workload_row, pod_group_row, queue_row
from kube.structs.queues import KueueWorkloadSeen, PodGroupSeen, QueueSeen

META = {"name": "job-train", "namespace": "team-a", "uid": "u", "creationTimestamp": "2026-11-21T08:00:00Z"}
NO_QUOTA = "insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed"


def a_workload(conditions: list[dict[str, Any]], **status: Any) -> KueueWorkloadSeen:
    owners = [{"kind": "Job", "name": "train", "uid": "job", "controller": True}]
    spec = {"queueName": "team-a", "priority": 100, "active": True, "podSets": [{"count": 2}]}
    seen = {
        "metadata": META | {"ownerReferences": owners},
        "spec": spec,
        "status": {"conditions": conditions, **status},
    }
    return msgspec.convert(seen, KueueWorkloadSeen)


def test_a_waiting_workload_keeps_the_queues_own_words_and_what_it_requests():
    quota = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": NO_QUOTA}
    requests = [{"name": "main", "resources": {"nvidia.com/gpu": "16", "cpu": "8"}}]

    row = kueue_workload_row(a_workload([quota], resourceRequests=requests))

    assert (row["queue"], row["priority"], row["members"]) == ("team-a", 100, 2)
    assert (row["owner_kind"], row["owner_name"], row["owner_uid"]) == ("Job", "train", "job")
    assert (row["is_waiting"], row["reason"], row["message"]) == (True, "Pending", NO_QUOTA)
    assert row["requests"] == {"nvidia.com/gpu": "16", "cpu": "8"}


def test_reserved_quota_waits_for_its_checks_and_a_finished_workload_has_no_row():
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "Quota reserved"}
    open_checks = {"type": "Admitted", "status": "False", "reason": "UnsatisfiedAdmissionChecks", "message": "Checks."}
    checks = [{"name": "prov", "state": "Pending", "message": "No node yet"}, {"name": "other", "state": "Ready"}]

    row = kueue_workload_row(
        a_workload([reserved, open_checks], admission={"clusterQueue": "gpus"}, admissionChecks=checks)
    )

    assert (row["is_waiting"], row["admitted_to"]) == (True, "gpus")
    assert row["message"] == "Checks. prov: Pending. No node yet"
    admitted = {"type": "Admitted", "status": "True"}
    assert not kueue_workload_row(a_workload([reserved, admitted]))["is_waiting"]
    assert kueue_workload_row(a_workload([{"type": "Finished", "status": "True"}])) is None


def test_a_cluster_queue_has_its_quotas_in_both_versions():
    resource = {"name": "nvidia.com/gpu", "nominalQuota": "64", "borrowingLimit": "8"}
    used = {"name": "nvidia.com/gpu", "total": "60", "borrowed": "0"}
    spec = {
        "resourceGroups": [
            {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "h100", "resources": [resource]}]}
        ],
        "queueingStrategy": "StrictFIFO",
        "cohort": "all",
    }
    status = {
        "conditions": [{"type": "Active", "status": "False", "reason": "FlavorNotFound", "message": "No flavor h100"}],
        "flavorsReservation": [{"name": "h100", "resources": [used]}],
        "pendingWorkloads": 3,
    }
    meta = {"name": "gpus", "uid": "q"}

    row = queue_row(msgspec.convert({"metadata": meta, "spec": spec, "status": status}, QueueSeen), "ClusterQueue")

    assert (row["cohort"], row["strategy"], row["pending"]) == ("all", "StrictFIFO", 3)
    assert row["trouble"] == "FlavorNotFound: No flavor h100"
    assert row["quotas"] == [
        {
            "flavor": "h100",
            "resource": "nvidia.com/gpu",
            "nominal": "64",
            "borrowing": "8",
            "reserved": "60",
            "borrowed": "0",
        }
    ]


def test_pod_groups_of_volcano_and_kai_say_why_they_wait():
    condition = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "8/8 tasks"}
    status = {"phase": "Inqueue", "conditions": [condition]}
    volcano = {"metadata": META, "spec": {"minMember": 8, "queue": "gold"}, "status": status}
    reasons = [{"reason": "OverLimit", "message": "The queue has reached its limit of 8 GPUs"}]
    told = [{"type": "UnschedulableOnNodePool", "reason": "Unschedulable", "reasons": reasons}]
    kai = {"metadata": META, "spec": {"minMember": 2, "queue": "team"}, "status": {"schedulingConditions": told}}

    first = pod_group_row(msgspec.convert(volcano, PodGroupSeen), QueueSystem.VOLCANO)
    second = pod_group_row(msgspec.convert(kai, PodGroupSeen), QueueSystem.KAI)

    assert (first["queue"], first["members"], first["reason"], first["message"]) == (
        "gold", 8, "NotEnoughResources", "8/8 tasks",
    )  # fmt: skip
    assert (second["reason"], second["message"]) == (
        "Unschedulable",
        "OverLimit: The queue has reached its limit of 8 GPUs",
    )
    done = {"metadata": META, "spec": {}, "status": {"phase": "Completed"}}
    assert pod_group_row(msgspec.convert(done, PodGroupSeen), QueueSystem.VOLCANO) is None
