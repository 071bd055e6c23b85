"""The step that validates a node: a test Job on all its GPUs, with three outcomes, and no Job left behind."""

import json
from typing import Any

import pytest

from edges.transition_errors import LostRace
from fleet.models import Node
from kube import client
from operations import commands, operation_round, test_job_tracker
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Freeze, NodeTestJob, Operation
from operations.refusals import BadOperation
from operations.steps import STEPS, test_job
from operations.steps.nodes_in_progress import NodesInProgress
from simulator.actors.diag_report import diag_lines, report
from simulator.kinds import JOB, POD
from tests.operations.test_rounds import begin, node, rounds
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db
NAMESPACE = "gpu-operator"
FAILED = [json.dumps(report(8, failing=3))]


def jobs(ground: Ground) -> list[dict[str, Any]]:
    return ground.store.list(JOB, NAMESPACE)[0]


def under_test(ground: Ground, **options: Any) -> Operation:
    """An operation whose test Job exists, on a cordoned node."""
    rounds(ground, begin(ground, "quarantine", CANARY))
    return rounds(ground, begin(ground, "test", CANARY, options={"test": "dcgm-3"} | options))


def ends(ground: Ground, exit_code: int = 0, output: list[str] | None = None) -> None:
    """Ends the test as Job controller and kubelet would. `output`: None for a diagnostic that passes."""
    (job,) = jobs(ground)
    output = diag_lines(job["spec"]["template"], "test-job") if output is None else output
    ground.simulation.ends.read_log = lambda *_: [f"2026-01-08T12:00:09Z {line}" for line in output]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
    template = job["spec"]["template"]
    name = f"{owner['name']}-x"
    metadata = {"name": name, **template["metadata"], "ownerReferences": [owner | {"controller": True}]}
    ground.store.create(POD, {"metadata": metadata, "spec": template["spec"] | {"nodeName": CANARY}}, NAMESPACE)
    state = {"terminated": {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed"}}
    status = {"name": "test-job", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    seen = {"phase": "Failed" if exit_code else "Succeeded", "containerStatuses": [status]}
    ground.store.patch(POD, name, {"status": seen}, NAMESPACE, how="merge", subresource="status")
    condition = {"type": "Failed" if exit_code else "Complete", "status": "True", "reason": "x"}
    done = {"status": {"conditions": [condition]}}
    ground.store.patch(JOB, job["metadata"]["name"], done, NAMESPACE, how="merge", subresource="status")


def finished(ground: Ground, operation: Operation) -> Operation:
    """The operation after the Job was deleted, with its pod."""
    rounds(ground, operation)
    for pod in ground.store.list(POD, NAMESPACE, label_selector="quarterdeck.io/proof")[0]:
        ground.store.delete(POD, pod["metadata"]["name"], NAMESPACE, grace_s=0)
    return rounds(ground, operation)


def test_the_job_takes_all_gpus_of_the_cordoned_node(ground: Ground):
    operation = under_test(ground)

    (job,) = jobs(ground)
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    gpus = Node.objects.get(cluster=ground.cluster, name=CANARY).gpu_allocatable
    assert container["resources"]["limits"]["nvidia.com/gpu"] == str(gpus)
    assert "dcgmi diag -r 3 --json" in container["command"][-1]
    assert CANARY in str(pod["affinity"])
    assert pod["tolerations"] == [{"operator": "Exists", "effect": "NoSchedule"}]
    assert job["spec"]["activeDeadlineSeconds"] == 3600
    assert job["metadata"]["labels"]["quarterdeck.io/proves-for"] == operation.mark


@pytest.mark.parametrize(
    ("exit_code", "output", "state", "outcome", "words"),
    [
        (0, None, "done", "passed", "dcgmi diag -r 3: passed. 40 results passed on 8 GPUs."),
        (226, FAILED, "failed", "failed", "1 test failed on GPU 3. memory failed on GPU 3: GPU 3 had uncorrectable"),
        (0, ['{"DCGM Diagnostic": {"test_cat'], "failed", "unknown", "The output has no whole report of dcgmi diag"),
        (0, [], "failed", "unknown", "The test completed without output, so it proves nothing"),
    ],
)
def test_the_result_is_kept_with_the_last_words_and_the_job_is_deleted(
    ground: Ground, exit_code: int, output: list[str] | None, state: str, outcome: str, words: str
):
    operation = under_test(ground)
    ends(ground, exit_code, output)
    operation = finished(ground, operation)

    assert (operation.state, node(operation).state) == (OperationState.FINISHED, state)
    assert words in node(operation).reason
    row = NodeTestJob.objects.get()
    assert (row.outcome, row.gone_at is not None) == (outcome, True)
    assert jobs(ground) == []


def test_a_missing_image_is_unknown_at_the_deadline(ground: Ground):
    operation = under_test(ground)
    (job,) = jobs(ground)
    late = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "Job was active too long"}
    ground.store.patch(
        JOB, job["metadata"]["name"], {"status": {"conditions": [late]}}, NAMESPACE, how="merge", subresource="status"
    )
    operation = finished(ground, operation)

    assert (node(operation).state, NodeTestJob.objects.get().outcome) == ("failed", "unknown")
    assert "The test was not started within 1 h" in node(operation).reason


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"gpu_expected": 9}, "a test would skip the rest"),
        ({"shares_expected": 32, "layout": "gpu=whole/mps*4"}, "MPS gives a container one share"),
        ({"slices_expected": 8, "layout": "gpu=1g.10gb"}, "For a sick node: Turn MIG off"),
        ({"gpu_allocatable": None}, "no whole GPUs"),
    ],
)
def test_a_node_that_cannot_be_tested_whole_gets_no_job(ground: Ground, row: dict[str, Any], why: str):
    """lifecycle R34: a test of 7 of 8 GPUs proves nothing about the node."""
    Node.objects.filter(cluster=ground.cluster, name=CANARY).update(**row)
    operation = under_test(ground)

    assert why in node(operation).reason
    assert jobs(ground) == []


SLICES = {"nvidia.com/mig-1g.10gb": 5, "nvidia.com/mig-3g.40gb": 2}


@pytest.mark.parametrize(
    ("exit_code", "printed", "state", "words"),
    [
        (0, "CUDA works on 7 devices.", "done", "CUDA on each device: passed."),
        (1, "MIG-2: CUDA error", "failed", "CUDA on each device: failed. The test ended with exit code 1. MIG-2:"),
        (126, "nvidia-smi lists 6 of 7 devices.", "failed", "CUDA on each device: unknown."),
    ],
)
def test_a_node_with_mig_is_tested_on_each_slice(ground: Ground, exit_code: int, printed: str, state: str, words: str):
    layout = "mig-1g.10gb=1g.10gb mig-3g.40gb=3g.40gb boards:1"
    Node.objects.filter(cluster=ground.cluster, name=CANARY).update(
        allocatable=SLICES, expected=SLICES, slices_expected=7, layout=layout, gpu_allocatable=None
    )
    operation = under_test(ground, test="cuda")
    (container,) = jobs(ground)[0]["spec"]["template"]["spec"]["containers"]
    asked = {name: int(number) for name, number in container["resources"]["limits"].items() if "nvidia" in name}
    assert asked == SLICES
    assert '"$tested" = 7 ' in container["command"][-1]

    ends(ground, exit_code, [printed])
    operation = finished(ground, operation)

    assert (node(operation).state, words in node(operation).reason) == (state, True)


def test_time_slices_are_taken_whole_and_prove_their_gpus(ground: Ground):
    shares = {"nvidia.com/gpu.shared": 32}
    Node.objects.filter(cluster=ground.cluster, name=CANARY).update(
        allocatable=shares, expected=shares, shares_expected=32, layout="gpu.shared=whole/time-slicing*4",
        gpu_allocatable=None,
    )  # fmt: skip
    operation = under_test(ground)
    (container,) = jobs(ground)[0]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu.shared"] == "32"

    ends(ground, output=[json.dumps(report(7))])
    operation = finished(ground, operation)

    assert "It reports 7 GPUs of 8." in node(operation).reason
    assert NodeTestJob.objects.get().outcome == "unknown"


def test_a_node_in_service_gets_no_job(ground: Ground):
    operation = rounds(ground, begin(ground, "test", CANARY, options={"test": "dcgm-3"}))

    assert "The node is not cordoned" in node(operation).reason
    assert jobs(ground) == []


def test_a_stop_holds_back_the_job_and_a_job_that_runs_is_followed(ground: Ground):
    rounds(ground, begin(ground, "quarantine", CANARY))
    operation = begin(ground, "test", CANARY, options={"test": "dcgm-3"})
    stop = {"by": "ada", "at": ground.clock(), "reason": "Stop.", "is_stop": True, "binds_rollbacks": True}
    freeze = Freeze.objects.create(**stop)
    operation = rounds(ground, operation)
    assert (jobs(ground), "is stopped by ada" in node(operation).reason) == ([], True)

    Freeze.objects.filter(pk=freeze.pk).update(ended_at=ground.clock())
    rounds(ground, operation)
    Freeze.objects.create(**stop)
    ends(ground)
    assert node(finished(ground, operation)).state == NodeProgress.DONE


def test_a_cancelled_operation_leaves_no_job(ground: Ground):
    operation = under_test(ground)
    commands.cancel(operation, actor="ada", reason="Not now.", now=ground.clock())
    assert STEPS["test_job"].left_behind() == [operation.pk]

    for _ in range(2):
        operation_round.clean_up_operation(operation.pk, clock=ground.clock)

    assert jobs(ground) == []
    assert STEPS["test_job"].left_behind() == []
    assert NodeTestJob.objects.get().outcome == "unknown"


def test_a_retry_deletes_the_earlier_job_before_it_makes_another(ground: Ground):
    operation = under_test(ground)
    (first,) = jobs(ground)
    operation.nodes.update(state=NodeProgress.FAILED)
    ground.clock.move(seconds=1)
    commands.retry(operation, actor="ada", reason="Again.", now=ground.clock())
    rounds(ground, operation, 2)
    assert first["metadata"]["uid"] not in [job["metadata"]["uid"] for job in jobs(ground)]

    rounds(ground, operation)
    assert len(jobs(ground)) == 1


def test_a_cancel_just_before_the_job_wins(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """The intent loses its race, so no row and no Job exist."""
    rounds(ground, begin(ground, "quarantine", CANARY))
    operation = begin(ground, "test", CANARY, options={"test": "dcgm-3"})
    observe = test_job._observe

    def observe_and_cancel(work):
        commands.cancel(Operation.objects.get(pk=operation.pk), actor="bob", reason="No.", now=ground.clock())
        return observe(work)

    monkeypatch.setattr(test_job, "_observe", observe_and_cancel)
    rounds(ground, operation)

    assert (jobs(ground), NodeTestJob.objects.exists()) == ([], False)


def test_a_second_job_on_a_node_loses(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    operation = under_test(ground)
    beside = NodesInProgress(operation, [node(operation)])
    work = test_job.NodeWork(operation, node(operation), ground.connection, ground.clock, lambda: None, beside)

    with pytest.raises(LostRace, match="already has a test Job"):
        test_job._intend(work, test_job._observe(work))


def test_a_job_of_another_owner_is_neither_read_nor_deleted(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    create = client.create_job

    def taken(connection, namespace: str, job: dict[str, Any]):
        job["metadata"]["labels"] = {"team": "a"}
        create(connection, namespace, job)
        raise client.Conflict("There is one.")

    monkeypatch.setattr(client, "create_job", taken)
    operation = rounds(ground, under_test(ground), 3)

    assert "not created by Quarterdeck" in node(operation).reason
    assert len(jobs(ground)) == 1


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "test"),
        ({"test": "burn"}, "test"),
        ({"test": "own"}, "image"),
        ({"test": "nccl", "image": "a b"}, "image"),
        ({"test": "dcgm-3", "command": "sh -c 'x"}, "command"),
    ],
)
def test_bad_options_start_nothing(ground: Ground, options: dict[str, Any], field: str):
    with pytest.raises(BadOperation) as refusal:
        begin(ground, "test", CANARY, options=options)
    assert refusal.value.problems[0]["field"] == field


def test_a_kubelet_without_an_answer_costs_its_own_job_alone(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """The API server answers 500 for a kubelet that it does not reach. The output is asked for again for a while."""
    operation = under_test(ground)
    ends(ground)
    (pod,) = ground.store.list(POD, NAMESPACE, label_selector="quarterdeck.io/proof")[0]
    status = pod["status"]["containerStatuses"]
    status[0]["state"]["terminated"]["finishedAt"] = f"{ground.clock():%Y-%m-%dT%H:%M:%SZ}"
    patch = {"status": {"containerStatuses": status}}
    ground.store.patch(POD, pod["metadata"]["name"], patch, NAMESPACE, how="merge", subresource="status")
    away = client.InternalError("dial tcp 10.0.0.7:10250: i/o timeout")

    def no_log(*_: Any, **__: Any) -> None:
        raise away

    monkeypatch.setattr(test_job_tracker, "last_lines", no_log)
    operation = rounds(ground, operation)
    assert (operation.state, operation.waiting_for) == (OperationState.RUNNING, "")
    assert "The test ended. Its output is read again. dial tcp" in node(operation).reason

    ground.clock.move(minutes=3)
    operation = finished(ground, operation)
    assert NodeTestJob.objects.get().outcome == "unknown"
    assert "The kubelet does not give the output: dial tcp" in node(operation).reason
    assert jobs(ground) == []
