"""A real Prometheus evaluates every ready-made service level, from ten minutes of the series that servers export."""

import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from capacity.models import PoolServiceLevel, ServiceLevelHour
from capacity.placements.service_level_changes import define, preview_service_level, put_service_level
from capacity.placements.service_level_history import measure as measure_hour
from health.models import GpuHour
from health.sources.hours import provide_partition
from health.sources.service_levels import Measured, NotMeasured, measure
from health.telemetry.service_levels.expression import ServiceScope, read_expression
from health.telemetry.service_levels.indicators import INDICATORS
from tests import make

pytestmark = [pytest.mark.prometheus, pytest.mark.django_db]
EVERY_S, LENGTH_S = 15, 600
# What a request adds to each series, one request a second. Names and labels are those of the servers' documentation:
# https://docs.vllm.ai/en/latest/design/metrics/ and the sources in `indicators.toml`.
HISTOGRAMS = (  # each request takes between 0.25 and 0.5 of its unit
    "vllm:time_to_first_token_seconds", "vllm:time_per_output_token_seconds", "vllm:e2e_request_latency_seconds",
    "vllm:request_queue_time_seconds", "nv_inference_first_response_histogram_ms", "tgi_request_duration",
    "tgi_request_queue_duration", "tgi_request_mean_time_per_token_duration", "time_to_first_token_seconds",
    "time_per_output_token_seconds", "e2e_request_latency_seconds",
)  # fmt: skip
COUNTERS = {
    'vllm:generation_tokens_total{pod="POD"}': 200.0,
    'vllm:request_success_total{pod="POD",finished_reason="stop"}': 0.9,
    'vllm:request_success_total{pod="POD",finished_reason="abort"}': 0.1,
    'nv_inference_request_duration_us{pod="POD"}': 5000.0,
    'nv_inference_queue_duration_us{pod="POD"}': 100.0,
    'nv_inference_request_success{pod="POD"}': 1.0,
    'nv_inference_request_failure{pod="POD"}': 0.0,
    'tgi_request_success{pod="POD"}': 0.75,
    'tgi_request_failure{pod="POD"}': 0.25,
    'request_finish_total{pod="POD"}': 1.0,
}
BUCKETS = {"0.25": 0.0, "0.5": 1.0, "+Inf": 1.0}
EXPECTED = {
    "vllm-tokens": 200, "vllm-aborted": 0.1, "triton-latency-mean": 5000, "triton-queue-mean": 100,
    "triton-failures": 0, "tgi-failures": 0.25, "nim-requests": 1,
}  # fmt: skip
P99 = 0.4975  # of what lies evenly between 0.25 and 0.5


def exposition(now: float) -> Iterator[str]:
    """Yields the series in OpenMetrics' text format, with two pods of other clusters' names."""
    rates = dict(COUNTERS)
    for name in HISTOGRAMS:
        rates |= {f'{name}_bucket{{pod="POD",le="{le}"}}': added for le, added in BUCKETS.items()}
        rates[f'{name}_count{{pod="POD"}}'] = 1.0
    for series, rate in rates.items():
        yield from (
            f"{series.replace('POD', 'model-0')} {rate * ago} {now - LENGTH_S + ago}"
            for ago in range(0, LENGTH_S, EVERY_S)
        )
    for cluster in ("eu-1", "eu-2"):
        yield f'up{{cluster="{cluster}"}} 1 {now - EVERY_S}'
    yield "# EOF"


@pytest.fixture
def source(tmp_path: Path, served: Any, settings: Any) -> Any:
    settings.TELEMETRY_LOOPBACK = True
    text = tmp_path / "series.txt"
    text.write_text("\n".join(exposition(time.time())) + "\n")
    folder = tmp_path / "prometheus" / "data"
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder)],
        check=True, capture_output=True,
    )  # fmt: skip
    return make.a_source(make.a_cluster(), url=served().url, matchers='job=""')  # the series have none


def measured(source: Any, key: str, *, matchers: str = "", pod: str = "model-0") -> Measured:
    indicator = INDICATORS[key]
    value, samples = read_expression(indicator.expression), read_expression(indicator.samples)
    scope = ServiceScope(["gpu-1"], [pod], LENGTH_S / 2, matchers)
    return measure(source, value, samples, scope, at=time.time() - EVERY_S)


def test_every_ready_made_service_level_is_evaluated(source: Any) -> None:
    found = {key: measured(source, key, matchers=source.matchers) for key in INDICATORS}

    expected = {key: EXPECTED.get(key, P99) for key in INDICATORS}
    assert {key: each.value for key, each in found.items()} == pytest.approx(expected, rel=0.01)
    assert all(each.samples > 200 and each.newest_at for each in found.values())


def test_pods_without_series_have_no_value_and_no_samples(source: Any) -> None:
    nothing = measured(source, "vllm-ttft-p99", matchers=source.matchers, pod="model-1")

    assert (nothing.value, nothing.samples, nothing.newest_at) == (None, 0, None)


def test_without_matchers_a_prometheus_of_two_clusters_is_refused(source: Any) -> None:
    with pytest.raises(NotMeasured, match="of 2 clusters"):
        measured(source, "vllm-ttft-p99")


def test_the_service_level_of_a_pool_is_previewed_and_measured_on_full_and_on_other_nodes(source: Any) -> None:
    now = datetime.now(UTC)
    hour = now - timedelta(hours=1, seconds=EVERY_S)
    pool = make.a_pool(source.cluster, "chat")
    provide_partition(hour)
    for name, allocated_s, pod in (("full", 3600, "model-0"), ("part", 1800, "model-1")):
        node = make.a_node(source.cluster, name, pool=pool, gpus=1)
        make.a_placement(node, pod, since=now - timedelta(days=1), until=None)
        GpuHour.objects.create(
            cluster=source.cluster, node_name=name, uuid=f"GPU-{name}", gi_id="", hour=hour, seen_s=3600,
            allocated_s=allocated_s,
        )  # fmt: skip
    given = dict.fromkeys(("expression", "samples", "unit"), "") | {"is_higher_better": False}
    given |= {"indicator": "vllm-ttft-p99"}

    preview = preview_service_level(pool, define(**given), now=now)
    put_service_level(pool, actor="ada", now=now, **given)
    measure_hour(PoolServiceLevel.objects.get(), hour)

    assert preview.trouble == ""
    assert preview.measured is not None
    assert preview.measured.value == pytest.approx(P99, rel=0.01)
    row = ServiceLevelHour.objects.get()
    assert row.full_value == pytest.approx(P99, rel=0.01)
    assert row.full_samples > 200
    assert (row.trouble, row.other_value) == ("", None), "no pod of the other node has series"
