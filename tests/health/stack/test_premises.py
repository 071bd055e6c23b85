"""A cause is not said where a fact of the node contradicts it, and speaks of the node's own vendor."""

import pytest

from health.stack.causes import cause_of, why_waits
from health.stack.causes.entries import TABLES
from health.stack.causes.premises import PREMISES
from health.stack.causes.vendor_words import WORDS, steps_for, vendor_of
from tests.health.stack.signs import a_pod, an_event, crashing, signs

TOO_OLD = "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your driver"
DETECTED = "       version 510.85.02 was detected and compatibility mode is UNAVAILABLE."
BUILT_FOR = "ERROR: This container was built for NVIDIA Driver Release 535.86 or later, but"
INSUFFICIENT = "CUDA driver version is insufficient for CUDA runtime version"
LOST = "ncclUnhandledCudaError: Call to CUDA library function failed."
NO_MODULE = (
    "modprobe: ERROR: ctx=0x1 path=/opt/lib/modules/6.14.0-29-generic/kernel/drm.ko error=No such file or directory"
)


def said_of_a_tenant(line: str, **given):
    return why_waits(signs("", crashing(container="main", restarts=3, last_words=line), **given))


@pytest.mark.parametrize(
    ("line", "driver", "key"),
    [
        (TOO_OLD, "580.95.05", "cuda_other_driver"),
        (TOO_OLD, "470.82.01", "cuda_driver_old"),
        (TOO_OLD, "", "cuda_driver_old"),
        (DETECTED, "580.95.05", "cuda_other_driver"),
        (BUILT_FOR, "580.95.05", "cuda_driver_not_given"),
        (BUILT_FOR, "510.85.02", "cuda_driver_old"),
        (INSUFFICIENT, "580.95.05", "cuda_driver_not_given"),
        (INSUFFICIENT, "550.54.15", "cuda_driver_old"),
    ],
)
def test_an_old_driver_is_not_blamed_where_the_node_runs_a_newer_one(line, driver, key):
    assert said_of_a_tenant(line, runs_version=driver).key == key


@pytest.mark.parametrize(("image", "driver", "key"), [
    ("nvcr.io/nvidia/gpu-operator:v25.10.0", "580.82.07", "cuda_driver_not_mounted"),
    ("nvcr.io/nvidia/gpu-operator:v25.10.0", "470.82.01", "cuda_too_new"),
])  # fmt: skip
def test_the_release_of_a_test_decides_which_driver_it_needs(image, driver, key):
    pod = crashing(f"Failed to allocate device vector A (error code {INSUFFICIENT})!", image=image)

    assert cause_of(signs("cuda-test", pod, runs_version=driver)).key == key


@pytest.mark.parametrize(
    ("kernel", "key"),
    [("6.8.0-60-generic", "kmm_other_kernel"), ("6.14.0-29-generic", "kmm_not_loaded"), ("", "kmm_not_loaded")],
)
def test_a_module_of_the_nodes_own_kernel_is_not_called_one_of_another(kernel, key):
    assert cause_of(signs("kernel-module", crashing(NO_MODULE), kernel=kernel)).key == key


@pytest.mark.parametrize(
    ("vendor", "line", "told"),
    [
        ("amd", LOST, ("RCCL",)),
        ("", f"{LOST} amdgpu", ("RCCL",)),
        ("habana", LOST, ("HCCL",)),
        ("intel", LOST, ("oneCCL",)),
        ("", LOST, ("the collective library",)),
    ],
)
def test_a_general_cause_speaks_of_the_vendor_of_the_node(vendor, line, told):
    cause = said_of_a_tenant(line, is_gpu_node=False, is_of_vendor=True, vendor=vendor)
    words = cause.sentence + cause.action

    assert all(each in words for each in told)
    assert not any(
        each in words.replace("NCCL_", "").replace("RCCL", "") for each in ("NCCL", "NVLink", "Xid", "nvidia")
    )


def test_a_cause_on_an_nvidia_node_keeps_its_words():
    cause = said_of_a_tenant(LOST)

    assert "NCCL" in cause.sentence


UNTOLERATED = (
    "0/3 nodes are available: 1 Insufficient {}, 2 node(s) had untolerated taint {{{}: present}}. preemption: 0/3 nodes"
)


@pytest.mark.parametrize(
    ("asked", "taint", "vendor"),
    [
        ("nvidia.com/mig-1g.10gb", "amd.com/gpu", "nvidia"),
        ("amd.com/gpu", "nvidia.com/gpu", "amd"),
        ("gpu.amd.com", "nvidia.com/gpu", "amd"),  # the driver of a claim
        ("aws.amazon.com/neuron", "amd.com/gpu", "neuron"),
        ("", "amd.com/gpu", ""),
    ],
)
def test_a_pod_without_a_node_is_of_the_vendor_that_it_asks_for(asked, taint, vendor):
    event = an_event(UNTOLERATED.format(asked or "cpu", taint), "FailedScheduling")
    pod = a_pod(phase="Pending", events=[event])
    given = {"node": "", "is_gpu_node": False, "is_placed": False, "asks": [asked] if asked else []}

    assert vendor_of(signs("", pod, **given)) == vendor


DRI = "Failed to open /dev/dri/renderD128: Permission denied"
PLATFORMS = "Number of platforms                               0"
CAPTURE = "RuntimeError: operation failed due to a previous error during capture"


@pytest.mark.parametrize(
    ("line", "vendor", "key"),
    [
        (DRI, "amd", "amd_kfd"),
        (DRI, "intel", "intel_not_given"),
        (DRI, "", None),
        (PLATFORMS, "intel", "intel_not_given"),
        (PLATFORMS, "", None),
        ("clCreateContext: no device of requested type available", "", None),
        ("HCCL operation timed out after 600 s", "", "ascend_peer"),
        ("HCCL operation timed out after 600 s", "habana", None),
        ("buffer: allocation failed for size::536870912", "", None),
    ],
)
def test_words_of_several_vendors_are_of_the_vendor_of_the_node(line, vendor, key):
    cause = said_of_a_tenant(line, is_gpu_node=not vendor, is_of_vendor=bool(vendor), vendor=vendor)

    assert (cause.key if cause.key in ("amd_kfd", "intel_not_given", "ascend_peer", "gaudi_memory") else None) == key


def test_a_capture_that_failed_hides_no_fault_of_the_gpu():
    pod = crashing(container="main", last_words=CAPTURE, more_words=["CUDA error: uncorrectable ECC error encountered"])

    assert why_waits(signs("", pod)).key == "cuda_ecc"
    assert said_of_a_tenant(CAPTURE).key == "graph_capture"


@pytest.mark.parametrize(
    ("lines", "is_kill"),
    [("the job ended\nits worker got SIGKILL", True), ("exit code: -6 (SIGABRT), -9 would be SIGKILL", False)],
)
def test_a_kill_is_read_in_any_line_but_not_in_a_hint(lines, is_kill):
    assert (said_of_a_tenant(lines).key == "host_memory_worker") is is_kill


def test_every_vendor_has_steps_for_every_cause():
    entries = [rule.entry for rules in TABLES.values() for rule in rules]
    for steps in (each for entry in entries for each in (entry.steps, entry.steps_alone, entry.steps_unquoted)):
        assert {bool(steps_for(vendor, steps)) for vendor in WORDS} == {bool(steps)}


def test_a_step_that_begins_after_one_of_nvidia_alone_begins_a_sentence():
    assert steps_for("amd", ["Run nvidia-ctk on the node.", "Then delete the pod."]) == ("Delete the pod.",)


def test_an_init_container_of_amd_waits_for_the_driver():
    pod = a_pod(phase="Pending", container="driver-init", status="Init:0/1", is_overdue=True)
    cause = cause_of(signs("amd-device-plugin", pod, is_gpu_node=False, is_of_vendor=True, vendor="amd"))

    assert cause.key == "amd_no_driver"


@pytest.mark.parametrize(
    ("is_placed", "given", "is_read"),
    [
        (True, {"phase": "Running", "restarts": 2}, True),
        (False, {"phase": "Pending"}, False),
        (True, {"phase": "Pending"}, False),
        (True, {"phase": "Pending", "container": "init"}, True),
        (True, {"phase": "Failed", "reason": "StartError"}, False),
    ],
)
def test_no_log_is_to_be_read_where_no_container_has_run(is_placed, given, is_read):
    (rule,) = [each for each in TABLES["tenants.error"] if each.entry.key == "program_error"]
    cause = rule.cause(signs("", a_pod(**given), is_placed=is_placed), "ValueError: x")

    assert ("logs" in cause.action) is is_read
    assert cause.action


def test_every_premise_is_one_of_a_cause():
    assert {name for rules in TABLES.values() for rule in rules for name in rule.entry.premises} == set(PREMISES)


@pytest.mark.parametrize(
    ("labels", "title"),
    [
        ({"nvidia.com/vgpu.present": "true"}, "vGPU is unavailable for CUDA: it may have no licence"),
        ({"nvidia.com/gpu.product": "NVIDIA-A10-vGPU"}, "vGPU is unavailable for CUDA: it may have no licence"),
        ({"nvidia.com/gpu.product": "NVIDIA-A10"}, "GPU is busy or unavailable for CUDA"),
    ],
)
def test_a_licence_is_asked_for_on_nodes_with_vgpus(labels: dict[str, str], title: str):
    busy = "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"

    assert why_waits(signs("", crashing(last_words=busy, container="main"), labels=labels)).title == title


MISMATCH = "RuntimeError: CUDA error: Error 803: system has unsupported display driver / cuda driver combination"
NO_HIP = "RuntimeError: No HIP GPUs are available"
SHARE = (
    "ValueError: Free memory on device cuda:0 ({}/79.18 GiB) on startup is less than desired GPU memory utilization "
    "(0.9, 71.26 GiB)."
)
REFUSED = (
    "Pod Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0"
)


@pytest.mark.parametrize(
    ("restarts", "first"), [(0, "Delete the pod"), (1, "Delete the pod"), (3, "Let the driver's library win")]
)
def test_a_container_that_fails_again_did_not_miss_a_change_of_the_driver(restarts, first):
    cause = why_waits(signs("", crashing(container="main", restarts=restarts, last_words=MISMATCH)))

    assert (cause.key, cause.steps[0].startswith(first)) == ("cuda_mismatch", True)


@pytest.mark.parametrize(
    ("asks", "first"),
    [
        (["amd.com/gpu"], "Use an image whose ROCm"),
        (["nvidia.com/gpu"], "Check that the container itself asks for amd.com/gpu"),
        ([], "Check that the container itself asks"),
    ],
)
def test_a_pod_that_asks_for_gpus_is_not_told_to_ask_for_one(asks, first):
    cause = said_of_a_tenant(NO_HIP, asks=asks, vendor="amd", is_of_vendor=True, is_gpu_node=False)

    assert (cause.key, cause.steps[0].startswith(first)) == ("hip_none_given", True)


@pytest.mark.parametrize(("free", "first"), [("0.41", "Run nvidia-smi on the node"), ("70.9", "If nearly all is free")])
def test_the_free_memory_tells_whether_another_process_has_it(free, first):
    cause = said_of_a_tenant(SHARE.format(free))

    assert (cause.key, cause.steps[0].startswith(first)) == ("gpu_memory_share_too_high", True)


NODE_SHORT = "Container main was killed: the node ran out of memory"
LIMIT = "Container main was killed: memory limit exceeded"


@pytest.mark.parametrize(("limit", "title"), [(0, NODE_SHORT), (1 << 30, LIMIT), (None, LIMIT)])
def test_a_container_without_a_limit_was_not_killed_by_it(limit, title):
    pod = a_pod(reason="OOMKilled", container="main", memory_limit_bytes=limit)

    cause = why_waits(signs("", pod))

    assert (cause.key, cause.title) == ("host_memory", title)


@pytest.mark.parametrize(
    ("had_ended_well", "key"), [(True, "refused_when_finished"), (False, "devices_taken_by_others")]
)
def test_a_pod_that_had_ended_well_lacked_no_gpu(had_ended_well, key):
    pod = a_pod(phase="Failed", reason="UnexpectedAdmissionError", message=REFUSED, had_ended_well=had_ended_well)

    assert why_waits(signs("", pod)).key == key


@pytest.mark.parametrize(
    ("labels", "title"),
    [
        ({"nvidia.com/vgpu.present": "true"}, "Driver does not know the GPU: the node has a vGPU"),
        ({"feature.node.kubernetes.io/cpu-cpuid.HYPERVISOR": "true"}, "Driver does not know the GPU"),
        ({}, "Driver does not know the GPU"),
    ],
)
def test_a_gpu_that_the_driver_does_not_know_is_not_called_dropped(labels, title):
    lines = (
        "NVRM: The NVIDIA GPU 0000:05:00.0 (PCI ID: 10de:26b9)",
        "NVRM: installed in this system is not supported by the",
        "NVRM: NVIDIA 570.86.15 driver release.",
    )

    cause = cause_of(signs("driver", crashing(*lines), labels={"nvidia.com/gpu.deploy.driver": "true", **labels}))

    assert (cause.key, cause.title) == ("gpu_unknown_to_driver", title)


@pytest.mark.parametrize("asks", [[], ["nvidia.com/gpu"]])
def test_a_step_that_is_done_is_left_out(asks):
    cause = said_of_a_tenant("RuntimeError: No CUDA GPUs are available", asks=asks)

    assert (cause.steps[0] == "Check that the container itself asks for a GPU.") is not bool(asks)


@pytest.mark.parametrize(
    ("image", "system", "key"),
    [
        ("nvcr.io/nvidia/driver:570-6.8.0-59-generic-ubuntu22.04", "Ubuntu 24.04.2 LTS", "driver_of_other_system"),
        ("nvcr.io/nvidia/driver:580.95.05-rhel9.4", "Ubuntu 24.04.2 LTS", "driver_of_other_system"),
        ("nvcr.io/nvidia/driver:580.95.05-ubuntu24.04", "Ubuntu 24.04.2 LTS", "kernel_headers"),
        ("nvcr.io/nvidia/driver:580.95.05-rhel9", "Rocky Linux 9.5 (Blue Onyx)", "kernel_headers"),
        ("nvcr.io/nvidia/driver:580.95.05-rhel8", "Rocky Linux 9.5 (Blue Onyx)", "driver_of_other_system"),
        ("nvcr.io/nvidia/driver:580.95.05-rhel9", "Red Hat Enterprise Linux CoreOS 9.6", "kernel_headers"),
        ("nvcr.io/nvidia/driver@sha256:0a", "Ubuntu 24.04.2 LTS", "kernel_headers"),
    ],
)
def test_an_image_for_another_system_is_told_before_what_it_lacks(image, system, key):
    pod = crashing("Could not resolve Linux kernel version", image=image)
    gate = {"nvidia.com/gpu.deploy.driver": "true"}

    assert cause_of(signs("driver", pod, labels=gate, os_image=system)).key == key
