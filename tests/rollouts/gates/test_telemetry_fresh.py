import pytest

from rollouts.gates.base import Answer
from rollouts.gates.telemetry_fresh import TelemetryFresh
from tests.make import NOON
from tests.rollouts.make import a_health, a_target, a_telemetry, evidence


def answer(*targets, **given):
    return TelemetryFresh().evaluate(evidence(*targets, **given), now=NOON)


def test_passes_when_every_gpu_reports():
    result = answer(a_target("node-1"), a_target("node-2"))

    assert (result.answer, result.title) == (Answer.PASS, "Every GPU of 2 changed nodes reports")
    assert {item.label: item.value for item in result.evidence} == {"GPUs with a fresh sample": 16, "GPUs": 16}


@pytest.mark.parametrize(
    ("telemetry", "health", "cause"),
    [
        (a_telemetry(), a_health(has_source=False), "no-source"),
        (a_telemetry(), None, "no-source"),
        (a_telemetry(), a_health(trouble="Redis does not answer."), "source-silent"),
        (a_telemetry(reporting=7), a_health(), "gpus-silent"),
        (None, a_health(), "gpus-silent"),
    ],
)
def test_whatever_is_missing_waits_with_its_remedy(telemetry, health, cause):
    result = answer(a_target(telemetry=telemetry), health=health)

    assert (result.answer, result.cause) == (Answer.WAIT, cause)
    assert len(result.steps) > 1
