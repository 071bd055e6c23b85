"""What exporters write, of each age and make that is known: shapes, with figures of our own.

From recordings in public issues and repositories: NVIDIA/dcgm-exporter (#78, #85, #129, #188, #272, #304, #312, #363,
#394, #736, its README, its templates and its file of counters of 1.x), NVIDIA/gpu-monitoring-tools (#92, #97),
canonical/hardware-observer-operator (#488), kubernetes' conformance of accelerators (EKS, LKE, Tanzu, OKE, k0s),
ROCm/device-metrics-exporter (#16, #171, #219, #233, #236, #316, #353, #495), Intel's exporter for Gaudi.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

A, B = ("GPU-a", ""), ("GPU-b", "")
EXPORTER_POD = "nvidia-dcgm-exporter-xpn6b"


def line(name: str, value: object, **labels: str) -> str:
    return f"{name}{{{','.join(f'{label}={chr(34)}{text}{chr(34)}' for label, text in labels.items())}}} {value}\n"


@dataclass(frozen=True)
class Shape:
    text: str
    values: Mapping[tuple[str, str], Mapping[str, float]]  # in our units, by device
    index: Mapping[tuple[str, str], int | None] = field(default_factory=dict)  # none: 0
    pods: Mapping[tuple[str, str], list[str]] = field(default_factory=dict)  # none: nobody
    is_unplaced: bool = False  # nothing on it says which node's it is


BOARD = {"gpu": "0", "UUID": "GPU-a", "device": "nvidia0", "modelName": "NVIDIA H100 80GB HBM3", "Hostname": "gpu-1"}
NOW_4 = {"gpu": "0", "UUID": "GPU-a", "pci_bus_id": "00000000:31:00.0", "device": "nvidia0", "modelName": "NVIDIA L4"}
BY_HAND = {"instance": "10.0.0.7:9400", "job": "gpu-metrics"}
BY_OPERATOR = {
    "container": "nvidia-dcgm-exporter", "endpoint": "gpu-metrics", "instance": "10.0.0.7:9400",
    "job": "nvidia-dcgm-exporter", "namespace": "gpu-operator", "pod": EXPORTER_POD, "service": "nvidia-dcgm-exporter",
}  # fmt: skip
SLICE = {"modelName": "NVIDIA A800-SXM4-80GB", "GPU_I_PROFILE": "2g.20gb"}
BY_OTEL = {"gpu": "0", "UUID": "GPU-a", "modelName": "NVIDIA H100", "k8s_node_name": "gpu-1", "otel_scope_name": "p"}
MIG_OF_1 = {"gpu": "0", "uuid": "GPU-a", "modelName": "NVIDIA A100 80GB PCIe", "node": "gpu-1", "container_name": ""}
OF_1 = {
    "gpu": "0", "UUID": "GPU-a", "device": "nvidia0", "Hostname": EXPORTER_POD, "container": "", "namespace": "",
    "pod": "",
}  # fmt: skip
AMD = {
    "card_model": "102-G30211-0C", "container": "", "gpu_id": "2", "gpu_memory_partition_type": "nps1", "job_id": "",
    "hostname": "gpu-1", "namespace": "", "pod": "", "serial_number": "692409005408",
}  # fmt: skip
AMD_KEY = ("692409005408", "")
AMD_HOST = {
    "card_model": "N/A", "card_series": "AMD Instinct MI210", "gpu_compute_partition_type": "none",
    "gpu_partition_id": "NA", "hostname": "gpu-1", "serial_number": "N/A", "virtualization_mode": "host",
}  # fmt: skip
AMD_VM = {
    "card_model": "", "card_series": "Aqua Vanjaram [Instinct MI300X VF]", "gpu_compute_partition_type": "spx",
    "gpu_partition_id": "4294967295", "gpu_uuid": "00000000-0000-0000-0000-000000000000", "hostname": "gpu-1",
    "serial_number": "",
}  # fmt: skip
TEMP, UTIL, XID = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_XID_ERRORS"
CELSIUS, BUSY = "temperature_celsius", "gpu_utilisation_ratio"

DCGM_SHAPES: dict[str, Shape] = {
    "2.0, spaces and no host": Shape(
        'DCGM_FI_DEV_SM_CLOCK{gpu="0", UUID="GPU-a", device="nvidia0"} 300\n'
        'DCGM_FI_DEV_POWER_USAGE{gpu="0", UUID="GPU-a", device="nvidia0"} 15.539000\n',
        {A: {"sm_clock_mhz": 300, "power_watts": 15.539}},
        is_unplaced=True,
    ),
    "OpenMetrics of prometheus/common, with times": Shape(
        line(TEMP, "4.1e+01 1.788387174142e+09", **BOARD) + line(UTIL, "55.0 1788387174.142", **BOARD) + "# EOF\n",
        {A: {CELSIUS: 41, BUSY: 0.55}},
    ),
    "2.0, blanks": Shape(
        line(TEMP, 41, **BOARD)
        + line("DCGM_FI_DEV_MEMORY_TEMP", 9223372036854775794, **BOARD)
        + line("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 9223372036854775794, **BOARD)
        + line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "140737488355328.000000", **BOARD)
        + line("DCGM_FI_DEV_ROW_REMAP_FAILURE", 2147483634, **BOARD),
        {A: {CELSIUS: 41}},
    ),
    "2.x, its pod for its host": Shape(
        line(TEMP, 54, **BOARD | {"Hostname": EXPORTER_POD, "container": "", "namespace": "", "pod": ""}),
        {A: {CELSIUS: 54}},
    ),
    "3.1, its pod for its host, and a tenant": Shape(
        line(
            UTIL,
            21,
            **BOARD | {"Hostname": EXPORTER_POD, "DCGM_FI_DRIVER_VERSION": "470.182.03"},
            container="c",
            namespace="team-a",
            pod="train-0",
        ),
        {A: {BUSY: 0.21}},
        pods={A: ["train-0"]},
    ),
    "3.3, a field of words": Shape(
        'DCGM_FI_DEV_VGPU_INSTANCE_IDS{gpu="0"} ERROR - FAILED TO CONVERT TO STRING\n'
        + line("DCGM_FI_DEV_NAME", "Tesla T4", **BOARD)
        + line(TEMP, 61, **BOARD),
        {A: {CELSIUS: 61}},
    ),
    "3.3, glitches": Shape(
        line(TEMP, 82505, **BOARD) + line(UTIL, 4294967295, **BOARD) + line("DCGM_FI_DEV_FB_USED", 4, **BOARD),
        {A: {"memory_used_mib": 4}},
    ),
    "4.x, an L4 of EKS": Shape(
        line(TEMP, 31, **NOW_4, Hostname="gpu-1", DCGM_FI_DRIVER_VERSION="580.105.08")
        + line("DCGM_FI_DEV_MEMORY_TEMP", 0, **NOW_4, Hostname="gpu-1")
        + line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 4742776, **NOW_4, Hostname="gpu-1")
        + line("DCGM_FI_PROF_PCIE_TX_BYTES", 112603, **NOW_4, Hostname="gpu-1")
        + line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "0.000000", **NOW_4, Hostname="gpu-1"),
        {A: {CELSIUS: 31, "energy_joules": 4742.776, "pcie_transmitted": 112603, "engine_active_ratio": 0}},
    ),
    "4.x, a blank pod_uid": Shape(
        line(UTIL, 0, **NOW_4, Hostname="gpu-1", container="cuda", namespace="default", pod="cuda-8ljq7", pod_uid=""),
        {A: {BUSY: 0}},
        pods={A: ["cuda-8ljq7"]},
    ),
    "4.8, hostname": Shape(line(TEMP, 45, **NOW_4, hostname="gpu-1"), {A: {CELSIUS: 45}}),
    "4.x, a host engine elsewhere": Shape(
        line(TEMP, 45, **NOW_4, Hostname="localhost", kubernetes_node="gpu-1"), {A: {CELSIUS: 45}}
    ),
    "MIG, slices only": Shape(
        line("DCGM_FI_DEV_SM_CLOCK", 1410, **BOARD | SLICE, GPU_I_ID="3", DCGM_FI_PROCESS_NAME="/usr/bin/dcgm-exporter")
        + line("DCGM_FI_DEV_SM_CLOCK", 1410, **BOARD | SLICE, GPU_I_ID="5"),
        {("GPU-a", "3"): {"sm_clock_mhz": 1410}, ("GPU-a", "5"): {"sm_clock_mhz": 1410}},
    ),
    "MIG, a board beside its slices": Shape(
        line(TEMP, 60, **BOARD)
        + line(XID, 0, **BOARD)
        + line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.81, **BOARD | SLICE, GPU_I_ID="1", namespace="n", pod="p"),
        {A: {CELSIUS: 60, "xid": 0}, ("GPU-a", "1"): {"engine_active_ratio": 0.81}},
        pods={("GPU-a", "1"): ["p"]},
    ),
    "MIG, what is the board's on each slice, beside a whole board": Shape(
        line(TEMP, 45, **BOARD | {"gpu": "1", "UUID": "GPU-b", "hostname": EXPORTER_POD})
        + line(TEMP, 50, **BOARD | SLICE, GPU_I_ID="3", container="triton", namespace="n", pod="p-3")
        + line("DCGM_FI_DEV_FB_USED", 3744, **BOARD | SLICE, GPU_I_ID="3", container="triton", namespace="n", pod="p-3")
        + line(TEMP, 50, **BOARD | SLICE, GPU_I_ID="4")
        + line("DCGM_FI_DEV_FB_USED", 12, **BOARD | SLICE, GPU_I_ID="4"),
        {
            B: {CELSIUS: 45},
            ("GPU-a", "3"): {CELSIUS: 50, "memory_used_mib": 3744},
            ("GPU-a", "4"): {CELSIUS: 50, "memory_used_mib": 12},
        },
        index={B: 1},
        pods={("GPU-a", "3"): ["p-3"]},
    ),
    "3.3, everything as a label, and an Xid twice": Shape(
        line(XID, 0, **BOARD, DCGM_FI_DEV_GPU_TEMP="45", DCGM_FI_DEV_POWER_USAGE="88.2", DCGM_FI_DEV_SERIAL="")
        + line(XID, 0, **BOARD, DCGM_FI_DEV_GPU_TEMP="46", DCGM_FI_DEV_POWER_USAGE="90.1", DCGM_FI_DEV_SERIAL=""),
        {A: {"xid": 0}},
    ),
    "its host with a domain, by its service": Shape(
        line(
            "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
            0,
            **BOARD | {"Hostname": "gpu-1.eu.internal"},
            instance="nvidia-dcgm-exporter.conformance.svc:9400",
            job="dcgm-exporter",
        ),
        {A: {"pcie_replays": 0}},
    ),
    "relabelled, under another exporter's name for the UUID": Shape(
        line(UTIL, 12, gpu="0", gpu_uuid="GPU-a", node="gpu-1", modelName="NVIDIA A30", pod=EXPORTER_POD),
        {A: {BUSY: 0.12}},
    ),
    "passed on by OpenTelemetry": Shape(
        line(TEMP, 61, **BY_OTEL)
        + line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total", 2000000000, **BY_OTEL)
        + line("DCGM_FI_DEV_PCIE_REPLAY_COUNTER_total", 3, **BY_OTEL)
        + line("DCGM_FI_DEV_POWER_VIOLATION_total", 2000, **BY_OTEL)
        + line("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL_total", 1, **BY_OTEL)
        + line("DCGM_FI_PROF_PCIE_TX_BYTES_total", 112603, **BY_OTEL),
        {
            A: {
                CELSIUS: 61,
                "energy_joules": 2000000,
                "pcie_replays": 3,
                "throttled_power": 2000,
                "nvlink_flit_errors": 1,
                "pcie_transmitted": 112603,
            }
        },
    ),
    "vGPU, of which little is said": Shape(
        line("DCGM_FI_DEV_SM_CLOCK", 1755, **BOARD | {"modelName": "NVIDIA H100-20C"})
        + line("DCGM_FI_DEV_VGPU_LICENSE_STATUS", 1, **BOARD | {"modelName": "NVIDIA H100-20C"}),
        {A: {"sm_clock_mhz": 1755}},
    ),
    "shared, a series for each user": Shape(
        line(UTIL, 90, **BOARD, vgpu="0", pod="a") + line(UTIL, 90, **BOARD, vgpu="1", pod="b"),
        {A: {BUSY: 0.9}},
        pods={A: ["a", "b"]},
    ),
    "a batch system's jobs": Shape(
        line(UTIL, 90, **BOARD, hpc_job="11") + line(UTIL, 90, **BOARD, hpc_job="12"), {A: {BUSY: 0.9}}
    ),
    "claimed by DRA": Shape(
        line(
            "DCGM_FI_DEV_FB_USED",
            23792,
            **BOARD,
            container="ctr",
            dra_claim_name="single-gpu",
            pod="p",
            dra_driver_name="gpu.nvidia.com",
            dra_pool_name="gpu-1",
            namespace="gpu-test3",
        ),
        {A: {"memory_used_mib": 23792}},
        pods={A: ["p"]},
    ),
    "an Xid": Shape(
        line(XID, 79, **BOARD, err_code="79", err_msg="GPU has fallen off the bus")
        + line(XID, 0, **BOARD | {"gpu": "1", "UUID": "GPU-b"}, err_code="0", err_msg="No Error"),
        {A: {"xid": 79}, B: {"xid": 0}},
        index={B: 1},
    ),
    "the exporter's own counts": Shape(
        line("DCGM_EXP_XID_ERRORS_COUNT", 0, **BOARD, window_size_in_ms="300000")
        + line("DCGM_EXP_XID_ERRORS_COUNT", 2, **BOARD, window_size_in_ms="300000", xid="31")
        + line("DCGM_EXP_CLOCK_EVENTS_COUNT", 250, **BOARD, clock_event="power_cap", window_size_in_ms="300000")
        + line("DCGM_EXP_CLOCK_EVENTS_COUNT", 3, **BOARD, clock_event="hw_slowdown", window_size_in_ms="300000")
        + line("DCGM_EXP_GPU_HEALTH_STATUS", 0, **BOARD, health_watch="NVLINK", health_error_code="")
        + line("DCGM_EXP_GPU_HEALTH_STATUS", 10, **BOARD, health_watch="PCIE", health_error_code="DCGM_FR_X"),
        {A: {"xids_counted": 2, "clock_events": 3, "dcgm_health": 10}},
    ),
    "switches, links and CPUs": Shape(
        line("DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT", 40, nvswitch="nvswitch0", Hostname="gpu-1")
        + line("DCGM_FI_DEV_NVSWITCH_LINK_STATUS", 1, nvlink="3", nvswitch="nvswitch0", hostname="gpu-1")
        + line("DCGM_FI_DEV_CPU_TEMP_CURRENT", 44, cpu="0", Hostname="gpu-1")
        + line("DCGM_FI_DEV_CPU_UTIL_TOTAL", 0.1, cpucore="0", cpu="0", Hostname="gpu-1")
        + line(TEMP, 61, **BOARD),
        {A: {CELSIUS: 61}},
    ),
    "1.x's names, by its file of counters": Shape(
        line("dcgm_sm_clock", 585, **OF_1)
        + line("dcgm_gpu_temp", 54, **OF_1)
        + line("dcgm_power_usage", "30.982000", **OF_1)
        + line("dcgm_total_energy_consumption", 55491669881, **OF_1)
        + line("dcgm_mem_copy_utilization", 2, **OF_1)
        + line("dcgm_xid_errors", 0, **OF_1)
        + line("dcgm_fb_used", 13, **OF_1)
        + line("dcgm_fi_prof_gr_engine_active", "0.250000", **OF_1)
        + line("dcgm_enc_utilization", 0, **OF_1),
        {
            A: {
                "sm_clock_mhz": 585,
                CELSIUS: 54,
                "power_watts": 30.982,
                "energy_joules": 55491669.881,
                "xid": 0,
                "memory_busy_ratio": 0.02,
                "memory_used_mib": 13,
                "engine_active_ratio": 0.25,
            }
        },
    ),
    "1.7, beside a node's own exporter": Shape(
        line("dcgm_gpu_utilization", 87, gpu="0", uuid="GPU-a", instance="gpu-1:9100", job="node")
        + line("dcgm_ecc_dbe_volatile_total", 2, gpu="0", uuid="GPU-a", instance="gpu-1:9100", job="node")
        + line("dcgm_memory_temp", 9223372036854775794, gpu="0", uuid="GPU-a", instance="gpu-1:9100", job="node")
        + line("node_load1", 0.3, instance="gpu-1:9100", job="node"),
        {A: {BUSY: 0.87, "ecc_uncorrected": 2}},
    ),
    "1.x's names and labels, MIG": Shape(
        line(
            "dcgm_fi_prof_gr_engine_active", "0.120000", **MIG_OF_1, GPU_I_PROFILE="3g.40gb", GPU_I_ID="1", pod_name="p"
        )
        + line("dcgm_fi_prof_gr_engine_active", "0.500000", **MIG_OF_1, GPU_I_PROFILE="4g.40gb", GPU_I_ID="2"),
        {("GPU-a", "1"): {"engine_active_ratio": 0.12}, ("GPU-a", "2"): {"engine_active_ratio": 0.5}},
        pods={("GPU-a", "1"): ["p"]},
    ),
    "1.x's label for the UUID": Shape(line(TEMP, 61, gpu="0", uuid="GPU-a", Hostname="gpu-1"), {A: {CELSIUS: 61}}),
    "with the old namespace": Shape(
        line(TEMP, 61, **BOARD, container_name="c", pod_name="p", pod_namespace="n"),
        {A: {CELSIUS: 61}},
        pods={A: ["p"]},
    ),
    "as Prometheus keeps it, honouring no labels": Shape(
        line(UTIL, 97, **BOARD, **BY_OPERATOR, exported_pod="train-0", exported_namespace="team-a"),
        {A: {BUSY: 0.97}},
        pods={A: ["train-0"]},
    ),
    "as Prometheus keeps it, of a GPU that nobody has": Shape(line(UTIL, 0, **BOARD, **BY_OPERATOR), {A: {BUSY: 0}}),
    "as Prometheus keeps it, honouring labels": Shape(
        line(UTIL, 50, **BOARD | {"Hostname": "9f2b1c"}, **BY_HAND, kubernetes_node="gpu-1"), {A: {BUSY: 0.5}}
    ),
    "as vmagent keeps it": Shape(
        line("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 200, **BOARD | {"Hostname": "cp-bm14r7"}, **BY_HAND, nodename="gpu-1"),
        {A: {"pcie_replays": 200}},
    ),
    "relabelled, with both spellings of the host": Shape(
        line(TEMP, 61, **BOARD | {"Hostname": "dcgm-exporter-long-gone"}, hostname="gpu-1", oci_name="inst-1"),
        {A: {CELSIUS: 61}},
    ),
    "of a target called as its node": Shape(
        line(TEMP, 61, **BOARD | {"Hostname": "3d1f"}, instance="gpu-1:9400", job="dcgm"), {A: {CELSIUS: 61}}
    ),
    "a stand-in for GPUs": Shape(
        line(UTIL, 80, **BOARD | {"Hostname": "nvidia-dcgm-exporter-8a3593", "modelName": "Tesla-T4"}, **BY_OPERATOR),
        {A: {BUSY: 0.8}},
    ),
    "without a name for the GPU": Shape(line(UTIL, 42, gpu="0", Hostname="gpu-1"), {}),
}

OTHER_SHAPES: dict[str, Shape] = {
    "AMD 1.0, without partitions": Shape(
        line("gpu_power_usage", 142, **AMD) + line("gpu_used_vram", 285, **AMD),
        {AMD_KEY: {"power_watts": 142, "memory_used_mib": 285}},
        index={AMD_KEY: 2},
    ),
    "AMD, not partitioned": Shape(
        line("gpu_gfx_activity", 100, **AMD, gpu_compute_partition_type="spx", gpu_partition_id="0", gpu_uuid="cc")
        + line("gpu_junction_temperature", 44, **AMD, gpu_compute_partition_type="spx", gpu_partition_id="0"),
        {AMD_KEY: {BUSY: 1, CELSIUS: 44}},
        index={AMD_KEY: 2},
    ),
    "AMD, not partitioned, NA": Shape(
        line("gpu_gfx_activity", 7, **AMD, gpu_compute_partition_type="SPX", gpu_partition_id="NA"),
        {AMD_KEY: {BUSY: 0.07}},
        index={AMD_KEY: 2},
    ),
    "AMD, partitioned": Shape(
        line("gpu_used_vram", 285, **AMD | {"gpu_id": "14"}, gpu_compute_partition_type="cpx", gpu_partition_id="6")
        + line("gpu_used_vram", 286, **AMD | {"gpu_id": "15"}, gpu_compute_partition_type="cpx", gpu_partition_id="7"),
        {("692409005408", "6"): {"memory_used_mib": 285}, ("692409005408", "7"): {"memory_used_mib": 286}},
    ),
    "AMD, in a VM": Shape(
        line("gpu_edge_temperature", 0, **AMD | {"serial_number": ""}, gpu_uuid="17ff74b5")
        + line("gpu_free_vram", 196000, **AMD | {"serial_number": ""}, gpu_uuid="17ff74b5"),
        {("17ff74b5", ""): {"memory_free_mib": 196000}},
        index={("17ff74b5", ""): 2},
    ),
    "AMD, on a host of VMs": Shape(
        line("gpu_gfx_activity", 3, **AMD_HOST, gpu_id="0", gpu_uuid="88ff740f-0000-1000-80d1-1183b20a9869")
        + line("gpu_gfx_activity", 97, **AMD_HOST, gpu_id="1", gpu_uuid="89ff740f-0000-1000-80d1-1183b20a9869"),
        {
            ("88ff740f-0000-1000-80d1-1183b20a9869", ""): {BUSY: 0.03},
            ("89ff740f-0000-1000-80d1-1183b20a9869", ""): {BUSY: 0.97},
        },
        index={("89ff740f-0000-1000-80d1-1183b20a9869", ""): 1},
    ),
    "AMD, in VMs whose GPUs are all called zero": Shape(
        line("amd_gpu_gfx_activity", 3, **AMD_VM, gpu_id="0") + line("amd_gpu_gfx_activity", 97, **AMD_VM, gpu_id="1"),
        {},
    ),
    "AMD, on a desk, called nothing": Shape(
        line("gpu_average_package_power", 0, **AMD | {"serial_number": "", "card_model": ""}), {}
    ),
    "AMD, with a prefix and all ones": Shape(
        line("amd_gpu_power_usage", 255, **AMD) + line("amd_gpu_umc_activity", 65535, **AMD),
        {AMD_KEY: {"power_watts": 255}},
        index={AMD_KEY: 2},
    ),
    "AMD, by its clocks": Shape(
        line("gpu_clock", 2098, **AMD, clock_index="0", clock_type="system")
        + line("gpu_clock", 132, **AMD, clock_index="1", clock_type="system")
        + line("gpu_clock", 900, **AMD, clock_index="8", clock_type="memory")
        + line("gpu_clock", 2900, **AMD, clock_index="9", clock_type="fabric"),
        {AMD_KEY: {"sm_clock_mhz": 2098, "memory_clock_mhz": 900}},
        index={AMD_KEY: 2},
    ),
    "AMD, by its clocks as they were called": Shape(
        line("amd_gpu_clock", 132, **AMD, clock_index="0", clock_type="GPU_CLOCK_TYPE_SYSTEM")
        + line("amd_gpu_clock", 1300, **AMD, clock_index="8", clock_type="GPU_CLOCK_TYPE_MEMORY"),
        {AMD_KEY: {"sm_clock_mhz": 132, "memory_clock_mhz": 1300}},
        index={AMD_KEY: 2},
    ),
    "AMD, by its socket's power": Shape(
        line("gpu_package_power", 748, **AMD) + line("gpu_energy_consumed", "1.4e+15", **AMD),
        {AMD_KEY: {"power_watts": 748, "energy_joules": 1.4e9}},
        index={AMD_KEY: 2},
    ),
    "AMD, MI2xx, with power by two names and one that is none": Shape(
        line("amd_gpu_average_package_power", 0, **AMD) + line("amd_gpu_power_usage", 142, **AMD),
        {AMD_KEY: {"power_watts": 142}},
        index={AMD_KEY: 2},
    ),
    "Gaudi, whose node Prometheus writes": Shape(
        line("habanalabs_power_mW", 350_000, Serial="s", UUID="01P0", device="s", id="3", pod_name="", node="gpu-1")
        + line("habanalabs_memory_used_bytes", 1 << 30, Serial="s", UUID="01P0", device="s", id="3", node="gpu-1")
        + line("habanalabs_utilization", 12, Serial="s", UUID="01P0", device="s", id="3", node="gpu-1"),
        {("01P0", ""): {"power_watts": 350, "memory_used_mib": 1024, BUSY: 0.12}},
        index={("01P0", ""): 3},
    ),
}
SHAPES = DCGM_SHAPES | OTHER_SHAPES
