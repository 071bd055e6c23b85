"""The words that are looked up before a pattern is tried may never hide a match."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from health.stack.causes.entries import TABLES
from kube.line_patterns import LINE_READ, LinePattern, required_words

PATTERNS = sorted({text for rules in TABLES.values() for rule in rules for text in rule.entry.patterns})


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(amdgpu|gim) driver is not loaded", (("amdgpu", "gim"), (" driver is not loaded",))),
        (r"fail\w*? x{2,3}yes", (("fail",), (" x",), ("yes",))),
        ("abc*def", (("ab",), ("def",))),
        ("(?:abc|def)?ghi(?!jkl)", (("ghi",),)),
        (r"\bno such\b|(unable|cannot) .{0,20} find", (("no such", "unable", "cannot"),)),
        (r"[]x]abc\.so\.(?P<n>\d)", (("abc.so.",),)),
        ("(?-i:FATAL) end", (("fatal",), (" end",))),
        ("either|.*", ()),
        (r"(a+)end\1", (("end",),)),
        (r"\x41bc", ()),
        ("(?i)abc", ()),
    ],
)
def test_the_words_of_a_pattern(pattern, words):
    assert required_words(pattern) == words


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_line_that_matches_lacks_the_words(data):
    pattern = data.draw(st.sampled_from(PATTERNS))
    line = data.draw(st.from_regex(re.compile(pattern, re.IGNORECASE | re.ASCII)))

    assert bool(LinePattern(pattern).search(line)) == bool(re.search(pattern, line[:LINE_READ], re.IGNORECASE))


def test_nearly_all_patterns_of_causes_have_words():
    without = [pattern for pattern in PATTERNS if not required_words(pattern)]

    assert len(without) < len(PATTERNS) / 100


def test_a_pattern_whose_words_are_missing_is_not_compiled():
    pattern = LinePattern("no such device")

    assert pattern.search("a line of something else") is None
    assert "compiled" not in vars(pattern)
