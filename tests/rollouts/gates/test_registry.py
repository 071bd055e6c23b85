from dataclasses import fields, is_dataclass
from datetime import timedelta
from pathlib import Path

import pytest

import rollouts.gates
from rollouts.gates import GATES
from rollouts.gates.base import Gate, When

BESIDE_THE_GATES = {
    "__init__",
    "background",
    "base",
    "earlier_findings",
    "first_events",
    "options",
    "results",
    "sequential_test",
    "shared_waits",
    "versions",
}
AGAIN = {"slo_2", "slo_3"}  # the gate of a file once more in one stage
ALL = pytest.mark.parametrize("gate", GATES.values(), ids=GATES)


def test_every_file_of_the_folder_is_in_the_table():
    folder = Path(rollouts.gates.__file__).parent

    files = {file.stem for file in folder.glob("*.py")} - BESIDE_THE_GATES

    assert files == set(GATES) - AGAIN


@ALL
def test_a_gate_lives_in_the_file_of_its_key(gate):
    assert gate.__module__ == f"rollouts.gates.{'slo' if gate.key in AGAIN else gate.key}"


@ALL
def test_a_gate_says_what_it_is_called_and_when_it_is_asked(gate):
    assert gate.title
    assert gate.when in When


@ALL
def test_a_gate_works_without_options_and_is_never_changed(gate):
    made = gate()

    assert is_dataclass(made)
    assert made == gate()
    assert hash(made) == hash(gate())


@ALL
def test_every_option_of_its_own_is_a_duration_a_number_a_switch_text_or_groups(gate):
    own = {field.name for field in fields(gate)} - {field.name for field in fields(Gate)}

    assert {type(getattr(gate(), name)) for name in own} <= {timedelta, int, float, bool, str, dict}
