"""Test Jobs of a gate for which nodes of its stage have no image: the gate would wait until its timeout."""

from collections.abc import Iterator

from operations.pool_tests import tests_of, why_no_image
from rollouts.checks import Check, listed, stage_field
from rollouts.gates.test_job import TestJobGate
from rollouts.preflight.subject import PreflightSubject
from wording.lists import one_or_count
from wording.reports import LONGEST_SUMMARY, fit


def are_missing(subject: PreflightSubject) -> Iterator[Check]:
    """Yields a blocker for each stage. One query, and none without a gate that takes the image of a pool."""
    gates = [
        (stage, gate)
        for stage in subject.stages
        for gate in stage.gates
        if isinstance(gate, TestJobGate) and not gate.image and not gate.advisory
    ]
    its = tests_of(subject.picks.nodes) if gates else {}
    for stage, gate in gates:
        nodes = subject.picks.by_stage.get(stage.index, ())
        if without := [node.name for node in nodes if not its[node.pk].image(gate.image_key)]:
            yield Check(
                "no-test-image",
                title=fit("No image of the test Job for {}", one_or_count(without, "node")),
                summary=fit("Test Job of {} would wait for ever.", stage.name, longest=LONGEST_SUMMARY),
                evidence=listed("Nodes", without),
                steps=(why_no_image(gate.image_key), "Or name an image in the gate, or make the gate advisory."),
                field=stage_field(stage.index, f"gate_options.{gate.key}"),
            )
