"""Each hazard and each mistake of docs/hazards.md is held by a daily test, or said there to be to come."""

import ast
import re
from functools import cache

import pytest

from tests.rooms import ROOT

PAGE = (ROOT / "docs" / "hazards.md").read_text()
HAZARD, TEST = re.compile(r"\bZ[1-9]\d*\b"), re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
ROW, MISTAKE = (
    re.compile(r"^\| (Z[^|]+) \|[^|]+\| (.+) \|$", re.MULTILINE),
    re.compile(r"^\| (\d+) \|.*$", re.MULTILINE),
)
TO_COME = "*To come*"
NIGHTLY = "pytest.mark.nightly"
Test = ast.FunctionDef | ast.AsyncFunctionDef


def rows() -> dict[str, str]:
    """Rule → what we do about it. A row may be of several."""
    return {rule: does for named, does in ROW.findall(PAGE) for rule in HAZARD.findall(named)}


@cache
def cited_daily() -> frozenset[str]:
    """Returns the hazards that daily tests cite: in a test, or elsewhere in a file that has a daily test.

    Tests of benches are left out: nearly all of them are nightly.
    """
    paths = (path for path in (ROOT / "tests").rglob("test_*.py") if not {"checks", "benchmarks"} & set(path.parts))
    return frozenset(rule for path in paths for rule in HAZARD.findall(daily_source(path.read_text())))


def daily_source(text: str) -> str:
    """Returns the source of a file of tests without its nightly tests; "" if there is no other test."""
    if not HAZARD.search(text):
        return ""
    module = ast.parse(text)
    if not any(is_daily(test) for test in named_tests(module)) or is_all_nightly(module):
        return ""
    lines = text.splitlines()
    for test in named_tests(module):
        if not is_daily(test):
            first = min(one.lineno for one in (test, *test.decorator_list))
            lines[first - 1 : test.end_lineno] = [""] * (test.end_lineno - first + 1)
    return "\n".join(lines)


def named_tests(module: ast.Module) -> list[Test]:
    return [node for node in ast.walk(module) if isinstance(node, Test) and node.name.startswith("test_")]


def is_all_nightly(module: ast.Module) -> bool:
    assigned = (ast.unparse(node) for node in module.body if isinstance(node, ast.Assign))
    return any(text.startswith("pytestmark = ") and NIGHTLY in text for text in assigned)


def is_daily(test: Test) -> bool:
    """A test with nightly parameters runs daily with the others."""
    return NIGHTLY not in {ast.unparse(decorator) for decorator in test.decorator_list}


@cache
def is_daily_by_name(path: str) -> dict[str, bool]:
    """Returns whether each test of a file runs daily, by its name."""
    module = ast.parse((ROOT / path).read_text())
    runs_nightly = is_all_nightly(module) or "benchmarks" in path
    return {test.name: is_daily(test) and not runs_nightly for test in named_tests(module)}


def mistakes() -> dict[int, list[tuple[str, str]]]:
    """Number → the tests that hold it: file and name."""
    return {int(row.group(1)): TEST.findall(row.group()) for row in MISTAKE.finditer(PAGE)}


def test_every_hazard_has_a_row():
    assert set(rows()) == {f"Z{number}" for number in (*range(1, 45), 47)}


@pytest.mark.parametrize("rule", sorted(rows(), key=lambda rule: int(rule[1:])))
def test_a_hazard_is_cited_by_a_daily_test_or_wholly_to_come(rule: str):
    """Where only a part of it is to come, the rest is held all the same."""
    assert rule in cited_daily() or rows()[rule].startswith(TO_COME)


def test_a_citation_in_a_nightly_test_does_not_count():
    by_night = '@pytest.mark.nightly\ndef test_b():\n    """Z2."""\n'

    assert HAZARD.findall(daily_source(f'def test_a():\n    """Z1."""\n\n\n{by_night}')) == ["Z1"]
    assert daily_source(f'"""Z3."""\n\n\n{by_night}') == ""
    assert daily_source('pytestmark = [pytest.mark.nightly]\n\n\ndef test_a():\n    """Z1."""\n') == ""


def test_every_mistake_of_others_is_there():
    assert list(mistakes()) == list(range(1, 11))


@pytest.mark.parametrize("number", range(1, 11))
def test_what_holds_a_mistake_off_is_there_by_that_name(number: int):
    named = mistakes()[number]

    assert [f"{path}::{test}" for path, test in named if test not in is_daily_by_name(path)] == []
    assert any(is_daily_by_name(path)[test] for path, test in named)
