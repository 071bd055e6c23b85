"""`bin/bench notify` at its small size: with a worker that is killed, nothing is lost and nobody is paged twice."""

import json
import subprocess
import sys

import pytest

from demo.settings import ROOT

pytestmark = pytest.mark.nightly
LONGEST_S = 900


def test_nothing_is_lost_and_nothing_doubled():
    command = [sys.executable, "-m", "benchmarks.notify", "--short", "--seed", "9"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_S, check=False)

    said = {figure["name"]: figure["value"] for figure in map(json.loads, ended.stdout.splitlines())}

    assert {said[name] for name in ("lost", "doubled_pages", "phantoms", "out_of_order")} == {0}, ended.stderr
    assert said["median_s"] > 0
