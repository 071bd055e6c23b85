"""Files of faults: what a driver does to a node, and which entries are refused."""

from datetime import timedelta
from pathlib import Path

import pytest

from gpu.entry_files import BadEntry
from health.telemetry.metrics import METRICS
from rollouts.gates.base import GpuTelemetry
from rollouts.gates.options import read_gates
from rollouts.rehearsal.faults import read_faults
from rollouts.rehearsal.fleet import VirtualFleet, VirtualNode
from rollouts.rehearsal.run import RehearsedStage, rehearse
from tests.make import NOON


def written(tmp_path: Path, **fields: object) -> Path:
    path = tmp_path / "faults.toml"
    lines = (f"{name} = {value}" for name, value in ({"key": '"own"', "title": '"Own fault"'} | fields).items())
    path.write_text("\n".join(["[[faults]]", *lines]))
    return path


@pytest.mark.parametrize(
    ("gate", "says"),
    [
        ("workloads_ready", "fails on node-0"),
        ("allocatable_restored", "node-0 offers fewer"),
        ("thermal", "GPU 3 of node-0"),
        ("telemetry_fresh", "report nothing"),
    ],
)
def test_effects_of_one_fault_add_up(tmp_path: Path, gate: str, says: str):
    effects = {
        "pods": '"crash"',
        "missing_gpus": 2,
        "findings": '{ gpu-hot = "warning" }',
    }
    if gate == "telemetry_fresh":  # it hides findings of GPUs
        effects["is_exporter_silent"] = "true"
    node = VirtualNode("node-0", {}, "1", fault=read_faults(written(tmp_path, **effects))["own"])
    stage = RehearsedStage("Canary", ["node-0"], tuple(read_gates({gate: {}})))

    outcome = rehearse(VirtualFleet({"node-0": node}, "1", "2", at_once=0), [stage], begins=NOON)

    assert says in outcome.stopped_by


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "it has no effect"),
        ({"pods": '"vanish"'}, "'vanish' is not a valid PodFault"),
        ({"throughput_percent": 0}, "from 1 to 100"),
        ({"missing_gpus": -1}, "0 or more"),
        ({"missing_gpus": 1, "factor": '"weather"'}, "factor is one of kernel"),
        ({"findings": '{ gpu-melted = "critical" }'}, "no rule is called gpu-melted"),
        ({"findings": '{ gpu-hot = "dire" }'}, "a severity is one of"),
        ({"missing_gpus": 1, "at_least": 5}, "unknown at_least"),
        ({"missing_gpus": 1, "value": '"a"'}, "value needs a factor"),
        ({"missing_gpus": 1, "on_minutes": 5}, "belong together"),
        ({"never_loads": "true", "on_minutes": 5, "off_minutes": 5}, "do not come and go"),
        ({"missing_gpus": 1, "after_minutes": 99_999}, "from 0 to 20160"),
        ({"metrics": "{ heat = 4 }"}, "no metric is called heat"),
        ({"metrics": "{ temperature_celsius = 9000 }"}, "temperature_celsius is from"),
        ({"metrics": '{ temperature_celsius = "hot" }'}, "not of the type"),
        ({"metrics": "{ temperature_celsius = 60 }"}, "no rule finds these values"),
    ],
)
def test_an_entry_that_does_not_fit_is_named(tmp_path: Path, fields: dict[str, object], says: str):
    with pytest.raises(BadEntry, match=f"own: .*{says}"):
        read_faults(written(tmp_path, **fields))


def test_two_faults_with_one_key_and_a_broken_file_are_refused(tmp_path: Path):
    path = written(tmp_path, missing_gpus=1)
    path.write_text(path.read_text() + "\n" + path.read_text())
    with pytest.raises(BadEntry, match="two faults have the key own"):
        read_faults(path)

    path.write_text("[[faults]\n")
    with pytest.raises(BadEntry, match=r"faults\.toml: "):
        read_faults(path)


def rehearsed(tmp_path: Path, gates: dict[str, dict], node: dict[str, object] | None = None, **fields: object):
    fault = read_faults(written(tmp_path, **fields))["own"]
    its = VirtualNode("node-0", {}, "1", fault=fault, **(node or {}))
    stage = RehearsedStage("Canary", ["node-0"], tuple(read_gates(gates)))
    return rehearse(VirtualFleet({"node-0": its}, "1", "2", at_once=0), [stage], begins=NOON)


DRIFT = {"metrics": "{ ecc_corrected = 2000 }", "ramp_minutes": 20}


def test_a_metric_that_drifts_fails_the_gate_once_its_rule_finds_it(tmp_path: Path):
    outcome = rehearsed(tmp_path, {"ecc": {}, "soak": {"duration_s": 3600}}, **DRIFT)

    assert (outcome.gate, outcome.is_complete) == ("ecc", False)
    assert "Many corrected memory errors" in outcome.stopped_by
    assert outcome.first_sign < timedelta(minutes=12) < outcome.took


def test_what_nobody_exports_is_found_by_nobody(tmp_path: Path):
    exports = {key: 8 for key in METRICS if key != "ecc_corrected"}
    blind = {"telemetry": GpuTelemetry(8, 8, exports, frozenset(exports))}

    assert rehearsed(tmp_path, {"ecc": {}, "soak": {"duration_s": 3600}}, blind, **DRIFT).is_complete
    outcome = rehearsed(tmp_path, {"findings": {}}, findings='{ gpu-xid = "critical" }', is_exporter_silent="true")
    assert "report nothing" in outcome.stopped_by


def test_a_fault_of_tenants_alone_passes_the_test_job(tmp_path: Path):
    assert rehearsed(tmp_path, {"test_job": {}}, pods='"tenants-crash"').is_complete
    assert "fail" in rehearsed(tmp_path, {"workloads_ready": {}}, pods='"tenants-crash"').stopped_by


def test_a_fault_comes_and_goes(tmp_path: Path):
    lost = {"node": '"lost"', "on_minutes": 2, "off_minutes": 8, "after_minutes": 3}
    node = VirtualNode("node-0", {}, "1", fault=read_faults(written(tmp_path, **lost))["own"], changed_at=NOON)

    ready = [node.is_ready(NOON + timedelta(minutes=minute)) for minute in range(15)]

    assert ready == [True] * 3 + [False] * 2 + [True] * 8 + [False] * 2
    assert node.first_sign(NOON + timedelta(minutes=6)) is None  # it was not released
    node.since = NOON
    assert node.first_sign(NOON + timedelta(minutes=6)) == NOON + timedelta(minutes=3)


def test_restarts_are_of_the_time_in_which_the_fault_shows(tmp_path: Path):
    crashes = {"pods": '"tenants-crash"', "on_minutes": 4, "off_minutes": 6}
    fault = read_faults(written(tmp_path, **crashes))["own"]
    node = VirtualNode("node-0", {}, "1", fault=fault, changed_at=NOON, open_since=NOON)

    restarts = [node.restarts(NOON + timedelta(minutes=minute)) for minute in (1, 2, 4, 9, 10, 12, 19)]

    assert restarts == [0, 1, 2, 2, 2, 3, 4]


def test_a_source_that_comes_back_shows_the_nodes_again(tmp_path: Path):
    silent = {"is_source_silent": "true", "on_minutes": 4, "off_minutes": 6}
    node = VirtualNode("node-0", {}, "1", fault=read_faults(written(tmp_path, **silent))["own"], changed_at=NOON)
    fleet = VirtualFleet({"node-0": node}, "1", "1", at_once=0)

    troubles = []
    for minute in (0, 5, 11, 15):
        fleet.reconcile(NOON + timedelta(minutes=minute))
        troubles.append(bool(fleet.trouble))

    assert troubles == [True, False, True, False]


def test_a_source_that_falls_silent_hides_every_node(tmp_path: Path):
    outcome = rehearsed(tmp_path, {"telemetry_fresh": {}, "soak": {}}, is_source_silent="true", after_minutes=5)

    assert "No GPU telemetry arrives" in outcome.stopped_by


def test_a_file_without_faults_is_refused(tmp_path: Path):
    path = tmp_path / "faults.toml"
    path.write_text("")

    with pytest.raises(BadEntry, match="it has no"):
        read_faults(path)
