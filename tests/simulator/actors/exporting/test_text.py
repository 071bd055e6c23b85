"""What exporters write, letter by letter: as the recordings of real ones have it."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from simulator.actors.exporting import counters
from simulator.actors.exporting.counters import UnreadableCounters, parse
from simulator.kinds import CONFIG_MAP, POD
from tests.simulator.actors.exporting.scraping import NODE, answer, samples, text
from tests.simulator.actors.stage import a_fleet, a_mix

LINE = (
    'DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a5af4f1f-6e0c-035f-8266-c58d7b8ac462",pci_bus_id="00000000:10:00.0",'
    'device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="gpu-h100-001",DCGM_FI_DRIVER_VERSION="580.95.05",'
    'container="main",err_code="0",err_msg="No Error",namespace="pretraining",pod="POD"} 0'
)


def switched_on(stage, written):
    """The exporter's pod on the node begins anew with a file of its own."""
    metadata = {"name": "metrics-config", "namespace": "gpu-operator"}
    stage.store.create(
        CONFIG_MAP,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"dcgm-metrics.csv": written}},
        "gpu-operator",
    )
    (pod,) = stage.pods(NODE, "app=nvidia-dcgm-exporter")
    volumes = [*pod["spec"]["volumes"], {"name": "metrics-config", "configMap": {"name": "metrics-config"}}]
    metadata = {key: value for key, value in pod["metadata"].items() if key in ("namespace", "labels")}
    stage.store.delete(POD, pod["metadata"]["name"], "gpu-operator", grace_s=0)
    made = {**pod, "metadata": metadata | {"name": "own"}, "spec": {**pod["spec"], "volumes": volumes}, "status": {}}
    stage.store.create(POD, made, "gpu-operator")
    return stage.play.exporters.serve(stage.store.get(POD, "own", "gpu-operator"), "metrics").body.decode()


def test_a_line_is_as_the_exporter_writes_it():
    stage = a_fleet(2)
    (tenant,) = stage.tenants(NODE)

    lines = text(stage).splitlines()

    assert LINE.replace("POD", tenant["metadata"]["name"]) in lines


def test_all_that_is_shipped_is_written_in_the_order_of_its_fields():
    written = text(a_fleet(2))

    opened = [line.split()[2:4] for line in written.splitlines() if line.startswith("# TYPE")]
    assert len(opened) == 25
    assert opened[0] == ["DCGM_FI_DEV_SM_CLOCK", "gauge"]
    assert opened[5] == ["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter"]
    assert opened[-1] == ["DCGM_FI_PROF_PCIE_RX_BYTES", "gauge"]
    assert [counters.FIELDS[name] for name, _ in opened] == sorted(counters.FIELDS[name] for name, _ in opened)


def test_prometheus_reads_it_and_every_series_is_there_for_each_gpu():
    families = {family.name: family for family in text_string_to_metric_families(text(a_fleet(2)))}

    assert {len(family.samples) for family in families.values()} == {8}
    assert families["DCGM_FI_DEV_POWER_USAGE"].samples[0].value != int(
        families["DCGM_FI_DEV_POWER_USAGE"].samples[0].value
    )


@pytest.mark.parametrize(
    ("operator", "spelled", "type_"), [("v26.7.0", "hostname", "gauge"), ("v26.3.3", "Hostname", "counter")]
)
def test_an_older_exporter_spells_and_types_otherwise(operator, spelled, type_):
    from simulator.actors.gpu_operator.release import Release
    from simulator.fleets.small import small
    from tests.simulator.actors.stage import Board, Stage

    stage = Stage.of(small(nodes=2, release=Release(operator)), Board())

    written = text(stage)

    assert f'{spelled}="{NODE}"' in written
    assert f"# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL {type_}" in written


def test_settings_change_the_labels():
    stage = a_fleet(2)
    (tenant,) = stage.tenants(NODE)

    ((old, _), *_) = samples(text(stage, DCGM_EXPORTER_USE_OLD_NAMESPACE="true"), "DCGM_FI_DEV_GPU_TEMP")
    ((with_uid, _), *_) = samples(text(stage, DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID="true"), "DCGM_FI_DEV_GPU_TEMP")
    ((nobody, _), *_) = samples(text(stage, DCGM_EXPORTER_KUBERNETES="false"), "DCGM_FI_DEV_GPU_TEMP")

    assert (old["pod_name"], old["pod_namespace"]) == (tenant["metadata"]["name"], "pretraining")
    assert "uuid" in old
    assert "UUID" not in old
    assert with_uid["pod_uid"] == tenant["metadata"]["uid"]
    assert "pod" not in nobody


def test_without_profiling_its_series_are_absent():
    written = switched_on(a_fleet(2), counters.unprofiled())

    assert "DCGM_FI_PROF_" not in written
    assert written.count("# TYPE") == 20


def test_what_a_config_map_switches_on_is_written():
    written = switched_on(a_fleet(2), counters.everything())

    assert len(samples(written, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL")) == 8
    assert len(samples(written, "DCGM_FI_DEV_ROW_REMAP_PENDING")) == 8
    (xids, *_) = samples(written, "DCGM_EXP_XID_ERRORS_COUNT")
    assert xids[1] == 0
    assert (xids[0]["window_size_in_ms"], "xid" in xids[0]) == ("300000", False)
    health = samples(written, "DCGM_EXP_GPU_HEALTH_STATUS")
    assert len(health) == 8 * 11
    assert {(labels["health_error_code"], value) for labels, value in health} == {("DCGM_FR_OK", 0)}


def test_what_it_does_not_name_is_absent():
    written = switched_on(a_fleet(2), "DCGM_FI_DEV_GPU_TEMP, gauge, Hot or not\n# DCGM_FI_DEV_SM_CLOCK, gauge, MHz\n")

    assert written.startswith("# HELP DCGM_FI_DEV_GPU_TEMP Hot or not\n# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n")
    assert "DCGM_FI_DRIVER_VERSION" not in written
    assert written.count("\n") == 2 + 8


@pytest.mark.parametrize("row", ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP, histogram, no", "a,b"])
def test_a_row_that_is_none_is_refused(row):
    with pytest.raises(UnreadableCounters):
        parse(row)


def test_an_exporter_that_cannot_read_its_counters_does_not_listen():
    stage = a_fleet(2)
    metadata = {"name": "metrics-config", "namespace": "gpu-operator"}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"dcgm-metrics.csv": "nonsense"}}
    stage.store.create(CONFIG_MAP, made, "gpu-operator")
    (pod,) = stage.pods(NODE, "app=nvidia-dcgm-exporter")
    volumes = [*pod["spec"]["volumes"], {"name": "metrics-config", "configMap": {"name": "metrics-config"}}]

    served = stage.play.exporters.serve({**pod, "spec": {**pod["spec"], "volumes": volumes}}, "metrics")

    assert served is None


def test_nobody_listens_while_no_driver_is_loaded():
    stage = a_fleet(2)

    stage.play.kubelets.hosts[NODE].unload()

    assert answer(stage) is None


def test_an_instance_has_its_own_memory_and_profile_and_the_boards_temperature():
    stage = a_mix("mig-mixed=1", 1)

    written = text(stage, "gpu-mig-mixed-001")

    of_first = [(labels, value) for labels, value in samples(written, "DCGM_FI_DEV_FB_USED") if labels["gpu"] == "0"]
    heat = {value for labels, value in samples(written, "DCGM_FI_DEV_GPU_TEMP") if labels["gpu"] == "0"}
    assert [labels["GPU_I_PROFILE"] for labels, _ in of_first] == ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]
    assert {labels["UUID"] for labels, _ in of_first} == {of_first[0][0]["UUID"]}
    assert max(value for labels, value in of_first if labels["GPU_I_PROFILE"] == "2g.20gb") > 15_000
    assert len(heat) == 1
