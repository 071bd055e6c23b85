"""Messages of schedulers of gangs and queues, in the words of public threads."""

import pytest

from capacity.wait_reasons.answers import DecidingKind
from tests.capacity.wait_reasons.clusters import a_node, a_pod, explained


def waits(message, scheduler="kai-scheduler", **node):
    return explained(a_pod(message=message, placement={"scheduler": scheduler}), a_node("a", **node))


@pytest.mark.parametrize(
    ("scheduler", "message", "title", "summary", "decided_by"),
    [
        (
            "kai-scheduler",
            ("PodSchedulingErrors: Resources were found for 5 pods while 17 are required for gang scheduling. "
            "Additional pods cannot be scheduled due to: no nodes with enough resources were found: 12 cannot "
            "allocate all claims."),
            "Only 5 of 17 pods of the gang can be placed",
            "no nodes with enough resources were found: 12 cannot allocate all claims.", "gang scheduling",
        ),
        (
            "kai-scheduler",
            ("Non-preemptible workload is over quota. Workload requested 4 GPUs, but team-a quota is 8 GPUs, while 6 "
            "GPUs are already allocated for non-preemptible pods."),
            "Quota of queue team-a is used up",
            "It requests 4 GPUs. 6 of 8 are allocated to pods that cannot be preempted.", "team-a",
        ),
        (
            "kai-scheduler",
            ("Non-preemptible workload is over quota. Workload requested 0.2 GPUs, but aafa quota is 0.3 GPUs, while "
            "0.1 GPUs are already allocated for non-preemptible pods."),
            "Quota of queue aafa is used up",
            "0.1 + 0.2 is within 0.3 GPUs. The scheduler rounds: raise the quota a little.", "aafa",
        ),
        (
            "kai-scheduler", "Job is not ready for scheduling. Waiting for 8 pods, currently 3 exist, 0 are gated",
            "Gang waits for pods that do not exist yet", "3 of 8 pods exist.", "gang scheduling",
        ),
        (
            "volcano", "0/0 tasks in gang unschedulable: pod group is not ready, 1 minAvailable",
            "The queue has not admitted the PodGroup",
            "No pod of it exists yet. pod group is not ready, 1 minAvailable", "PodGroup",
        ),
        (
            "volcano", "queue resource quota insufficient: insufficient nvidia.com/gpu", "Its queue has no quota left",
            "queue resource quota insufficient: insufficient nvidia.com/gpu", "queue quota",
        ),
    ],
)  # fmt: skip
def test_a_gang_or_a_queue_decides(scheduler, message, title, summary, decided_by):
    found = waits(message, scheduler)

    assert (found.title, found.summary, found.decided_by) == (title, summary, decided_by)
    assert found.changes


def test_the_counts_of_kai_are_compared_with_ours():
    message = "no nodes with enough resources were found: 1 node(s) didn't have enough resources: GPUs."

    found = waits(message, used=8)

    assert found.title == "Too few free GPUs: the pod requests 1 GPU"
    assert (found.verdict.counts, found.differences) == ({"resource:nvidia.com/gpu": 1}, [])


def test_a_reason_that_is_not_known_is_quoted_and_not_called_fine():
    found = waits("Hyper node h1 is full")

    assert (found.title, found.summary) == (
        "Scheduler kai-scheduler names a reason of its own",
        "Hyper node h1 is full",
    )
    assert found.decided_kind is DecidingKind.SCHEDULER
    assert not found.is_waiting


def test_an_unbound_claim_that_is_counted_per_node_is_about_volumes():
    found = waits("0/1 nodes are available: 1 pod has unbound immediate PersistentVolumeClaims.", "hami-scheduler")

    assert found.decided_kind is DecidingKind.VOLUME_CLAIM


def test_nodes_are_not_compared_while_the_gang_waits():
    found = waits("Job is not ready for scheduling. Waiting for 8 pods, currently 3 exist, 0 are gated")

    assert found.not_checked[0] == "labels, taints and free amounts of nodes"
