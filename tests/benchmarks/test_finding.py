"""`bin/bench findings` at a small size: it says every figure, whether they are ok there or not."""

import json
import subprocess
import sys

import pytest

from demo.settings import ROOT
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.rounds  # it starts a Redis


def test_says_every_figure():
    command = [sys.executable, "-m", "benchmarks.findings", "--nodes", "8", "--hours", "0.5", "--seed", "3"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    said = {figure["name"]: figure["value"] for figure in map(json.loads, ended.stdout.splitlines())}

    assert set(said) == {
        "reference_ms", "planted", "found_ratio", "wrong_cause_ratio", "false_findings_per_1000_node_days",
        "duplicate_findings", "day_cpu_s", "ingest_ratio", "ingest_s", "ingest_rss_mib", "judge_s", "judge_gpus_s",
        "longest_write_ms", "keep_frame_s", "quiet_cpu_ratio", "minute_ms",
        "minute_transaction_ms", "minute_plot_ms", "minutes_of_a_day_mib",
    }, ended.stderr  # fmt: skip
    assert all(value >= 0 for value in said.values())
    assert "Traceback" not in ended.stderr
