"""What a report of `dcgmi diag --json` proves, in the shapes of DCGM 3 and 4. No answer is never a pass."""

import json
from typing import Any

import pytest

from operations.test_jobs.dcgm_diag import read_diag
from operations.test_jobs.node_tests import NODE_TESTS, result_of
from operations.test_jobs.test_progress import ObservedTestJob, ObservedTestPod, TestJobOutcome, TestJobProgress
from simulator.actors.diag_report import report
from tests.make import NOON

PASSED, FAILED, UNKNOWN = TestJobOutcome
DCGM = NODE_TESTS["dcgm-3"]
# NVIDIA/DCGM 3.x: text before the JSON, GPUs as one text, a null in a list.
OF_DCGM_3 = """WARNING: an old library
{ "DCGM GPU Diagnostic" : { "version": "3.3.7", "GPU Device Serials": {"0": "1654", "1": "1655"},
  "test_categories" : [
    { "category" : "Deployment", "tests" : [
      { "name" : "Denylist", "results" : [ { "gpu_ids" : "0,1", "status" : "PASS" } ] }, null ] },
    { "category" : "Hardware", "tests" : [
      { "name" : "GPU Memory", "results" : [
        { "gpu_ids" : "0", "status" : "Pass" },
        { "gpu_ids" : "1", "status" : "Fail", "warnings" : ["Row remapping failed."] } ] } ] } ] } }
Done."""


def a_report(*results: dict[str, Any], name: str = "memory", **root: Any) -> list[str]:
    rows = [{"entity_group": "GPU", "entity_group_id": 1, "entity_id": 0, "status": "Pass"} | each for each in results]
    tests = [{"name": name, "results": rows, "test_summary": {"status": "Pass"}}]
    return [json.dumps({"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]} | root})]


def outcome(lines: list[str], *, gpus: int = 1, exit_code: int = 0) -> tuple[TestJobOutcome | None, str]:
    before = TestJobProgress("It completed.", outcome=FAILED if exit_code else PASSED)
    observed = ObservedTestJob(NOON, pod=ObservedTestPod(exit_code=exit_code))
    found = result_of(DCGM, DCGM.command, gpus, observed, before, lines)
    return found.outcome, f"{found.says} {found.said}".strip()


def test_the_report_of_dcgm_3_is_read_by_gpu_and_test():
    found = read_diag(OF_DCGM_3.splitlines())
    assert found is not None
    assert [(each.test, each.gpu, each.outcome) for each in found.results] == [
        ("Denylist", 0, PASSED), ("Denylist", 1, PASSED), ("GPU Memory", 0, PASSED), ("GPU Memory", 1, FAILED),
    ]  # fmt: skip
    assert (found.version, found.serials) == ("3.3.7", {0: "1654", 1: "1655"})
    assert outcome(OF_DCGM_3.splitlines(), gpus=2, exit_code=226)[1] == (
        "1 test failed on GPU 1. GPU Memory failed on GPU 1: Row remapping failed."
    )


def test_the_report_of_dcgm_4_is_read_by_gpu_and_test():
    found = read_diag(["Host Engine Listener Started", json.dumps(report(2, failing=1))])
    assert found is not None
    assert [each.sentence for each in found.of(FAILED)] == [
        "memory failed on GPU 1: GPU 1 had uncorrectable memory errors and row remapping failed."
    ]
    assert (found.version, found.serials[1], found.gpus) == ("4.3.1", "1653923000001", {0, 1})
    kept = found.as_kept
    assert (kept["passed"], [each["gpu"] for each in kept["results"]]) == (9, [1])


@pytest.mark.parametrize(
    ("lines", "gpus", "exit_code", "expected", "words"),
    [
        (a_report({}), 1, 0, PASSED, "1 result passed on 1 GPU."),
        (a_report({}, {"entity_id": 1, "status": "Skip"}), 2, 0, UNKNOWN, "1 result without a verdict: memory."),
        (a_report({}, {"entity_id": 1, "status": "Warn"}), 2, 0, UNKNOWN, "1 result without a verdict: memory."),
        (a_report({"status": None}), 1, 0, UNKNOWN, "1 result without a verdict: memory."),
        (a_report({}), 8, 0, UNKNOWN, "It reports 1 GPU of 8."),
        (a_report({"status": "Fail"}), 1, 0, FAILED, "1 test failed on GPU 0."),  # whatever the exit code
        (a_report({"status": "Skip"}, name="eud"), 1, 0, UNKNOWN, "The diagnostic reports no test."),
        (a_report(runtime_error="No GPU."), 1, 0, UNKNOWN, "The diagnostic did not run: No GPU."),
        (a_report({"status": "Fail"}), 1, 217, FAILED, "1 test failed on GPU 0."),
        (a_report({}), 1, 226, FAILED, "It completed."),  # it says that it failed, and not where
        (['{"DCGM Diagnostic": {"test_categories": ['], 1, 0, UNKNOWN, "no whole report"),
        (['{"DCGM Diagnostic": 7}'], 1, 0, UNKNOWN, "The diagnostic reports no test."),
        (["Successfully ran diagnostic for group."], 1, 0, UNKNOWN, "no whole report"),
    ],
)
def test_what_a_report_proves(lines: list[str], gpus: int, exit_code: int, expected: TestJobOutcome, words: str):
    found, says = outcome(lines, gpus=gpus, exit_code=exit_code)
    assert (found, words in says) == (expected, True), says


def test_a_test_that_did_not_stress_each_gpu_is_no_pass():
    whole = report(2)
    assert outcome([json.dumps(whole)], gpus=2)[0] is PASSED
    for category in whole["DCGM Diagnostic"]["test_categories"]:
        for test in category["tests"]:
            if test["name"] == "memory":
                test["results"] = [each for each in test["results"] if each.get("entity_id") != 1]

    assert outcome([json.dumps(whole)], gpus=2) == (UNKNOWN, "memory reports 1 GPU of 2.")


def test_a_report_with_more_results_than_are_read_is_no_pass():
    passes = [{"entity_id": number % 8} for number in range(2000)]
    assert outcome(a_report(*passes), gpus=8)[0] is PASSED
    assert outcome(a_report(*passes, {"status": "Fail"}), gpus=8)[0] is UNKNOWN


@pytest.mark.parametrize("value", ["null", "[]", '{"DCGM Diagnostic": {"test_categories": [{"tests": [[], 7]}]}}'])
def test_a_strange_value_is_no_pass(value: str):
    assert outcome([value])[0] is UNKNOWN


def test_a_deep_or_long_report_ends():
    assert outcome(['{"DCGM Diagnostic": ' + "[" * 100_000])[0] is UNKNOWN
