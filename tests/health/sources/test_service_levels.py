"""A source that answers badly costs a sentence and at most a few seconds, and is never taken for a number."""

import json
import time
from typing import Any

import pytest

from health.sources import service_levels
from health.sources.service_levels import NotMeasured, measure, source_of
from health.telemetry.prometheus.client import Bounds
from health.telemetry.service_levels.expression import ServiceScope, read_expression
from tests.health.telemetry.prometheus.a_server import a_closed_port, a_server, saying
from tests.make import NOON, a_cluster, a_source

pytestmark = pytest.mark.django_db
VALUE = read_expression('sum(rate(requests_total{pod=~"{{pods}}"}[{{window}}]))')
SCOPE = ServiceScope(nodes=["gpu-1"], pods=["model-0"], window_s=300)


@pytest.fixture(autouse=True)
def _loopback(settings):
    settings.TELEMETRY_LOOPBACK = True


def measured(answer, **given: Any):
    with a_server(answer) as (url, _):
        return measure(a_source(a_cluster(), url=url, **given), VALUE, None, SCOPE, at=NOON.timestamp())


def an_answer(*parts: tuple[str, str], kind: str = "vector", many: int = 0):
    rows = [{"metric": {"quarterdeck": name}, "value": [1, value]} for name, value in parts]
    rows += [{"metric": {"quarterdeck": "value", "pod": f"p{n}"}, "value": [1, "2"]} for n in range(many)]
    return saying(json.dumps({"status": "success", "data": {"resultType": kind, "result": rows}}).encode())


def test_reads_value_samples_and_the_newest_sample_by_our_clock():
    answer = an_answer(("value", "0.5"), ("samples0", "12"), ("samples1", "9"), ("newest0", "100"), ("newest1", "90"))

    found = measured(answer, clock_offset_s=5.0)

    assert (found.value, found.samples, found.newest_at) == (0.5, 9, 95)


@pytest.mark.parametrize("answer", [an_answer(), an_answer(("value", "NaN")), an_answer(("value", "+Inf"))])
def test_nothing_and_no_number_are_no_value(answer):
    assert measured(answer).value is None


@pytest.mark.parametrize(
    ("answer", "cause", "said"),
    [
        (an_answer(kind="matrix"), "source-silent", "a matrix instead of a vector"),
        (an_answer(many=10_000), "many-series", "The query returns 10000 series. Aggregate them"),
        (an_answer(many=50_000), "source-silent", "larger than 1 MiB"),
        (an_answer(("value", "1"), ("clusters0", "2")), "other-clusters", "of 2 clusters"),
        (
            an_answer(("value", "1"), ("clusters0", "1"), ("clusters by cluster", "3")),
            "other-clusters",
            "of 3 clusters",
        ),
        (
            saying(b'{"status":"error","errorType":"bad_data","error":"parse error"}', 400),
            "source-silent",
            "parse error",
        ),
    ],
)
def test_a_bad_answer_is_a_sentence(answer, cause, said):
    with pytest.raises(NotMeasured) as refusal:
        measured(answer)

    assert refusal.value.cause == cause
    assert said in str(refusal.value)


def test_a_source_that_takes_thirty_seconds_is_given_up(monkeypatch):
    monkeypatch.setattr(service_levels, "BOUNDS", Bounds(connect_s=0.2, read_s=0.2, answer_s=0.3, answer_bytes=1000))
    begun = time.monotonic()

    with pytest.raises(NotMeasured, match="sent nothing"):
        measured(lambda _to: time.sleep(1))

    assert time.monotonic() - begun < 5


def test_no_source_no_server_and_no_pods_are_three_sentences():
    cluster = a_cluster()
    with pytest.raises(NotMeasured, match="no Prometheus"):
        source_of(cluster.pk)
    source = a_source(cluster, url=f"http://127.0.0.1:{a_closed_port()}")
    with pytest.raises(NotMeasured, match="cannot be reached"):
        measure(source_of(cluster.pk), VALUE, None, SCOPE, at=NOON.timestamp())
    with pytest.raises(NotMeasured, match="No GPU pod ran"):
        measure(source, VALUE, None, ServiceScope(["gpu-1"], [], 300), at=NOON.timestamp())
