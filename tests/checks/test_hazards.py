"""Each hazard and each mistake of docs/hazards.md is held by a test, or said there to be to come."""

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


def rows() -> dict[str, str]:
    """Rule → what we do about it. A row may be of several."""
    return {rule: does for named, does in ROW.findall(PAGE) for rule in HAZARD.findall(named)}


@cache
def cited() -> frozenset[str]:
    """In a test, or in the docstring of a file of them."""
    tests = (path for path in (ROOT / "tests").rglob("test_*.py") if "checks" not in path.parts)
    return frozenset(rule for path in tests for rule in HAZARD.findall(path.read_text()))


@cache
def functions_of(path: str) -> frozenset[str]:
    module = ast.parse((ROOT / path).read_text())
    return frozenset(node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef))


def mistakes() -> dict[int, list[tuple[str, str]]]:
    """Number → the tests that hold it: file and name."""
    return {int(row.group(1)): TEST.findall(row.group()) for row in MISTAKE.finditer(PAGE)}


def test_every_hazard_has_a_row():
    assert set(rows()) == {f"Z{number}" for number in (*range(1, 45), 47)}


@pytest.mark.parametrize("rule", sorted(rows(), key=lambda rule: int(rule[1:])))
def test_a_hazard_is_cited_by_a_test_or_wholly_to_come(rule: str):
    """Where only a part of it is to come, the rest is held all the same."""
    assert rule in cited() or rows()[rule].startswith(TO_COME)


def test_every_mistake_of_others_is_there():
    assert list(mistakes()) == list(range(1, 11))


@pytest.mark.parametrize("number", range(1, 11))
def test_what_holds_a_mistake_off_is_there_by_that_name(number: int):
    named = mistakes()[number]

    assert named
    assert [f"{path}::{test}" for path, test in named if test not in functions_of(path)] == []
