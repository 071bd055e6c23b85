"""The results of `dcgmi diag --json`: passed, failed or unknown by GPU and test. Pure.

DCGM 3 names "DCGM GPU Diagnostic" and lists GPUs as text (NVIDIA/DCGM 3.x, nvvs/include/NvvsCommon.h and JsonOutput.h;
an item of a list may be null, and text may come before the JSON: its JsonResultTests.cpp). DCGM 4 names
"DCGM Diagnostic" and has entities (testing/python3/dcgm_diag_schema.json). Read 2026-11-30.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from operations.test_jobs.test_progress import TestJobOutcome
from wording.lists import names
from wording.numbers import count

ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")  # of DCGM 4 and 3
OUTCOMES = {"pass": TestJobOutcome.PASSED, "fail": TestJobOutcome.FAILED}  # Skip, Warn and Not Run prove nothing
# Tests of a package of their own: without it, DCGM skips them (dcgm-diagnostics.html, "EUD").
OPTIONAL = frozenset({"eud", "cpu_eud", "eud test", "cpu eud test"})
GPU = "GPU"  # entity group
MOST_RESULTS, LONGEST = 2000, 300  # results of a report; characters of a text


@dataclass(frozen=True)
class GpuTestResult:
    test: str
    gpu: int | None  # number of the GPU in the container; None: a result of the node
    outcome: TestJobOutcome
    says: str = ""  # the warnings, or the status where it proves nothing

    @property
    def place(self) -> str:
        return "the node" if self.gpu is None else f"GPU {self.gpu}"

    @property
    def sentence(self) -> str:
        result = "is unknown" if self.outcome is TestJobOutcome.UNKNOWN else self.outcome.value
        return f"{self.test} {result} on {self.place}: {self.says}".rstrip(": ")


@dataclass(frozen=True)
class DiagReport:
    results: Sequence[GpuTestResult] = ()
    error: str = ""  # why the diagnostic did not run, in its words
    version: str = ""
    serials: Mapping[int, str] = field(default_factory=dict)  # of boards, by GPU
    is_cut: bool = False  # has more results than listed

    def of(self, outcome: TestJobOutcome) -> list[GpuTestResult]:
        return [each for each in self.results if each.outcome is outcome]

    @property
    def gpus(self) -> set[int]:
        """Returns the GPUs with a test that passed or failed."""
        judged = (each for each in self.results if each.outcome is not TestJobOutcome.UNKNOWN)
        return {each.gpu for each in judged if each.gpu is not None}

    def why_unknown(self, gpus: int) -> str:
        """Returns why the report proves nothing about a node with so many GPUs. Blank: it does."""
        if self.error:
            return f"The diagnostic did not run: {self.error}"
        if not self.results:
            return "The diagnostic reports no test."
        if unknown := self.of(TestJobOutcome.UNKNOWN):
            tests = names(sorted({each.test for each in unknown}))
            return f"{count(len(unknown), 'result')} without a verdict: {tests}."
        if self.is_cut:
            return f"The report has more than {MOST_RESULTS} results. The others are not read."
        if len(self.gpus) < gpus:
            return f"It reports {count(len(self.gpus), 'GPU')} of {gpus}."
        for test, judged in self._gpus_by_test().items():
            if len(judged) < gpus:
                return f"{test} reports {count(len(judged), 'GPU')} of {gpus}."
        return ""

    def _gpus_by_test(self) -> dict[str, set[int]]:
        """Returns the GPUs of each test of GPUs. A test of the node has none."""
        found: dict[str, set[int]] = {}
        for each in self.results:
            if each.gpu is not None:
                found.setdefault(each.test, set()).add(each.gpu)
        return found

    @property
    def as_kept(self) -> dict[str, Any]:
        """Returns what is stored with the test: what failed or is unknown, and the boards."""
        shown = [*self.of(TestJobOutcome.FAILED), *self.of(TestJobOutcome.UNKNOWN)]
        return {
            "version": self.version,
            "gpus": len(self.gpus),
            "passed": len(self.of(TestJobOutcome.PASSED)),
            "results": [
                {"test": each.test, "gpu": each.gpu, "outcome": each.outcome.value, "says": each.says}
                for each in shown[:100]
            ],
            "serials": {str(gpu): serial for gpu, serial in self.serials.items()},
        }


def read_diag(lines: Sequence[str]) -> DiagReport | None:
    """Returns the report in the end of a log. None: there is none, or it is cut off."""
    value = _value_in(lines)
    if value is None:
        return None
    root: dict[str, Any] = next((value[name] for name in ROOTS if isinstance(value.get(name), dict)), {})
    results = [*_results(root)]
    error = root.get("runtime_error") or value.get("runtime_error") or ""
    about = value.get("metadata")
    version = (
        (about.get("version") if isinstance(about, dict) else "") or root.get("version") or value.get("version") or ""
    )
    is_cut = len(results) > MOST_RESULTS
    return DiagReport(results[:MOST_RESULTS], _text(error), _text(version), _serials(value, root), is_cut)


def _value_in(lines: Sequence[str]) -> dict[str, Any] | None:
    """Returns the last JSON object with a diagnostic: on one line, or over all lines from one on."""
    decoder = json.JSONDecoder()
    for first in reversed(range(len(lines))):
        at = lines[first].find("{")
        if at < 0 or not any(root in " ".join(lines[first : first + 3]) for root in ROOTS):
            continue
        try:
            value, _ = decoder.raw_decode("\n".join([lines[first][at:], *lines[first + 1 :]]))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and any(root in value for root in ROOTS):
            return value
    return None


def _results(root: Mapping[str, Any]) -> Iterator[GpuTestResult]:
    for category in _dicts(root.get("test_categories")):
        for test in _dicts(category.get("tests")):
            name = _text(test.get("name")) or "A test without a name"
            rows = [each for result in _dicts(test.get("results")) for each in _result(name, result)]
            is_absent = name.lower() in OPTIONAL and all(each.outcome is TestJobOutcome.UNKNOWN for each in rows)
            yield from () if is_absent else rows


def _result(test: str, result: Mapping[str, Any]) -> Iterator[GpuTestResult]:
    status = _text(result.get("status"))
    outcome = OUTCOMES.get(status.lower().removesuffix("ed"), TestJobOutcome.UNKNOWN)
    says = " ".join([_text(each) for each in _warnings(result)])[:LONGEST]
    if outcome is TestJobOutcome.UNKNOWN:
        says = f"{status or 'no status'}. {says}".strip()
    for gpu in _gpus(result):
        yield GpuTestResult(test, gpu, outcome, says)


def _gpus(result: Mapping[str, Any]) -> list[int | None]:
    if "entity_id" in result:
        is_gpu = result.get("entity_group") == GPU and isinstance(result["entity_id"], int)
        return [result["entity_id"] if is_gpu else None]
    listed = result.get("gpu_ids", result.get("gpu_id", ""))
    found = [int(each) for each in str(listed).split(",")[:64] if each.strip().isascii() and each.strip().isdecimal()]
    return list(found) or [None]


def _warnings(result: Mapping[str, Any]) -> Iterator[Any]:
    given = result.get("warnings")
    for each in given if isinstance(given, list) else [given]:
        yield each.get("warning", "") if isinstance(each, dict) else each


def _serials(value: Mapping[str, Any], root: Mapping[str, Any]) -> dict[int, str]:
    found: dict[int, str] = {}
    for group in _dicts(value.get("entity_groups")):
        for entity in _dicts(group.get("entities")) if group.get("entity_group") == GPU else ():
            if isinstance(entity.get("entity_id"), int) and (serial := _text(entity.get("serial_num"))):
                found[entity["entity_id"]] = serial
    listed = root.get("GPU Device Serials") or value.get("GPU Device Serials")
    for gpu, serial in listed.items() if isinstance(listed, dict) else ():
        if gpu.isascii() and gpu.isdecimal() and _text(serial):
            found[int(gpu)] = _text(serial)
    return found


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return " ".join(value.split())[:LONGEST] if isinstance(value, str) else ""
