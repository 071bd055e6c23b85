"""The demo's cluster is one that NVIDIA and Kubernetes support: the matrix that a newcomer reads says so."""

from datetime import UTC, date, datetime

import pytest

from gpu.compatibility import Facts, Support, evaluate, the_matrix
from gpu.compatibility.ranges import is_in_range, is_of, order
from simulator.fleets.machines import node
from simulator.fleets.small import small
from simulator.versions import CONTAINERD, KUBERNETES

PLAN = small(nodes=8)
OPERATOR = PLAN.release.version.removeprefix("v")
LIVES = {
    (life.of, life.version): life.ends
    for life in the_matrix().lives
    if life.ends and life.of in ("kubernetes", "containerd")
}


@pytest.mark.parametrize("machine", [machine for machine in PLAN.machines if machine.sku], ids=lambda each: each.name)
def test_nothing_of_the_demo_is_unsupported_on_the_day_the_matrix_was_read(machine):
    told = node(machine, datetime.now(UTC))["status"]["nodeInfo"]
    facts = Facts(
        operator=OPERATOR,
        mode="NVIDIADriver",
        kubernetes=KUBERNETES,
        kubelet=told["kubeletVersion"],
        os=told["osImage"],
        kernel=told["kernelVersion"],
        runtime=told["containerRuntimeVersion"],
        driver=machine.driver,
        product=machine.product,
    )

    answers = evaluate(facts, today=the_matrix().read_on)

    assert [each.sentence for each in answers if each.answer in (Support.KNOWN_BAD, Support.UNSUPPORTED)] == []


@pytest.mark.parametrize(("of", "version"), [("kubernetes", KUBERNETES.removeprefix("v")), ("containerd", CONTAINERD)])
def test_the_demo_runs_the_release_that_is_supported_longest(of: str, version: str):
    """So that it stays supported for as long as the matrix can say: of what NVIDIA lists for the demo's operator."""
    listed = {name for (thing, name) in LIVES if thing == of and any(is_in_range(name, span) for span in spans(of))}

    longest = max(listed, key=lambda name: (LIVES[of, name] or date.min, order(name)))

    assert is_of(version, longest)


def spans(of: str) -> list[tuple[str, str]]:
    entries = the_matrix().platforms if of == "kubernetes" else the_matrix().runtimes
    mine = [entry for entry in entries if OPERATOR in entry.operator]
    found = [getattr(entry, "kubernetes" if of == "kubernetes" else "versions") for entry in mine]
    return [(span[0], span[1]) for span in found if span]
