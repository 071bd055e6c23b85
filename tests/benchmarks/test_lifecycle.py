"""The bench of the life cycle, small: a storm opens the breaker, and without the breaker the bench fails."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.virtual_month.faults import FAULTS, STORM
from health.rules import RULES
from health.rules.gpus import GPU_RULES

ROOT = Path(__file__).parents[2]


def lines(*words: str) -> tuple[int, dict[str, dict]]:
    command = [sys.executable, "-m", "benchmarks.lifecycle", "--seed", "1", "--nodes", "60", "--faults", "12", *words]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    figures = {line["name"]: line for line in map(json.loads, ended.stdout.splitlines())}
    assert figures, ended.stderr
    return ended.returncode, figures


def test_every_sign_is_the_finding_of_a_rule():
    shown = {shown.rule for fault in (*FAULTS.values(), STORM) for shown in fault.shown}
    assert shown <= {rule.key for rule in (*RULES, *GPU_RULES)}


def test_no_well_node_is_quarantined_and_every_sick_one_returns():
    code, figures = lines()

    assert code == 0
    assert (figures["false_automatic"]["value"], figures["lost_nodes"]["value"]) == (0, 0)
    assert figures["wrong_quarantine_ratio"]["value"] <= 0.01
    assert figures["breakers_opened_in_storm"]["value"] >= 1
    assert figures["minutes_to_in_service_median"]["of"] >= 1


def test_without_the_breaker_it_fails():
    code, figures = lines("--no-breaker")

    assert code
    assert figures["false_automatic"]["value"] > 0
