"""Files of faults: what a driver does to a node, and which entries are refused."""

from pathlib import Path

import pytest

from gpu.entry_files import BadEntry
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
        "is_exporter_silent": "true",
    }
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
    ],
)
def test_an_entry_that_does_not_fit_is_named(tmp_path: Path, fields: dict[str, object], says: str):
    with pytest.raises(BadEntry, match=f"own: .*{says}"):
        read_faults(written(tmp_path, **fields))


def test_a_file_without_faults_is_refused(tmp_path: Path):
    path = tmp_path / "faults.toml"
    path.write_text("")

    with pytest.raises(BadEntry, match="it has no"):
        read_faults(path)
