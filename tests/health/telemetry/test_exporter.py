"""Which pods have which devices, by the text of a DCGM exporter."""

from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from health.telemetry.exporter import (
    DEVICES_AT_MOST,
    JOBS_AT_MOST,
    PODS_AT_MOST,
    ExporterPod,
    read_devices,
)
from health.telemetry.lines import LINES_AT_MOST, UnreadableMetrics

# As dcgm-exporter's README and render_metrics.go have it.
HELD = 'container="main",namespace="team-a",pod="train-0"'


def a_line(labels: str = "", *, uuid: str = "GPU-1", gpu: int = 0, series: str = "DCGM_FI_DEV_GPU_UTIL") -> str:
    device = f'gpu="{gpu}",UUID="{uuid}",device="nvidia{gpu}",modelName="NVIDIA H100 80GB HBM3",Hostname="gpu-001"'
    return f"{series}{{{device}{',' if labels else ''}{labels}}} 97"


def text(*lines: str) -> str:
    return "\n".join(["# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization", "# TYPE DCGM_FI_DEV_GPU_UTIL gauge", *lines, ""])


def named(answer: str) -> list[list[str]]:
    return [[f"{pod.namespace}/{pod.name}" for pod in device.pods] for device in read_devices(answer)]


def test_a_board_is_allocated_to_the_pod_that_its_labels_name():
    (device,) = read_devices(text(a_line(HELD), a_line(HELD, series="DCGM_FI_DEV_GPU_TEMP")))

    assert (device.uuid, device.index, device.gi_id, device.profile) == ("GPU-1", 0, "", "")
    assert device.pods == (ExporterPod("team-a", "train-0", "main"),)


def test_empty_labels_and_no_labels_name_nobody():
    assert named(text(a_line('container="",namespace="",pod=""'), a_line(uuid="GPU-2", gpu=1))) == [[], []]


def test_slices_of_a_board_are_told_apart():
    slices = [f'GPU_I_PROFILE="1g.10gb",GPU_I_ID="{gi}",namespace="team-a",pod="small-{gi}"' for gi in (7, 8)]

    devices = read_devices(text(*(a_line(labels) for labels in slices)))

    assert [(one.uuid, one.gi_id, one.profile, one.pods[0].name) for one in devices] == [
        ("GPU-1", "7", "1g.10gb", "small-7"),
        ("GPU-1", "8", "1g.10gb", "small-8"),
    ]


def test_with_virtual_gpus_all_that_share_a_board_are_named():
    shares = [f'namespace="team-a",pod="infer-{number}",vgpu="{number}"' for number in range(3)]

    assert named(text(*(a_line(labels) for labels in shares))) == [
        ["team-a/infer-0", "team-a/infer-1", "team-a/infer-2"]
    ]


@pytest.mark.parametrize(
    "labels",
    [
        'pod_name="train-0",pod_namespace="team-a",container_name="main"',
        f'container="dcgm",namespace="gpu-operator",pod="exporter-x",{HELD.replace(",", ",exported_")}'.replace(
            'container="main"', 'exported_container="main"'
        ),
    ],
)
def test_other_spellings_of_the_labels_are_understood(labels):
    assert named(text(a_line(labels))) == [["team-a/train-0"]]


def test_the_uid_of_a_pod_is_kept_where_it_is_told():
    (device,) = read_devices(text(a_line(f'{HELD},pod_uid="1-2-3"')))

    assert device.pods[0].uid == "1-2-3"


def test_series_that_are_of_no_gpu_are_passed_over():
    others = ['DCGM_FI_DEV_NVSWITCH_LINK{nvswitch="0"} 1', 'up{gpu_uuid="GPU-9"} 1', "process_cpu_seconds_total 12.5"]

    assert read_devices(text(*others)) == ()


@pytest.mark.parametrize("answer", ["<html><body>Bad gateway</body></html>", 'x{UUID="GPU-1', "x{UUID=GPU-1} 1\n"])
def test_what_is_no_text_of_metrics_is_refused(answer):
    with pytest.raises(UnreadableMetrics):
        read_devices(answer)


def test_more_devices_than_any_node_has_are_refused():
    lines = (a_line(uuid=f"GPU-{number}") for number in range(DEVICES_AT_MOST + 1))

    with pytest.raises(UnreadableMetrics, match="devices"):
        read_devices(text(*lines))


def test_more_holders_than_any_node_has_are_refused():
    lines = (a_line(f'namespace="team-a",pod="infer-{number}"') for number in range(PODS_AT_MOST + 1))

    with pytest.raises(UnreadableMetrics, match="pods"):
        read_devices(text(*lines))


def test_more_lines_than_any_node_has_are_refused_before_they_are_read():
    lines = (a_line(f'note="{number}"') for number in range(LINES_AT_MOST + 1))

    with pytest.raises(UnreadableMetrics, match="more than 20000 series"):
        read_devices(text(*lines))


def test_labels_without_number_cost_no_more_than_their_length():
    """prometheus_client 0.26 copies what is left of a line with each label: a minute for 870 kB, an hour for 8 MB."""

    def cost_s(labels: int) -> float:
        line = a_line(",".join(f'a{number}="b"' for number in range(labels)))
        began = process_time()
        assert len(read_devices(text(line))) == 1
        return process_time() - began

    few, many = (min(cost_s(labels) for _ in range(3)) for labels in (4_000, 32_000))

    assert many < 32 * max(few, 1e-3)


@example('x{UUID="1",\x1f="1"} 1')  # prometheus_client 0.26 strips the name and looks at its first letter: IndexError
@given(st.text() | st.text(alphabet='x{}=",UID pod#\\\n01').map(lambda labels: f'x{{UUID="1",{labels}}} 1'))
def test_any_text_is_read_or_refused(answer):
    try:
        devices = read_devices(answer)
    except UnreadableMetrics:
        return

    assert all(device.uuid for device in devices)


def test_the_jobs_of_a_batch_system_are_told():
    """dcgm-exporter, internal/pkg/transformation/hpc.go: a series for each job of a GPU."""
    told = read_devices(
        text(a_line('hpc_job="4711"'), a_line('hpc_job="4712"'), a_line("", uuid="GPU-2", gpu=1), a_line('hpc_job=""'))
    )

    assert [device.jobs for device in told] == [("4711", "4712"), ()]
    assert [device.pods for device in told] == [(), ()]


def test_of_very_many_jobs_some_are_told():
    (device,) = read_devices(text(*(a_line(f'hpc_job="{number}"') for number in range(100))))

    assert device.jobs == tuple(str(number) for number in range(JOBS_AT_MOST))


def test_a_partition_of_amds_is_told_by_its_boards_serial_number_with_its_pod():
    labels = 'serial_number="s1",gpu_id="14",gpu_partition_id="6",gpu_compute_partition_type="cpx"'
    memory = 'gpu_memory_partition_type="NPS4"'

    (told,) = read_devices(f'gpu_used_vram{{{labels},{memory},pod="train-0",namespace="ml",container="main"}} 285\n')

    assert (told.uuid, told.index, told.gi_id, told.profile) == ("s1", None, "6", "cpx_nps4")
    assert told.pods == (ExporterPod("ml", "train-0", "main"),)


def test_labels_in_capitals_are_an_older_exporter_of_amds():
    labels = 'SERIAL_NUMBER="s1",GPU_ID="3",HOSTNAME="mi-1",POD="train-0",NAMESPACE="ml",CONTAINER="main"'

    (told,) = read_devices(f'gpu_used_vram{{{labels},GPU_PARTITION_ID="0",GPU_COMPUTE_PARTITION_TYPE="SPX"}} 285\n')

    assert (told.uuid, told.index, told.gi_id) == ("s1", 3, "")
    assert told.pods == (ExporterPod("ml", "train-0", "main"),)


@pytest.mark.parametrize(("labels", "jobs"), [('job_id="8"', ("8",)), ('JOB_ID="8"', ("8",)), ('job_id=""', ())])
def test_a_job_of_slurm_is_told_by_amds_exporter(labels, jobs):
    (told,) = read_devices(f'gpu_gfx_activity{{serial_number="s1",gpu_id="0",{labels},job_user="ada"}} 0\n')

    assert told.jobs == jobs
