"""Numbers on the simulator's command line: each is taken or refused in a sentence, never found out later."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.__main__ import MOST_NODES, arguments
from simulator.fleets import FLEETS

WRONG = [
    *(("--nodes", word) for word in ("-1", "many", "1.5", "", str(MOST_NODES + 1), "9" * 5000)),
    *(("--clusters", word) for word in ("0", "-1", "100000")),
    *(("--port", word) for word in ("-1", "65536", "http")),
    *(("--speed", word) for word in ("0", "-1", "nan", "inf", "1e9", "fast")),
    *(("--churn", word) for word in ("-1", "nan", "inf", "1e9")),
    *(("--seed", word) for word in ("-1", "x", "9" * 30)),
]


@pytest.mark.parametrize(("flag", "word"), WRONG)
def test_a_number_that_makes_no_sense_is_refused_with_those_that_do(
    flag: str, word: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit, match="2"):
        arguments([f"{flag}={word}"])

    said = capsys.readouterr().err
    assert f"argument {flag}" in said
    assert " number from " in said


@given(st.text(max_size=12))
def test_any_word_is_a_number_of_nodes_or_refused(word: str):
    try:
        nodes = arguments([f"--nodes={word}"]).nodes
    except SystemExit:
        return
    assert 0 <= nodes <= MOST_NODES


@given(st.one_of(st.text(max_size=12), st.floats().map(str)))
def test_any_word_is_a_speed_or_refused(word: str):
    try:
        speed = arguments([f"--speed={word}"]).speed
    except SystemExit:
        return
    assert math.isfinite(speed)
    assert speed > 0


def test_ports_of_many_clusters_end_where_ports_end(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        arguments(["--port", "65530", "--clusters", "10"])

    assert "65539" in capsys.readouterr().err


@pytest.mark.parametrize("operator", ["", "latest", "v26", "v26.x", "26.7.0.1"])
def test_an_operator_that_is_no_version_is_refused(operator: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        arguments([f"--operator={operator}"])

    assert "v26.7.0" in capsys.readouterr().err


@pytest.mark.parametrize("fleet", FLEETS)
@pytest.mark.parametrize("nodes", [0, 1, 2, 3, 7, 64, 65])
def test_a_fleet_of_any_size_has_so_many_gpu_nodes(fleet: str, nodes: int):
    plan = FLEETS[fleet](nodes=nodes, seed=1)

    assert sum(bool(machine.sku or machine.accelerators) for machine in plan.machines) == nodes or fleet == "large"
    assert all(workload.replicas > 0 for workload in plan.workloads)
