"""What answers behind a pod: metrics and logs."""

from simulator.actors.apps import DCGM_EXPORTER
from simulator.actors.journal import Journal
from simulator.actors.pod_logs import PodLogs
from tests.simulator.actors.stage import Stage, a_fleet

NODE = "gpu-h100-001"


def scraped(stage: Stage, path: str = "metrics") -> tuple[int, str]:
    (pod,) = stage.pods(NODE, f"app={DCGM_EXPORTER}")
    served = stage.play.exporters.serve(pod, path)
    return served.status, served.body.decode()


def test_an_exporter_has_a_line_for_each_gpu_and_series():
    stage = a_fleet(2)

    status, text = scraped(stage)

    temperatures = [line for line in text.splitlines() if line.startswith("DCGM_FI_DEV_GPU_TEMP{")]
    assert status == 200
    assert len(temperatures) == 8
    assert 'DCGM_FI_DRIVER_VERSION="580.95.05"' in temperatures[0]
    assert 'namespace="pretraining"' in temperatures[0]
    assert len({line.split('UUID="')[1].split('"')[0] for line in temperatures}) == 8


def test_an_exporter_serves_nothing_else():
    assert scraped(a_fleet(2), "pprof")[0] == 404


def test_a_log_has_times_and_knows_what_ran_before():
    stage = a_fleet(2)
    driver = stage.driver_pod(NODE)
    read_log = PodLogs(Journal()).read

    lines = read_log(driver, "nvidia-driver-ctr", previous=False)

    assert lines
    assert lines[0].endswith("Installing NVIDIA driver version 580.95.05")
    assert read_log(driver, "nvidia-driver-ctr", previous=True) is None
    assert read_log(driver, "nobody", previous=False) is None
