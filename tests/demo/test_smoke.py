import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).resolve().parents[2]


def test_the_smoke_measures_two_promotions_and_finds_nothing_wrong():
    ended = subprocess.run([sys.executable, "-m", "demo", "--smoke"], cwd=ROOT, capture_output=True, text=True)

    figures = {line["name"]: line for line in map(json.loads, ended.stdout.splitlines())}
    assert ended.returncode == 0, ended.stderr
    assert figures.keys() == {"time_to_live_ms", "promoted_nodes", "halt_ms", "nodes_disrupted_by_bad_driver"}
    assert all(figure["ok"] for figure in figures.values())
    assert figures["promoted_nodes"]["value"] == 8
