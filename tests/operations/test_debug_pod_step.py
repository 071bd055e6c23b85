"""The debug pod on a node: what it requests, its output, and that nothing is left behind."""

import shlex
import subprocess

import pytest

from fleet.models import Node
from operations.lifecycle import OperationState
from operations.models import NodeTestJob
from operations.refusals import BadOperation
from operations.steps.debug_pod import COMMAND
from tests import make
from tests.operations.test_rounds import begin, node, rounds
from tests.operations.test_test_job_step import ends, finished, jobs
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db
OUTPUT = ["| NVIDIA-SMI 570.172.08 |", "GPU 0: H200 (UUID: GPU-1)", "password=hunter2hunter2"]


def container(ground: Ground):
    (job,) = jobs(ground)
    spec = job["spec"]["template"]["spec"]
    assert CANARY in str(spec["affinity"])
    return spec, spec["containers"][0]


def none_free(ground: Ground) -> Node:
    row = Node.objects.get(cluster=ground.cluster, name=CANARY)
    Node.objects.filter(pk=row.pk).update(requested=row.allocatable)
    return row


def test_it_takes_one_free_gpu_shows_its_output_and_is_deleted(ground: Ground):
    operation = rounds(ground, begin(ground, "debug", CANARY))
    _, one = container(ground)
    assert one["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert "env" not in one
    assert "nvidia-smi" in one["command"][-1]

    ends(ground, output=OUTPUT)
    operation = finished(ground, operation)

    seen = node(operation)
    assert (operation.state, seen.state) == (OperationState.FINISHED, "done")
    assert "nvidia-smi works" in seen.reason
    assert seen.progress["output"].splitlines() == [*OUTPUT[:2], "password=[redacted]"]
    assert jobs(ground) == []


def test_a_failed_nvidia_smi_is_an_answer(ground: Ground):
    operation = rounds(ground, begin(ground, "debug", CANARY))
    ends(ground, 9, ["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."])
    seen = node(finished(ground, operation))

    assert (seen.state, "nvidia-smi failed" in seen.reason) == ("done", True)
    assert "couldn't communicate" in seen.progress["output"]


def test_without_a_free_gpu_it_requests_none_where_a_runtime_class_shows_them(ground: Ground):
    row = none_free(ground)
    refused = rounds(ground, begin(ground, "debug", CANARY))
    assert "No NVIDIA GPU of the node is free" in node(refused).reason
    assert jobs(ground) == []

    make.a_pod(row, "plugin", gpus=0, operand="device-plugin", runtime_class="nvidia")
    operation = rounds(ground, begin(ground, "debug", CANARY))
    spec, one = container(ground)
    assert spec["runtimeClassName"] == "nvidia"
    assert not any(name.startswith("nvidia.com/") for name in one["resources"]["limits"])
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"} in one["env"]
    assert NodeTestJob.objects.get().operation_id == operation.pk


def test_an_image_with_blanks_and_many_nodes_are_refused(ground: Ground):
    with pytest.raises(BadOperation):
        begin(ground, "debug", CANARY, options={"image": "a b"})
    with pytest.raises(BadOperation, match="At most 5 nodes"):
        begin(ground, "debug", *[row.name for row in Node.objects.filter(cluster=ground.cluster)[:6]])


@pytest.mark.parametrize("has_query", [True, False])
def test_its_command_shows_what_a_cuda_program_sees_and_ends_as_nvidia_smi_did(tmp_path, has_query: bool):
    scripts = {"nvidia-smi": "echo smi; exit 9"} | ({"deviceQuery": "echo Result = PASS"} if has_query else {})
    for name, line in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)

    ended = subprocess.run(
        shlex.split(COMMAND), env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 9
    assert ("Result = PASS" in ended.stdout, "deviceQuery: not in this image" in ended.stdout) == (
        has_query,
        not has_query,
    )
