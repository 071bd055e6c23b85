import contextlib
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.telemetry import lines
from health.telemetry.base import DeviceXid
from health.telemetry.exposition import PARTS_AT_MOST, read_node
from health.telemetry.lines import UnreadableMetrics
from health.telemetry.metrics import AMD, DCGM, METRICS, MetricKind

RATES = ("pcie_transmitted", "pcie_received", "nvlink_mib_per_s")  # of 64 bits, and as large

TEXT = """\
# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).
# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H200",Hostname="gpu-1",pod="x\\"y}"} 61
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",Hostname="gpu-1"} 90
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="1",UUID="GPU-b",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2"} 0.25 1795391944225
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a",err_code="79",err_msg="GPU has fallen off the bus"} 79
some_other_series{a="b"} 1
go_goroutines 12
"""


def test_reads_known_series_in_our_units():
    said = read_node(TEXT, "gpu-1")

    assert said.values[("GPU-a", "")] == {
        "temperature_celsius": 61.0,
        "gpu_utilisation_ratio": pytest.approx(0.9),
        "xid": 79.0,
    }
    assert said.values[("GPU-b", "2")] == {"engine_active_ratio": 0.25}
    assert said.devices[("GPU-b", "2")].profile == "1g.18gb"
    assert said.xids == {("GPU-a", ""): DeviceXid(79, "GPU has fallen off the bus")}


# As their exporters write them: ROCm/device-metrics-exporter, docs/configuration/metricslist.md; Gaudi's labels as
# go-hlml's exporter has them; NVIDIA's where nothing is profiled.
OF_VENDORS = {
    "amd": (
        ('gpu_health{card_model="0x74a1",gpu_compute_partition_type="spx",gpu_id="3",gpu_partition_id="0",'
        'hostname="gpu-1",serial_number="692440004321"} 0\n'),
        ("692440004321", ""), {"called_healthy": 0},
    ),
    "amd, with its prefix": (
        'amd_gpu_health{gpu_compute_partition_type="none",gpu_id="3",hostname="gpu-1",serial_number="6924"} 1\n',
        ("6924", ""), {"called_healthy": 1},
    ),
    "amd, in capitals": (
        'GPU_GFX_ACTIVITY{CARD_SERIES="AMD Instinct MI300X OAM",GPU_ID="3",HOSTNAME="gpu-1",SERIAL_NUMBER="6924"} 61\n',
        ("6924", ""), {"gpu_utilisation_ratio": 0.61},
    ),
    "habana": (
        ('habanalabs_pending_rows_state{Serial="AN1",UUID="01P0-AN1",device="AN1",id="3"} 1\n'
        'habanalabs_pending_rows_with_double_bit_ecc_errors{Serial="AN1",UUID="01P0-AN1",device="AN1",id="3"} 4\n'),
        ("01P0-AN1", ""), {"row_remap_pending": 1},
    ),
    "nvidia": (
        'DCGM_FI_DEV_MEM_COPY_UTIL{gpu="3",UUID="GPU-a",device="nvidia3",modelName="Tesla T4"} 37\n',
        ("GPU-a", ""), {"memory_busy_ratio": 0.37},
    ),
}  # fmt: skip


@pytest.mark.parametrize("vendor", OF_VENDORS)
def test_what_only_some_exporters_have_is_read(vendor):
    text, key, values = OF_VENDORS[vendor]

    said = read_node(text, "gpu-1")

    assert said.values == {key: pytest.approx(values)}
    assert said.devices[key].index == 3


def test_believes_the_node_that_was_asked():
    assert (
        read_node(TEXT.replace('Hostname="gpu-1"', 'Hostname="other"'), "gpu-1").devices[("GPU-a", "")].node_name
        == "gpu-1"
    )


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "nonsense"])
def test_what_is_no_number_is_no_value(value):
    assert read_node(f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="GPU-a"}} {value}\n', "gpu-1").values == {}


@pytest.mark.parametrize(
    "line",
    [
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a"} 61 1712345678.123',
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a"} 61 -5',
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a"} 61 # {trace_id="a}b"} 0.67',
        'DCGM_FI_DEV_GPU_TEMP{ gpu = "0" , UUID = "GPU-a", }\t61\r',
        '  DCGM_FI_DEV_GPU_TEMP {gpu="0",UUID="GPU-a",note="} 7"} 61',
    ],
)
def test_what_stands_beside_a_value_is_not_the_value(line):
    assert read_node(line + "\n", "gpu-1").values == {("GPU-a", ""): {"temperature_celsius": 61.0}}


@pytest.mark.parametrize("metric", METRICS)
def test_a_blank_is_no_value_of_any_metric(metric):
    names = [series.name for series in (*DCGM, *AMD) if series.metric == metric and not series.only]
    blanks = [2**63, 2**63 - 14, 2**64 - 1, -100]
    if METRICS[metric].kind is MetricKind.GAUGE:
        blanks += [1 << 47, 2147483634, 4294967295] if metric not in RATES else []

    for blank in blanks:
        text = "".join(f'{name}{{gpu="0",UUID="GPU-a"}} {blank}\n' for name in names)
        assert read_node(text, "gpu-1").values == {}, blank


@pytest.mark.parametrize("raw", [65535, 82505, 200000, 345, -256])
def test_a_temperature_that_no_gpu_has_is_none(raw):
    assert read_node(f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="GPU-a"}} {raw}\n', "gpu-1").values == {}


@pytest.mark.parametrize(
    "name", ["DCGM_FI_DEV_MEMORY_TEMP", "gpu_memory_temperature", "gpu_edge_temperature", "amd_gpu_edge_temperature"]
)
def test_a_sensor_that_is_not_there_has_no_temperature_of_0(name):
    assert read_node(f'{name}{{gpu="0",UUID="GPU-a"}} 0\n', "gpu-1").values == {}
    assert read_node('DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a"} 0\n', "gpu-1").values[("GPU-a", "")]


def test_a_field_that_is_no_number_costs_no_other():
    words = 'DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a"} ERROR - FAILED TO CONVERT TO STRING\n'

    assert read_node(words + TEXT, "gpu-1").values == read_node(TEXT, "gpu-1").values


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('mi300_gpu_power_usage{gpu_id="0",serial_number="6924"} 142\n', "mi300_gpu_power_usage"),
        ('nvidia_smi_temperature_gpu{uuid="df6e7a7c-7314-46f8"} 61\n', "nvidia_smi_temperature_gpu"),
        ('DCGM_FI_DEV_FAN_SPEED{gpu="0",UUID="GPU-a"} 30\n', "DCGM_FI_DEV_FAN_SPEED"),
        ('DCGM_FI_DEV_FAN_SPEED{gpu="0",UUID="GPU-a"} 30\nDCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a"} 61\n', ""),
        ('amd_gpu_nodes_total{hostname="gpu-1"} 8\ngo_info{version="go1.22"} 1\n', ""),
        ('DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT{nvswitch="nvswitch0",Hostname="gpu-1"} 40\n', ""),
    ],
)
def test_series_of_gpus_of_which_none_is_read_are_named(line, named):
    said = read_node("# HELP x y\n" + line, "gpu-1")

    assert said.unread == named


def test_an_exporter_without_a_driver_says_nothing_and_is_read():
    assert read_node("", "gpu-1").devices == {}
    assert read_node("# HELP up x\n", "gpu-1").devices == {}


def test_a_web_page_is_no_text_of_metrics():
    with pytest.raises(UnreadableMetrics, match="The answer is not metrics text"):
        read_node("<!doctype html>\n<html></html>\n", "gpu-1")


def test_a_series_explosion_is_refused_and_named(monkeypatch):
    monkeypatch.setattr(lines, "LINES_AT_MOST", 10)

    with pytest.raises(UnreadableMetrics, match="more than 10 series"):
        read_node('DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a"} 61\n' * 11, "gpu-1")


@given(st.text(max_size=400) | st.lists(st.sampled_from([*TEXT.split("\n"), "{", '"', "\\"])).map("\n".join))
def test_reads_any_text_or_refuses_it(text):
    with contextlib.suppress(UnreadableMetrics):
        read_node(text, "gpu-1")


LABELLED = """\
# TYPE DCGM_EXP_XID_ERRORS_COUNT gauge
DCGM_EXP_XID_ERRORS_COUNT{gpu="0",UUID="GPU-a",window_size_in_ms="300000",xid="79"} 1
DCGM_EXP_XID_ERRORS_COUNT{gpu="0",UUID="GPU-a",window_size_in_ms="300000",xid="45"} 3
DCGM_EXP_CLOCK_EVENTS_COUNT{gpu="0",UUID="GPU-a",clock_event="power_cap",window_size_in_ms="300000"} 300
DCGM_EXP_CLOCK_EVENTS_COUNT{gpu="0",UUID="GPU-a",clock_event="hw_thermal",window_size_in_ms="300000"} 2
DCGM_EXP_GPU_HEALTH_STATUS{gpu="0",UUID="GPU-a",health_watch="PCIE",health_error_code="DCGM_FR_PCI_REPLAY_RATE"} 10
DCGM_EXP_GPU_HEALTH_STATUS{gpu="0",UUID="GPU-a",health_watch="PCIE",health_error_code=""} 0
DCGM_EXP_GPU_HEALTH_STATUS{gpu="0",UUID="GPU-a",health_watch="MEM",health_error_code=""} 0
DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu="0",UUID="GPU-a"} 64
"""


def test_series_that_a_label_tells_apart_are_one_value_and_its_parts():
    said = read_node(LABELLED, "gpu-1")

    assert said.values[("GPU-a", "")] == {
        "xids_counted": 3.0, "clock_events": 2.0, "dcgm_health": 10.0, "clock_reasons": 64.0,
    }  # fmt: skip
    assert said.parts[("GPU-a", "")] == {
        "xids_counted": {"79": 1.0, "45": 3.0}, "clock_events": {"hw_thermal": 2.0}, "dcgm_health": {"PCIE": 10.0},
    }  # fmt: skip


def test_parts_are_bounded():
    many = "".join(
        f'DCGM_EXP_XID_ERRORS_COUNT{{gpu="0",UUID="GPU-a",xid="{number}{"x" * 99}"}} 1\n' for number in range(500)
    )

    parts = read_node(many, "gpu-1").parts[("GPU-a", "")]["xids_counted"]

    assert len(parts) == PARTS_AT_MOST
    assert max(map(len, parts)) <= 40


def test_counts_what_no_gpu_can_have_and_not_what_says_that_nothing_is_known():
    said = read_node(
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a"} 82505\n'
        'DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-b"} 9223372036854775794\n'
        'DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-b"} NaN\n',
        "gpu-1",
    )

    assert +said.impossible == {"DCGM_FI_DEV_GPU_TEMP": 1}


def test_labels_without_quotes_cost_no_more_than_their_length():
    """Eight times as many took 64 times as long: 29 s for 20 kB, with the interpreter's lock held."""
    start = 'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-1",'

    def cost_s(names: int) -> float:
        began = process_time()
        read_node(start + "a " * names + "} 61", "gpu-1")
        return process_time() - began

    few, many = (min(cost_s(names) for _ in range(3)) for names in (40_000, 320_000))

    assert many < 32 * max(few, 1e-4)
    assert read_node(start + 'a="1", b c="2"} 61', "gpu-1").values == {("GPU-1", ""): {"temperature_celsius": 61.0}}


def test_what_no_row_can_keep_is_left_out_of_labels():
    said = read_node(
        'DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a\0",GPU_I_PROFILE="1g\0",err_msg="o\0dd"} 79\n', "gpu-1"
    )

    assert said.devices[("GPU-a", "")].profile == "1g"
    assert said.xids == {("GPU-a", ""): DeviceXid(79, "odd")}
