"""Each rule stands in docs/findings.md, where who is told of a finding looks it up."""

import re
from pathlib import Path

import pytest

from health.inbox.rulebook import every_rule

ROOT = Path(__file__).parents[2]


def test_every_rule_is_documented_and_no_other():
    lines = (ROOT / "docs/findings.md").read_text().splitlines()
    told = {code for line in lines for code in re.findall(r"^\| `([a-z0-9-]+)`", line)}

    assert told == {entry.key for entry in every_rule()}


@pytest.mark.parametrize("entry", every_rule(), ids=lambda entry: entry.key)
def test_what_a_rule_says_refers_to_nothing_that_only_its_source_explains(entry):
    assert not re.search(r"\((?:n |Z)", entry.says)


def test_neither_does_the_table():
    rows = re.findall(r"^\| `.*$", (ROOT / "docs/findings.md").read_text(), re.MULTILINE)

    assert [row for row in rows if re.search(r"\((?:n |Z)", row)] == []
