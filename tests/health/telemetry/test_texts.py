"""Texts as exporters of several ages write them, from NVIDIA/dcgm-exporter's issues and KEP-3695; and odd spellings."""

import pytest

from health.telemetry.exporter import read_devices
from health.telemetry.lines import UnreadableMetrics

A, B, SLICE_7, SLICE_8 = ("GPU-a", ""), ("GPU-b", ""), ("GPU-a", "7"), ("GPU-a", "8")
MIG = (
    'U{gpu="0",UUID="GPU-a",modelName="NVIDIA A100-SXM4-40GB",GPU_I_PROFILE="1g.5gb",GPU_I_ID="%s",Hostname="h"%s} 1\n'
)
TEXTS = {
    "1.7, old namespace": (
        'dcgm_sm_clock{gpu="0",uuid="GPU-a",container_name="c",pod_name="p",pod_namespace="n"} 139\n',
        {A: ["p"]},
    ),
    "2.x, nobody (issues/188)": (
        'D{gpu="0",UUID="GPU-a",device="nvidia0",Hostname="e",container="",namespace="",pod=""} 585\n',
        {A: []},
    ),
    "3.x, MIG": (MIG % ("7", ',namespace="n",pod="p"') + MIG % ("8", ""), {SLICE_7: ["p"], SLICE_8: []}),
    "4.x, DRA (KEP-3695)": (
        (
            'D{gpu="0",UUID="GPU-a",pci_bus_id="00000009:01:00.0",device="nvidia0",modelName="NVIDIA GH200 96GB HBM3",'
            'container="ctr",dra_claim_name="single-gpu",dra_claim_namespace="gpu-test3",dra_device_name="gpu-0",'
            'dra_driver_name="gpu.nvidia.com",dra_pool_name="sc",namespace="gpu-test3",pod="p"} 23792\n'
        ),
        {A: ["p"]},
    ),
    "4.x, shared": (
        'D{gpu="0",UUID="GPU-a",vgpu="0",pod="a"} 1\nD{gpu="0",UUID="GPU-a",vgpu="1",pod="b"} 1\n',
        {A: ["a", "b"]},
    ),
    "4.x, switches, links and CPUs": (
        'D{nvlink="1",nvswitch="nvswitch0",Hostname="h"} 0\nE{cpucore="0",cpu="0"} 0.1\nF{gpu="0",UUID="GPU-a"} 1\n',
        {A: []},
    ),
    "4.x, an Xid": (
        'D{gpu="0",UUID="GPU-a",err_code="79",err_msg="GPU has fallen off the bus",pod="p"} 79\n',
        {A: ["p"]},
    ),
    "OpenMetrics": (
        (
            '# TYPE D gauge\n# UNIT D percent\nD{gpu="0",UUID="GPU-a",pod="p"} 1.0 1712345678.123\n# TYPE x counter\n'
            'x_total{gpu="0",UUID="GPU-a",pod="p"} 5.0 # {trace_id="abc"} 0.67\n# EOF\n'
        ),
        {A: ["p"]},
    ),
    "quoted names": ('{"D",gpu="0",UUID="GPU-a",pod="p"} 1\n', {A: ["p"]}),
    "another order": ('D{pod="p",zeta="1",namespace="n",UUID="GPU-a",container="c",gpu="0"} 1\n', {A: ["p"]}),
    "spaces and a comma": ('D{ gpu = "0" , UUID = "GPU-a" , pod = "p", } 1\n', {A: ["p"]}),
    "quotes and braces": (r'D{gpu="0",UUID="GPU-a",pod="p",note="a \"b\" {c} \\ d, e=\"f\""} 1', {A: ["p"]}),
    "Windows' ends of lines": ('D{gpu="0",UUID="GPU-a",pod="p"} 1\r\nD{gpu="1",UUID="GPU-b"} 1\r\n', {A: ["p"], B: []}),
    "values that are none": ('D{gpu="0",UUID="GPU-a",pod="p"} NaN\nE{gpu="1",UUID="GPU-b"} +Inf\n', {A: ["p"], B: []}),
    "3.3.8, a field that is no number (issues/394)": (
        'V{gpu="0"} ERROR - FAILED TO CONVERT TO STRING\nD{gpu="0",UUID="GPU-a",pod="p"} 585\n',
        {A: ["p"]},
    ),
    "a name for a value": (
        'N{gpu="0",UUID="GPU-a",Hostname="h"} Tesla T4\nD{gpu="0",UUID="GPU-a",Hostname="h"} 300\n',
        {A: []},
    ),
    "1.7, no value at all": ('D{gpu="0",UUID="GPU-a",pod="p"} \nE{gpu="1",UUID="GPU-b"} 1\n', {A: ["p"], B: []}),
    "of the process only": ("go_goroutines 12\n", {}),
    "AMD's exporter": ('gpu_gfx_activity{gpu_id="0",gpu_uuid="72ff",pod="p",namespace="n"} 0\n', {("72ff", ""): ["p"]}),
}


@pytest.mark.parametrize("called", TEXTS)
def test_who_is_on_which_device_is_read(called):
    text, expected = TEXTS[called]

    found = {(device.uuid, device.gi_id): [pod.name for pod in device.pods] for device in read_devices(text)}

    assert found == expected


def test_what_a_proxy_answers_is_refused():
    with pytest.raises(UnreadableMetrics):
        read_devices("<html><body>502 Bad Gateway</body></html>")
