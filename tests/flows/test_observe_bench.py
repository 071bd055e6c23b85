"""The bench runs, small: its ratios hold on any machine; its times are judged where nothing else runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.observe


def test_says_every_figure_of_watching_a_cluster():
    command = [sys.executable, "-m", "benchmarks.observe", "--nodes", "16", "--changes", "5", "--quiet-s", "2"]

    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)

    figures = {line["name"]: line for line in map(json.loads, ended.stdout.splitlines())}
    assert set(figures) >= {"decode_ratio", "first_sync_s", "change_to_announcement_p50_ms", "quiet_cpu_percent"}, (
        ended.stderr
    )
    assert figures["decode_ratio"]["ok"]
    assert figures["resident_mib"]["ok"]
    assert all(line["nodes"] == 16 for line in figures.values())
