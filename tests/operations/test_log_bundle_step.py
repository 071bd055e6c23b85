"""The log bundle of a node: what its pod may do, what is kept of it, and that nothing is left behind."""

import re

import pytest

from kube import client
from operations.steps.log_bundle import KERNEL_AT_MOST
from simulator.kinds import NODE
from tests.operations.test_rounds import begin, node, rounds
from tests.operations.test_test_job_step import ends, finished, jobs
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db
XID = "[Mon Nov 30 10:00:00 2026] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."


def test_its_pod_reads_the_kernel_log_and_takes_no_gpu(ground: Ground):
    rounds(ground, begin(ground, "logs", CANARY))

    (job,) = jobs(ground)
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYSLOG"]}
    assert container["securityContext"]["runAsUser"] == 0  # an image's own user would have no capability
    assert container["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    assert not any(name.startswith("nvidia.com/") for name in container["resources"]["limits"])
    assert not {"volumes", "hostPID", "hostNetwork", "runtimeClassName"} & set(pod)


def test_the_kernel_log_and_the_logs_of_the_stack_are_kept_and_the_pod_is_deleted(ground: Ground):
    operation = rounds(ground, begin(ground, "logs", CANARY))
    ends(ground, output=["6.8.0", XID, "token=abcdef0123456789", "x" * KERNEL_AT_MOST])

    seen = node(finished(ground, operation))

    output = seen.progress["output"]
    assert seen.state == "done"
    assert output.startswith(f"=== kernel log of {CANARY}\n")
    titles = [line for line in output.splitlines() if line.startswith("=== gpu-operator/")]
    assert any("driver" in title for title in titles)
    assert seen.reason == f"Kernel log and {len(titles)} logs of the GPU stack."
    assert "abcdef" not in output
    assert len(output) < 140_000
    assert jobs(ground) == []


def test_without_a_kernel_log_it_fails_and_keeps_the_reason_and_the_other_logs(ground: Ground):
    operation = rounds(ground, begin(ground, "logs", CANARY))
    ends(ground, 1, ["dmesg: read kernel buffer failed: Operation not permitted"])
    seen = node(finished(ground, operation))

    assert seen.state == "failed"
    assert re.match(r"No kernel log, but [1-9]\d* logs of the GPU stack", seen.reason)
    assert "Not read:\nkernel log: dmesg: read kernel buffer failed" in seen.progress["output"]


def test_logs_that_cannot_be_read_are_not_counted(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """The Job passed, but the kubelet gave no log: a reboot would lose what nobody has."""
    operation = rounds(ground, begin(ground, "logs", CANARY))
    ends(ground, output=[XID])

    def forbidden(*_args: object, **_given: object) -> list[str]:
        raise client.Forbidden("pods/log is forbidden")

    for module in ("steps.log_bundle", "test_job_tracker"):
        monkeypatch.setattr(f"operations.{module}.last_lines", forbidden)
    seen = node(finished(ground, operation))

    assert (seen.state, seen.reason.startswith("Logs: none could be read.")) == ("failed", True)
    assert "pods/log is forbidden" in seen.progress["output"]


def test_a_node_that_is_not_ready_gives_no_logs_and_says_why(ground: Ground):
    status = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    ground.store.patch(NODE, CANARY, status, how="merge", subresource="status")
    operation = rounds(ground, begin(ground, "logs", CANARY))

    assert node(operation).reason.startswith("Logs: none, because the node is not Ready")
    assert jobs(ground) == []
