"""The lines of the kernel that conditions quote."""

import pytest

from gpu.kernel_lines import LINES, LONGEST, kernel_line_in
from tests.search_steps import steps_of_search


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.key)
def test_a_family_knows_its_own_example_and_no_earlier_one_takes_it(line):
    assert kernel_line_in(line.example).key == line.key


@pytest.mark.parametrize(
    "text",
    [
        "kubelet has sufficient memory available",
        "nvidia 0000:3b:00.0: enabling device (0000 -> 0002)",
        "mlx5_core 0000:d2:00.0 eth2: Link up",
        "EXT4-fs (sda1): mounted filesystem with ordered data mode",
        "cri:containerd on the node is functioning properly",
    ],
)
def test_what_a_healthy_node_says_is_of_no_family(text):
    assert kernel_line_in(text) is None


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("An uncorrectable error occurred on GPU 0", None),
        ("bus error: non-correctable error", None),
        ("an un-correctable error", None),
        ("SBE: correctable ecc errors", "corrected"),
        ("NeuronHBMUncorrectableError: Discovered HBM Uncorrectable Error", "neuron"),
    ],
)
def test_a_line_that_resembles_a_family(text, key):
    line = kernel_line_in(text)

    assert (line and line.key) == key


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.key)
def test_no_message_of_a_condition_holds_a_worker(line):
    for pattern in line.patterns:
        assert steps_of_search(pattern, LONGEST) < 1_000_000, pattern
