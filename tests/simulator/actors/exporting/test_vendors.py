"""Exporters that are not the GPU Operator's, as their text has it."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from simulator.actors.exporting.vendors import AMD_PORT, GAUDI_PORT, VendorExporters, go_number
from simulator.faults.ecc_errors import EccErrors
from simulator.faults.fallen_gpu import FallenGpu
from simulator.faults.full_memory import FullMemory
from simulator.faults.hot_gpu import HotGpu
from simulator.faults.pcie_replays import PcieReplays
from simulator.faults.row_remap import Remap, RowRemap
from simulator.faults.silent_exporter import SilentExporter
from tests.simulator.actors.exporting.scraping import samples
from tests.simulator.actors.stage import a_mix


def scraped(stage, app, port):
    (pod,) = stage.pods("", f"app={app}")
    served = VendorExporters(stage.play.world, stage.faults).serve_at(port)(pod, "metrics")
    return served.body.decode()


def test_amds_exporter_names_its_devices_and_their_pods():
    stage = a_mix("amd=1", 1)

    written = scraped(stage, "amd-metrics-exporter", AMD_PORT)

    used = samples(written, "gpu_used_vram")
    assert len(used) == 8
    assert {labels["gpu_id"] for labels, _ in used} == {str(index) for index in range(8)}
    assert {labels["hostname"] for labels, _ in used} == {"gpu-amd-001"}
    assert {labels["namespace"] for labels, _ in used} == {"amd"}
    assert {value for _, value in samples(written, "gpu_health")} == {1}
    assert {family.type for family in text_string_to_metric_families(written)} == {"gauge"}


def test_gaudis_exporter_has_its_own_names():
    stage = a_mix("gaudi=1", 1)

    written = scraped(stage, "gaudi-metrics-exporter", GAUDI_PORT)

    power = samples(written, "habanalabs_power_mW")
    assert len(power) == 8
    assert {labels["pod_namespace"] for labels, _ in power} == {"gaudi"}
    assert min(value for _, value in power) >= 210_000
    assert list(power[0][0]) == sorted(power[0][0])


def test_what_an_amd_node_does_changes_with_its_work():
    stage, seen = a_mix("amd=1", 1), set()

    for _ in range(20):
        stage.run(60)
        seen.add(samples(scraped(stage, "amd-metrics-exporter", AMD_PORT), "gpu_gfx_activity")[0][1])

    assert len(seen) > 2


def test_their_exporters_fall_silent_too():
    stage = a_mix("amd=1", 1)
    stage.faults.put(SilentExporter("gpu-amd-001", "empty"))

    assert scraped(stage, "amd-metrics-exporter", AMD_PORT) == ""


def test_what_is_wrong_with_an_amd_gpu_is_what_its_exporter_says_of_it():
    stage = a_mix("amd=1", 1)
    (pod,) = stage.pods("", "app=amd-metrics-exporter")
    ask = VendorExporters(stage.play.world, stage.faults).serve_at(AMD_PORT)
    for fault in (
        HotGpu("gpu-amd-001", 1, celsius=104),
        EccErrors("gpu-amd-001", 2, uncorrected=3, corrected_per_hour=3600),
        PcieReplays("gpu-amd-001", 3, per_minute=60),
        FullMemory("gpu-amd-001", 4, used_ratio=0.99),
        FallenGpu("gpu-amd-001", 5, after_s=60),
    ):
        stage.faults.put(fault)
    stage.run(120)

    written = ask(pod, "metrics").body.decode()

    def said(series: str) -> dict[str, float]:
        return {labels["gpu_id"]: value for labels, value in samples(written, series)}

    assert "5" not in said("gpu_health")
    assert said("gpu_junction_temperature")["1"] == 104
    assert max(value for index, value in said("gpu_junction_temperature").items() if index != "1") < 80
    assert (said("gpu_ecc_uncorrect_total")["2"], said("gpu_ecc_uncorrect_total")["1"]) == (3, 0)
    assert 110 <= said("gpu_ecc_correct_total")["2"] <= 130
    assert {index for index, value in said("gpu_health").items() if not value} == {"2"}
    assert 110 <= said("pcie_replay_count")["3"] <= 130
    assert said("gpu_free_vram")["4"] < 0.02 * said("gpu_total_vram")["4"]


def test_what_is_wrong_with_a_gaudi_is_what_its_exporter_says_of_it():
    stage = a_mix("gaudi=1", 1)
    stage.faults.put(HotGpu("gpu-gaudi-001", 1, celsius=104))
    stage.faults.put(RowRemap("gpu-gaudi-001", 2, Remap.PENDING))

    written = scraped(stage, "gaudi-metrics-exporter", GAUDI_PORT)

    hot = {labels["id"] for labels, value in samples(written, "habanalabs_temperature_onchip") if value == 104}
    pending = {labels["id"] for labels, value in samples(written, "habanalabs_pending_rows_state") if value}
    assert (hot, pending) == ({"1"}, {"2"})


def test_a_node_that_brings_its_driver_has_an_exporter_of_its_own():
    stage = a_mix("preinstalled=1", 1)
    (pod,) = stage.pods("gpu-preinstalled-001", "app=dcgm-exporter")

    written = stage.play.exporters.serve(pod, "metrics").body.decode()

    ((labels, _), *_) = samples(written, "DCGM_FI_DEV_GPU_TEMP")
    assert not stage.pods("gpu-preinstalled-001", "app=nvidia-dcgm-exporter")
    assert (labels["Hostname"], labels["pod_namespace"]) == ("gpu-preinstalled-001", "research")
    assert "uuid" in labels
    assert "DCGM_FI_PROF_" not in written
    assert "# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL counter" in written


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "0"), (1, "1"), (183_265, "183265"), (1_000_000, "1e+06"), (1_234_567, "1.234567e+06"), (0.25, "0.25")],
)
def test_numbers_are_written_as_go_writes_them(value, written):
    assert go_number(value) == written
