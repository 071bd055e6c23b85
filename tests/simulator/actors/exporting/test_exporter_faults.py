"""Faults of an exporter itself: what it answers then, and that it is over when it is."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from simulator.faults import FAULTS
from simulator.faults.board import parse
from simulator.pod_ends import Pace
from tests.simulator.actors.exporting.scraping import NODE, answer, samples, text, values
from tests.simulator.actors.stage import a_fleet

OTHER = "gpu-a100-002"


def struck(word):
    stage = a_fleet(2)
    stage.faults.put(parse(FAULTS, word))
    return stage


@pytest.mark.parametrize(
    ("how", "status", "says"),
    [
        ("error", 500, b"internal server error\n"),
        ("empty", 200, b""),
        ("html", 200, b"<!DOCTYPE html>"),
        ("garbage", 200, b"\x80"),
    ],
)
def test_an_exporter_that_is_silent_answers_something_else(how, status, says):
    stage = struck(f"silent_exporter:node={NODE},how={how}")

    served = answer(stage)
    stage.faults.clear("silent_exporter")

    assert (served.status, served.body[: len(says)]) == (status, says)
    assert answer(stage, OTHER).status == 200
    assert len(values(stage, "DCGM_FI_DEV_GPU_TEMP")) == 8


def test_one_refuses_one_hangs_one_drips_and_one_is_cut_off():
    whole = len(answer(a_fleet(2)).body)

    assert answer(struck(f"silent_exporter:node={NODE},how=refuses")) is None
    assert answer(struck(f"silent_exporter:node={NODE}")).pace is Pace.NEVER
    assert answer(struck(f"silent_exporter:node={NODE},how=drip")).pace is Pace.DRIP
    assert 0 < len(answer(struck(f"silent_exporter:node={NODE},how=cut")).body) < whole


def test_one_has_another_name_for_its_node():
    ((labels, _), *_) = samples(text(struck(f"lying_exporter:node={NODE}")), "DCGM_FI_DEV_GPU_TEMP")

    assert labels["hostname"] == "localhost"


def test_one_names_the_gpus_of_another_node():
    stage = struck(f"lying_exporter:node={NODE},how=gpus,as_node={OTHER}")

    mine = {labels["UUID"] for labels, _ in samples(text(stage), "DCGM_FI_DEV_GPU_TEMP")}
    others = {labels["UUID"] for labels, _ in samples(text(stage, OTHER), "DCGM_FI_DEV_GPU_TEMP")}
    stage.faults.clear()

    assert mine == others
    assert {labels["UUID"] for labels, _ in samples(text(stage), "DCGM_FI_DEV_GPU_TEMP")}.isdisjoint(others)


def test_a_clock_that_is_ahead_is_written_beside_each_value():
    stage = struck(f"skewed_exporter:node={NODE},seconds=3600")

    families = {family.name: family for family in text_string_to_metric_families(text(stage))}

    ahead_s = families["DCGM_FI_DEV_GPU_TEMP"].samples[0].timestamp - stage.loop.clock.now().timestamp()
    assert float(ahead_s) == pytest.approx(3600, abs=1)


def test_series_explode_with_every_answer():
    stage = struck(f"series_explosion:node={NODE},series=1000")

    first = {labels["request"] for labels, _ in samples(text(stage), "DCGM_EXP_REQUEST_SECONDS")}
    second = {labels["request"] for labels, _ in samples(text(stage), "DCGM_EXP_REQUEST_SECONDS")}

    assert len(first) == len(second) == 1000
    assert first.isdisjoint(second)
