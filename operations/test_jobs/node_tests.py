"""The tests that validate a node on all its GPUs, and what their exit codes prove. Pure.

Durations and exit codes of `dcgmi diag`: docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html and
the return values of DCGM's headers (an exit code is 256 - n). The DCGM image has no running host engine, so the command
starts one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from operations.test_jobs.test_progress import ObservedTestJob, TestJobOutcome, TestJobProgress

DIAG = "sh -c 'nv-hostengine || exit 204; exec dcgmi diag -r {level}'"
OWN = "own"  # image and command of the person


@dataclass(frozen=True)
class NodeTest:
    key: str
    title: str
    image: str  # key of the setting QUARTERDECK_TEST_IMAGES; blank: the person names one
    command: str = ""  # as a shell splits it; blank: the image's own
    deadline: timedelta = timedelta(minutes=30)  # the pull of its image included
    is_of_one_gpu: bool = False
    runs: str = ""  # in its command: a command of a person without it runs another test

    def is_run_by(self, command: str) -> bool:
        return self.runs in command


NODE_TESTS: Mapping[str, NodeTest] = {
    test.key: test
    for test in (
        NodeTest(
            "dcgm-2", "dcgmi diag -r 2", "dcgm", DIAG.format(level=2), timedelta(minutes=20), runs="dcgmi diag -r 2"
        ),
        NodeTest(
            "dcgm-3", "dcgmi diag -r 3", "dcgm", DIAG.format(level=3), timedelta(minutes=60), runs="dcgmi diag -r 3"
        ),
        NodeTest("dcgm-4", "dcgmi diag -r 4", "dcgm", DIAG.format(level=4), timedelta(hours=4), runs="dcgmi diag -r 4"),
        NodeTest(
            "nccl", "NCCL all-reduce", "nccl", "all_reduce_perf -b 1G -e 8G -f 2 -g {gpus}", runs="all_reduce_perf"
        ),
        NodeTest("nvbandwidth", "nvbandwidth", "nvbandwidth", "nvbandwidth", runs="nvbandwidth"),
        NodeTest("vectoradd", "vectorAdd", "vectoradd", is_of_one_gpu=True),
        NodeTest(OWN, "Another image", ""),
    )
}
NAMED: Mapping[str, str] = {
    name.casefold(): test.key for test in NODE_TESTS.values() for name in (test.key, test.title)
}
# Exit codes after which nothing is proven. Of dcgmi diag: another one runs, a bad launch, no binary, killed, no such
# test. Of any container: it cannot be started (125 to 127), or was killed (137).
INCONCLUSIVE: Mapping[int, str] = {
    125: "it could not be started", 126: "it could not be started", 127: "the command is not in the image",
    137: "it was killed", 198: "dcgmi knows no such test", 203: "the diagnostic was killed",
    204: "the diagnostic could not be started", 215: "the diagnostic could not be started",
    217: "another diagnostic was running",
}  # fmt: skip
DCGM_ONLY = frozenset({198, 203, 204, 215, 217})


def result_of(
    test: NodeTest, command: str, gpus: int, observed: ObservedTestJob, progress: TestJobProgress, lines: Sequence[str]
) -> TestJobProgress:
    """Returns the result of a test that is over: passed only if it proved something about every GPU.

    `lines`: the end of its output.
    """
    progress = replace(progress, said="\n".join(lines) or progress.said)
    if progress.outcome is TestJobOutcome.FAILED:
        return _failed(command, observed, progress)
    if progress.outcome is not TestJobOutcome.PASSED:
        return progress
    if not any(line.strip() for line in lines):
        return _unknown(progress, "The test completed without output, so it proves nothing.")
    if "dcgmi" in command and (skipped := [line for line in lines if "skip" in line.lower()]):
        return replace(_unknown(progress, "It skipped tests."), said="\n".join(skipped))
    if test.is_of_one_gpu and gpus > 1:
        return _unknown(progress, f"The test completed, but it covers only one GPU of {gpus}.")
    return progress


def _failed(command: str, observed: ObservedTestJob, progress: TestJobProgress) -> TestJobProgress:
    exit_code = observed.pod.exit_code if observed.pod else None
    if exit_code is None:  # its deadline passed
        return _unknown(progress, progress.says)
    why = INCONCLUSIVE.get(exit_code, "")
    if not why or (exit_code in DCGM_ONLY and "dcgmi" not in command):
        return progress
    return _unknown(progress, f"The test ended with exit code {exit_code}: {why}.")


def _unknown(progress: TestJobProgress, says: str) -> TestJobProgress:
    return replace(progress, says=says, outcome=TestJobOutcome.UNKNOWN)
