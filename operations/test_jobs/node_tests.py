"""The tests of a node's GPUs, from `data/node_tests.toml`, and what their exit codes prove. Pure.

Exit codes of `dcgmi diag`: the return values of DCGM's headers (an exit code is 256 - n).
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from gpu.entry_files import entry_of, make_entries, read_file
from operations.test_jobs.dcgm_diag import DiagReport, read_diag
from operations.test_jobs.job_metrics import is_path
from operations.test_jobs.test_job import MOST
from operations.test_jobs.test_progress import ObservedTestJob, TestJobOutcome, TestJobProgress
from wording.lists import names
from wording.numbers import count

FILE = Path(__file__).parent / "data" / "node_tests.toml"
SHOWN_RESULTS = 5  # of one diagnostic, in its result
OWN = "own"  # image and command of the person
OF_DEVICES = "cuda"  # for partitioned GPUs


@dataclass(frozen=True)
class TestMetric:
    """A number that a test prints, with its rule against earlier results."""

    path: str
    title: str
    unit: str = ""
    worse_percent: int = 0  # than the baseline, at most; 0: not compared
    is_lower_better: bool = False
    samples: str = ""  # path of the number of samples; blank: unknown
    least_samples: int = 0

    def __post_init__(self) -> None:
        for path in filter(None, (self.path, self.samples)):
            if not is_path(path):
                raise ValueError(f"{path} is no path")
        if bool(self.samples) is not bool(self.least_samples):
            raise ValueError("samples and least_samples need each other")

    def is_thin(self, numbers: Mapping[str, float]) -> bool:
        """Returns whether its number rests on fewer samples than it needs. Samples that were not printed are none."""
        return bool(self.samples) and numbers.get(self.samples, 0) < self.least_samples


@dataclass(frozen=True)
class NodeTest:
    key: str
    title: str
    image: str  # key of the setting QUARTERDECK_TEST_IMAGES; blank: the person names one
    command: str = ""  # as a shell splits it; blank: the image's own
    minutes: int = 30  # from the creation of the Job, the pull of its image included
    is_of_one_gpu: bool = False
    is_of_devices: bool = False  # runs on each device by itself, a MIG device too
    runs: str = ""  # text in its command: a command without it runs another test
    cpu: str = MOST["cpu"]
    memory: str = MOST["memory"]
    shm: str = ""  # size of /dev/shm; blank: the runtime's own
    metrics: tuple[TestMetric, ...] = ()

    @property
    def deadline(self) -> timedelta:
        return timedelta(minutes=self.minutes)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Returns the paths of all numbers that are read from its output."""
        return tuple(dict.fromkeys(path for metric in self.metrics for path in (metric.path, metric.samples) if path))

    def is_run_by(self, command: str) -> bool:
        return self.runs in command

    def command_on(self, gpus: int) -> str:
        return self.command.replace("{gpus}", str(gpus))


def _test(row: Mapping[str, Any]) -> NodeTest:
    given = {name: value for name, value in row.items() if name not in ("metrics", "script")}
    if script := row.get("script"):
        given["command"] = shlex.join(["sh", "-c", script])
    metrics = tuple(entry_of(metric, TestMetric) for metric in row.get("metrics", ()))
    return replace(entry_of(given, NodeTest), metrics=metrics)


NODE_TESTS: Mapping[str, NodeTest] = {
    test.key: test for test in make_entries(FILE, "tests", read_file(FILE)["tests"], _test)
}
TEMPLATES = tuple(key for key in NODE_TESTS if key != OWN)  # of a gate
NAMED: Mapping[str, str] = {
    name.casefold(): test.key for test in NODE_TESTS.values() for name in (test.key, test.title)
}


def is_of_samples(test: str, path: str) -> bool:
    """Returns whether the number is only what a metric of the test rests on."""
    metrics = NODE_TESTS[test].metrics if test in NODE_TESTS else ()
    return path in {metric.samples for metric in metrics} and path not in {metric.path for metric in metrics}


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
    report = read_diag(lines) if "dcgmi" in command else None
    if report is not None:
        return _report_result(report, command, gpus, observed, progress)
    progress = replace(progress, said="\n".join(lines) or progress.said)
    if progress.outcome is TestJobOutcome.FAILED:
        return _failed(command, observed, progress)
    if progress.outcome is not TestJobOutcome.PASSED:
        return progress
    if not any(line.strip() for line in lines):
        return _unknown(progress, "The test completed without output, so it proves nothing.")
    if "dcgmi" in command and "--json" in command:
        return _unknown(progress, "The output has no whole report of dcgmi diag, so it proves nothing.")
    if "dcgmi" in command and (skipped := [line for line in lines if "skip" in line.lower()]):
        return replace(_unknown(progress, "It skipped tests."), said="\n".join(skipped))
    if test.is_of_one_gpu and gpus > 1:
        return _unknown(progress, f"The test completed, but it covers only one GPU of {gpus}.")
    return progress


def _report_result(
    report: DiagReport, command: str, gpus: int, observed: ObservedTestJob, progress: TestJobProgress
) -> TestJobProgress:
    """Returns the result of `dcgmi diag --json`. A test that failed on a GPU is a failure, whatever the exit code."""
    failed = report.of(TestJobOutcome.FAILED)
    unknown = report.of(TestJobOutcome.UNKNOWN)
    shown = " ".join(each.sentence for each in [*failed, *unknown][:SHOWN_RESULTS])
    progress = replace(progress, said=shown or report.error or progress.said)
    if failed:
        places = names(sorted({each.place for each in failed}))
        says = f"{count(len(failed), 'test')} failed on {places}."
        return replace(progress, says=says, outcome=TestJobOutcome.FAILED)
    if why := report.why_unknown(gpus):
        return _unknown(progress, why)
    if progress.outcome is TestJobOutcome.FAILED:
        return _failed(command, observed, progress)
    if progress.outcome is TestJobOutcome.PASSED:
        passed = len(report.of(TestJobOutcome.PASSED))
        return replace(progress, says=f"{count(passed, 'result')} passed on {count(len(report.gpus), 'GPU')}.", said="")
    return progress


def _failed(command: str, observed: ObservedTestJob, progress: TestJobProgress) -> TestJobProgress:
    exit_code = observed.pod.exit_code if observed.pod else None
    if exit_code is None:  # ended by its deadline
        return _unknown(progress, progress.says)
    why = INCONCLUSIVE.get(exit_code, "")
    if not why or (exit_code in DCGM_ONLY and "dcgmi" not in command):
        return progress
    return _unknown(progress, f"The test ended with exit code {exit_code}: {why}.")


def _unknown(progress: TestJobProgress, says: str) -> TestJobProgress:
    return replace(progress, says=says, outcome=TestJobOutcome.UNKNOWN)
