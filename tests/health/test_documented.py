"""Each rule stands in docs/findings.md, where who is told of a finding looks it up."""

import re
from pathlib import Path

from health.inbox.rulebook import every_rule

ROOT = Path(__file__).parents[2]


def test_every_rule_is_documented_and_no_other():
    lines = (ROOT / "docs/findings.md").read_text().splitlines()
    told = {code for line in lines for code in re.findall(r"^\| `([a-z0-9-]+)`", line)}

    assert told == {entry.key for entry in every_rule()}
