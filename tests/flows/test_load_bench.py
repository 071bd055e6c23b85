"""The load runs, small: every browser is served to the end. What stays in memory is judged at full size, by hand."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.nightly
FIGURES = {
    "reference_ms",
    "web_before_mib",
    "web_peak_mib",
    "errors",
    "closed_sockets",
    "web_rss_mib",
    "web_growth_mib",
}


def test_a_small_load_has_no_error_and_closes_no_socket():
    command = [sys.executable, "-m", "benchmarks.load", "--short"]

    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    figures = {line["name"]: line for line in map(json.loads, ended.stdout.splitlines())}
    assert figures.keys() == FIGURES, ended.stderr
    assert (figures["errors"]["value"], figures["errors"]["of"]) == (0, 240), figures["errors"]["first"]
    assert figures["closed_sockets"]["value"] == 0
