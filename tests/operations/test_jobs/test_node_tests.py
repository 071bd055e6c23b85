"""The result of a test: passed only if it proved something about every GPU (lifecycle R32 to R34)."""

import pytest

from operations.test_jobs.node_tests import NODE_TESTS, result_of
from operations.test_jobs.test_progress import ObservedTestJob, ObservedTestPod, TestJobOutcome, progress_of_test_job
from tests.make import NOON

PASS = ["| Memory | Pass |", "| Pulse Test | Pass |"]


@pytest.mark.parametrize(
    ("test", "exit_code", "lines", "outcome", "says"),
    [
        ("dcgm-3", 0, PASS, "passed", "It completed."),
        ("dcgm-3", 226, ["| Memory | Fail |"], "failed", "The test ended with exit code 226."),
        ("dcgm-3", 205, PASS, "failed", "The test ended with exit code 205."),
        ("dcgm-3", 217, PASS, "unknown", "The test ended with exit code 217: another diagnostic was running."),
        ("dcgm-3", 204, [], "unknown", "The test ended with exit code 204: the diagnostic could not be started."),
        ("dcgm-3", 0, [*PASS, "| NVBandwidth | Skip |"], "unknown", "It skipped tests."),
        ("dcgm-3", 0, ["  "], "unknown", "The test completed without output, so it proves nothing."),
        ("nccl", 204, ["mismatch"], "failed", "The test ended with exit code 204."),
        ("nccl", 127, [], "unknown", "The test ended with exit code 127: the command is not in the image."),
        ("vectoradd", 0, ["Test PASSED"], "unknown", "The test completed, but it covers only one GPU of 8."),
    ],
)
def test_three_outcomes(test: str, exit_code: int, lines: list[str], outcome: str, says: str):
    pod = ObservedTestPod(phase="Failed" if exit_code else "Succeeded", exit_code=exit_code)
    job = ObservedTestJob(made_at=NOON, is_complete=not exit_code, pod=pod)
    command = "dcgmi diag -r 3" if test == "dcgm-3" else NODE_TESTS[test].command  # a person's own prints no JSON
    result = result_of(NODE_TESTS[test], command, 8, job, progress_of_test_job(job, now=NOON), lines)

    assert (result.outcome, result.says) == (outcome, says)


def test_one_gpu_is_all_of_a_node_with_one():
    job = ObservedTestJob(made_at=NOON, is_complete=True, pod=ObservedTestPod(exit_code=0))
    result = result_of(NODE_TESTS["vectoradd"], "", 1, job, progress_of_test_job(job, now=NOON), ["Test PASSED"])

    assert result.outcome is TestJobOutcome.PASSED


def test_a_test_that_does_not_end_proves_nothing():
    job = ObservedTestJob(made_at=NOON, has_run=True, failed="DeadlineExceeded", pod=ObservedTestPod(is_running=True))
    result = result_of(NODE_TESTS["dcgm-3"], "dcgmi", 8, job, progress_of_test_job(job, now=NOON), [])

    assert (result.outcome, result.says) == (TestJobOutcome.UNKNOWN, "The test did not end within 15 min.")
