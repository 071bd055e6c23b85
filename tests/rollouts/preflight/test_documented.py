"""Each code that a check can have stands in docs/promotions.md, where who automates looks it up."""

import re
from pathlib import Path

from gpu.compatibility import Support
from gpu.evictions import Hindrance
from rollouts.queries.compatibility import BARRED, UNKNOWN_VERSION

ROOT = Path(__file__).parents[3]
PLACES = ("rollouts/preflight", "rollouts/components", "rollouts/commands", "rollouts/web")
CODE = re.compile(r'\bCheck\(\s*"([a-z-]+)"')
MADE = {
    *BARRED.values(),
    UNKNOWN_VERSION,
    *(f"version-{answer}" for answer in Support if answer not in {*BARRED, Support.SUPPORTED}),
    *(f"not-deleted-{hindrance}" for hindrance in Hindrance),
    *(f"{how}-{what}" for how in ("loses", "drain-loses") for what in ("unmanaged", "empty-dir")),
}


def test_every_code_is_documented_and_no_other():
    sources = [each.read_text() for place in PLACES for each in (ROOT / place).rglob("*.py")]
    written = {code for source in sources for code in CODE.findall(source)}
    lines = (ROOT / "docs/promotions.md").read_text().splitlines()
    told = {code for line in lines if line.startswith("| `") for code in re.findall(r"`([a-z-]+)`", line.split("|")[1])}

    assert told == written | MADE
