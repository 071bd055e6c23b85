"""Texts of exporters after a Prometheus has written its own labels on them."""

import pytest

from health.telemetry.exporter import read_devices

# As posted in NVIDIA/dcgm-exporter issues/363: `pod` is the exporter's own.
IDLE = (
    'DCGM_FI_DEV_FB_USED{DCGM_FI_DRIVER_VERSION="550.54.15",Hostname="k8s-gpu1",UUID="GPU-0b3ddbd5",'
    'app_kubernetes_io_name="dcgm-exporter",device="nvidia0",gpu="0",instance="172.16.140.27:9400",'
    'job="kubernetes-service-endpoints",modelName="NVIDIA A100 80GB PCIe",namespace="gpu-exporter",node="k8s-gpu1",'
    'pod="exporter-x7k2p",service="dcgm-gpu-exporter"} 0\n'
)
# issues/85, with honorLabels: false
BUSY = (
    'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-0b3ddbd5",container="nvidia-dcgm-exporter",endpoint="gpu-metrics",'
    'exported_container="train",exported_namespace="team-a",exported_pod="train-0",gpu="0",'
    'instance="10.42.1.7:9400",job="nvidia-dcgm-exporter",namespace="gpu-operator",'
    'pod="nvidia-dcgm-exporter-cq2hs",service="nvidia-dcgm-exporter"} 97\n'
)
OWN_NAME = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",pod="nvidia-dcgm-exporter-cq2hs",namespace="gpu-operator"} 0\n'
DIRECT = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",pod="train-0",namespace="team-a",container="main",job="x"} 0\n'


@pytest.mark.parametrize("text", [IDLE, OWN_NAME])
def test_the_exporters_own_pod_holds_no_gpu(text):
    (device,) = read_devices(text)

    assert (device.index, device.pods) == (0, ())


@pytest.mark.parametrize("text", [BUSY, DIRECT, IDLE + BUSY])
def test_who_is_named_as_the_holder_is_one(text):
    (device,) = read_devices(text)

    assert [(pod.namespace, pod.name) for pod in device.pods] == [("team-a", "train-0")]
