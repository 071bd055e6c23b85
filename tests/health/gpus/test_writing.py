"""What page, REST and files say of a GPU is one thing: and 0, not exported, stale and silent are four."""

import csv
import json
from datetime import timedelta
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edges.csv_text import FORMULA, as_csv
from health.gpus.columns import READ
from health.gpus.serializer import gpu_data, head, line
from health.models import TelemetrySource
from health.telemetry.snapshot import GpuDevice
from tests import make
from tests.health.gpus.telling import UNSAID, table, tell
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]


@pytest.fixture
def seer():
    return make.a_user("root", role="admin")


@pytest.fixture
def told():
    cluster = make.a_cluster("east")
    make.a_node(cluster, "gpu-1", gpus=3)
    make.a_source(cluster, exported=["temperature_celsius", "gpu_utilisation_ratio", "xid"])
    tell(
        cluster, GpuDevice("gpu-1", 0, "GPU-a"), GpuDevice("gpu-1", 1, "GPU-b"), ages=[5, 300],
        temperature_celsius=[0.0, 61.0], gpu_utilisation_ratio=[0.25, UNSAID], xid=[79.0, 0.0],
    )  # fmt: skip
    return cluster


def csv_of(client, query: str = "") -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(b"".join(client.get(f"/gpus.csv{query}")).decode())))


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_page_rest_and_files_tell_the_four_apart_alike(seer, told):
    client = visiting(seer)
    query = "?ordering=node"

    said = page(client, f"/gpus{query}").text
    rest = client.get(f"/api/v1/gpu-health{query}").json()["results"]
    rows = csv_of(client, query)
    file = json.loads(b"".join(client.get(f"/gpus.json{query}")))

    assert "0 °C 25% not exported not exported 79" in said
    assert "61 °C never seen not exported not exported none" in said
    assert "never seen No telemetry yet." in said
    assert [row["metrics"]["temperature_celsius"]["state"] for row in rest] == ["fresh", "stale", "never"]
    assert [row["metrics"]["temperature_celsius"]["value"] for row in rest] == [0.0, 61.0, None]
    assert rest[1]["metrics"]["temperature_celsius"]["since"] == "2026-11-21T11:55:00Z"
    assert [row["temperature_celsius"] for row in rows] == ["0.0", "61.0", ""]
    assert [row["temperature_celsius_state"] for row in rows] == ["fresh", "stale", "never"]
    assert [row["power_watts_state"] for row in rows] == ["not-exported"] * 3
    assert file["gpus"] == rest
    assert file["count"] == len(rest) == 3


@pytest.fixture
def counted():
    """ECC errors of now, 0, of before, and never; row remaps not exported."""
    cluster = make.a_cluster("east")
    make.a_node(cluster, "gpu-1", gpus=4)
    make.a_source(cluster, exported=["temperature_celsius", "ecc_uncorrected"])
    tell(
        cluster, *(GpuDevice("gpu-1", index, f"GPU-{index}") for index in range(4)), ages=[5, 5, 300, 5],
        temperature_celsius=[40.0] * 4, ecc_uncorrected=[2.0, 0.0, 7.0, UNSAID],
    )  # fmt: skip
    return cluster


ASKED = "?ordering=node&column=ecc_uncorrected&column=row_remap_pending"


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_the_columns_of_other_metrics_tell_the_four_apart_alike_too(seer, counted):
    client = visiting(seer)

    said = page(client, f"/gpus{ASKED}").text
    rest = client.get(f"/api/v1/gpu-health{ASKED}").json()["results"]
    rows, file = csv_of(client, ASKED), json.loads(b"".join(client.get(f"/gpus.json{ASKED}")))

    assert "Node GPU Uncorrected ECC errors Row remapping pending" in said
    for line_said in ("east 0 2 not exported", "east 1 0 not exported", "east 2 7 not exported",
                      "east 3 never seen not exported"):  # fmt: skip
        assert line_said in said
    html = client.get(f"/gpus{ASKED}").content.decode()
    assert 'title="Not current. Stale since 11:55:00 UTC."' in html
    errors = [row["metrics"]["ecc_uncorrected"] for row in rest]
    assert [(each["state"], each["value"]) for each in errors] == [
        ("fresh", 2.0), ("fresh", 0.0), ("stale", 7.0), ("never", None),
    ]  # fmt: skip
    assert {row["metrics"]["row_remap_pending"]["state"] for row in rest} == {"not-exported"}
    assert file["gpus"] == rest
    assert [(row["ecc_uncorrected"], row["ecc_uncorrected_state"]) for row in rows] == [
        ("2.0", "fresh"), ("0.0", "fresh"), ("7.0", "stale"), ("", "never"),
    ]  # fmt: skip
    assert {(row["row_remap_pending"], row["row_remap_pending_state"]) for row in rows} == {("", "not-exported")}
    assert "ecc_uncorrected" not in csv_of(client)[0]


def test_a_silent_source_is_said_of_the_columns_of_other_metrics_too(seer, counted):
    TelemetrySource.objects.update(state="silent", state_since=NOON - timedelta(minutes=2))
    client = visiting(seer)

    html = client.get(f"/gpus{ASKED}").content.decode()
    rest = client.get(f"/api/v1/gpu-health{ASKED}").json()["results"]

    assert html.count('title="Not current. The telemetry source is silent since 11:58:00 UTC."') == 3
    assert 'title="The telemetry source is silent since 11:58:00 UTC.">no data' in html
    assert {row["metrics"]["ecc_uncorrected"]["state"] for row in rest} == {"source-silent"}
    assert {row["metrics"]["row_remap_pending"]["state"] for row in rest} == {"source-silent"}


def test_a_source_that_is_silent_or_away_is_said_of_every_value(seer, told):
    TelemetrySource.objects.update(state="silent", state_since=NOON - timedelta(minutes=2))
    first = gpu_data(next(table(seer, ordering="node").every()))
    said = page(visiting(seer), "/gpus").text
    TelemetrySource.objects.all().delete()
    without = gpu_data(next(table(seer, ordering="node").every()))

    assert (first["metrics"]["temperature_celsius"]["state"], first["metrics"]["power_watts"]["state"]) == (
        "source-silent", "source-silent",
    )  # fmt: skip
    assert first["metrics"]["temperature_celsius"]["since"] == "2026-11-21T11:58:00Z"
    assert "east: the telemetry source is silent since 11:58:00 UTC. Hatched values are its last values." in said
    assert without["metrics"]["temperature_celsius"] == {
        "state": "no-source", "value": None, "unit": "°C", "sampled_at": None, "since": None,
    }  # fmt: skip


def test_a_source_that_is_silent_since_another_day_says_which(seer, told):
    TelemetrySource.objects.update(state="silent", state_since=NOON - timedelta(days=2))

    html = visiting(seer).get("/gpus").content.decode()

    assert "the telemetry source is silent since 2026-11-19 12:00:00 UTC." in html
    assert "The telemetry source is silent since 2026-11-19 12:00:00 UTC." in html


def test_redis_that_is_away_is_said_and_never_a_zero(seer, told, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1"

    said = page(visiting(seer), "/gpus").text

    assert "east: Redis does not answer, so the last values of the GPUs are unknown" in said
    assert "0 °C" not in said


def test_under_mig_the_boards_own_values_are_not_those_of_a_slice(seer):
    cluster = make.a_cluster("east")
    make.a_node(cluster, "gpu-1", gpus=1, mig_strategy="mixed")
    make.a_source(cluster, exported=["temperature_celsius", "gpu_utilisation_ratio", "memory_used_mib"])
    tell(
        cluster, GpuDevice("gpu-1", 0, "GPU-a", "1", "1g.10gb"), GpuDevice("gpu-1", 0, "GPU-a", "2", "1g.10gb"),
        temperature_celsius=[50.0, 50.0], gpu_utilisation_ratio=[0.0, 0.0], memory_used_mib=[10.0, 10.0],
    )  # fmt: skip

    said = gpu_data(next(table(seer).every()))

    assert said["use"] == "2 MIG slices"
    assert {key: each["state"] for key, each in said["metrics"].items() if each["state"] == "not-applicable"} == {
        "gpu_utilisation_ratio": "not-applicable", "engine_active_ratio": "not-applicable",
        "memory_used_mib": "not-applicable", "memory_free_mib": "not-applicable",
    }  # fmt: skip
    assert said["metrics"]["temperature_celsius"]["value"] == 50.0


def test_a_driver_whose_label_is_gone_is_what_it_was(seer):
    make.a_node(make.a_cluster("east"), "gpu-1", gpus=1, driver_version="580.95.05", driver_unknown_since=NOON)

    seen = next(table(seer).every())

    assert (
        gpu_data(seen)["driver_unknown_since"] == dict(zip(head(READ), line(seen), strict=True))["driver_unknown_since"]
    )
    assert gpu_data(seen)["driver_unknown_since"] == "2026-11-21T12:00:00Z"


def test_a_board_without_slices_is_whole_where_others_of_its_node_have_theirs(seer):
    cluster = make.a_cluster("east")
    make.a_node(cluster, "gpu-1", gpus=3, mig_strategy="mixed")
    make.a_source(cluster, exported=["temperature_celsius"])
    tell(
        cluster, GpuDevice("gpu-1", 0, "GPU-a", "1", "1g.10gb"), GpuDevice("gpu-1", 1, "GPU-b"),
        temperature_celsius=[50.0, 50.0],
    )  # fmt: skip

    assert [gpu_data(each)["use"] for each in table(seer).every()] == ["1 MIG slice", "whole", "MIG mixed"]


@given(st.lists(st.one_of(st.text(max_size=8), st.sampled_from(["=1+1", "+1", "-1", "@x", "\t=x"])), min_size=1))
def test_no_text_of_a_file_is_a_formula(texts):
    text = as_csv([texts])

    (row,) = (
        csv.reader(StringIO(text, newline="")) if "\r" not in "".join(texts) and "\n" not in "".join(texts) else ([],)
    )
    for said, cell in zip(texts, row, strict=False):
        assert cell[:1] not in FORMULA or not cell
        assert cell.removeprefix("'") == said or cell == said


def test_a_hostile_name_is_text_in_a_file_and_a_number_stays_one(seer):
    cluster = make.a_cluster("=cmd|' /C calc'!A0")
    make.a_node(cluster, "gpu-1", gpus=1)

    cells = line(next(table(seer).every()))
    begin = as_csv([cells])

    assert begin.startswith("'=cmd|")
    assert as_csv([[-1.5, "-1.5"]]) == "-1.5,'-1.5\r\n"
