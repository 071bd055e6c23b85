"""Without any one of its guards the engine is found out by the bench of crashes."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.crashing.plants import PLANTS

ROOT = Path(__file__).parents[2]
SEED = 1
# Of each the schedule that found it out when somebody looked. One that does not any more costs only time: the others
# are tried after it, and the number they come to belongs here.
IN_FEW_LIVES = {
    "turn": 165,
    "budget": 5,
    "room": 5,
    "room-back": 14,
    "broken": 1,
    "live-look": 1,
    "same-node": 115,
    "ledger": 27,
    "stop": 403,
    "freeze-last": 403,
    "read-back": 25,
    "writer-lease": 91,
    "foreign": 45,
    "recall": 7,
    "fence": 103,
    "freeze": 15,
    "switch": 9,
    "approval": 5,
    "rejection": 453,
    "void": 211,
    "free-ours": 205,
    "windows": 15,
    "watch-only": 163,
    "opt-outs": 1,
    "as-before": 1,
    "moment": 10,
}
IN_CASES = {
    "job-intent": None,
    "pull-stop": 9,
    "pull-purpose": None,
    "job-landing": None,
    "job-ours": None,
    "eviction-uid": 1277,
    "eviction-stop": 1297,
    "release-ours": 1697,
    "validation": 1657,
    "power-off": 557,
    "power-back": 1157,
    "breakfix-seen": 277,
    "owners-once": 297,
    "owners-time": 297,
    "others-work": None,
    "breaker": 3117,
}  # None: nobody has looked yet
IN_ALL_LIVES = {
    "slots": 68,
    "slots-back": 82,
    "offered": 68,
    "cordons": 34,
    "cordon-note": 34,
    "cordon-proof": 34,
}  # where the operator has fewer slots than a stage, a DRA driver offers GPUs, or a stage tests its nodes
MOST = 400  # schedules beside that one


@pytest.fixture(scope="module")
def tried() -> dict[str, dict]:
    """By plant: what the bench says of it."""
    lines = [*each(IN_FEW_LIVES, "--few"), *each(IN_CASES, "--few", "--cases"), *each(IN_ALL_LIVES)]
    return {line["plant"]: line for line in lines}


def each(plants: Mapping[str, int | None], *words: str) -> list[dict]:
    asked = [plant if number is None else f"{plant}={number}" for plant, number in plants.items()]
    command = [sys.executable, "-m", "benchmarks.crash", "--seed", str(SEED), "--schedules", str(MOST), *words]
    ended = subprocess.run([*command, "--each-plant", *asked], cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert lines, ended.stderr
    assert (ended.returncode == 0) == (lines[-1]["value"] == 0), ended.stderr
    planted = [line for line in lines if line["name"] == "planted"]
    assert {line["plant"] for line in planted} == plants.keys(), ended.stderr
    return planted


def test_every_guard_is_taken_out():
    assert sorted([*IN_FEW_LIVES, *IN_CASES, *IN_ALL_LIVES]) == sorted(PLANTS)


@pytest.mark.nightly
@pytest.mark.parametrize("plant", PLANTS)
def test_without_this_guard_the_engine_is_found_out(plant: str, tried: dict[str, dict]):
    assert tried[plant]["found"], f"{MOST} schedules without this, and nothing was found: {PLANTS[plant].says}"
