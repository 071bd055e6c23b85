"""The lines are as people met them: each with where it was read."""

import pytest

from health.stack.causes import cause_of
from tests.health.stack.signs import a_pod, an_event, crashing, signs

# gpu-operator #1390: names nouveau without knowing
NOT_LOADABLE = (
    "ERROR: Unable to load the kernel module 'nvidia.ko'.  This happens most frequently when this kernel module was "
    "built against the wrong or improperly configured kernel sources, or if another driver, such as nouveau, is present"
)
DRIVER_LINES = [
    ("Could not resolve Linux kernel version", "kernel_headers"),  # gpu-operator #85
    ("make[1]: *** /lib/modules/5.15.0-60-generic/build: No such file or directory.  Stop.", "kernel_headers"),  # #583
    ("E: Unable to locate package linux-headers-5.4.0-1068-fips", "kernel_headers"),  # apt
    ("failed to unload nouveau driver: exit status 1", "nouveau"),  # k8s-driver-manager main.go
    ("ERROR: The Nouveau kernel driver is currently in use by your system.", "nouveau"),  # nvidia-installer
    ("Could not unload NVIDIA driver kernel modules, driver is in use", "driver_in_use"),  # nvidia-docker #1242
    ("rmmod: ERROR: Module nvidia_drm is in use", "driver_in_use"),
    ("failed to uninstall nvidia driver components: driver is in use", "driver_in_use"),  # k8s-driver-manager main.go
    ("Cleanup could not automatically proceed on node gpu-1 because both …", "driver_in_use"),  # its messages.go
    ("ERROR: The kernel module failed to load, because it was not signed by a key that is trusted by the kernel.",
     "not_signed"),  # gpu-operator #266
    ("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service", "not_signed"),
    ("Loading of unsigned module is rejected", "not_signed"),  # gpu-operator #1726
    ("Kernel module load error: Operation not permitted", "not_signed"),  # gpu-operator #1142
    ("make[2]: *** [scripts/Makefile.build:297: /usr/src/nvidia-470/kernel/nvidia/nv.o] Error 1", "not_compiled"),
    ("ERROR: Unable to build the NVIDIA kernel module.", "not_compiled"),
    ("failed to unbind vfio-pci driver: unable to unbind", "vfio"),  # k8s-driver-manager main.go
    ("cannot find match for compatible vgpu driver from available list", "no_vgpu_driver"),  # nvidia-driver script
    ("cp: cannot stat '/drivers/gridd.conf': No such file or directory", "vgpu_licence"),
    ("E: Failed to fetch http://archive.ubuntu.com/ubuntu/dists/jammy/InRelease", "packages_unreachable"),
    (NOT_LOADABLE, "not_loadable"),
    ("An instance of the NVIDIA driver is already running, aborting", "two_drivers"),
    ("nvidia-peermem module is not loaded", "rdma"),
    ("driver is pre-installed on host", "host_driver"),
    ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "driver_not_loaded"),  # #751
]  # fmt: skip


@pytest.mark.parametrize(("line", "key"), DRIVER_LINES)
def test_what_a_crashing_driver_says(line, key):
    cause = cause_of(signs("driver", crashing("Starting installation", line, "Stopping NVIDIA persistence daemon...")))

    assert (cause.key, cause.quote) == (key, line)


def test_a_driver_that_runs_and_finds_no_gpu_is_told_by_its_probe():
    event = an_event("Startup probe failed: No devices were found", "Unhealthy")  # gpu-operator #641
    cause = cause_of(signs("driver", a_pod(events=[event])))

    assert cause.key == "no_devices"


def test_a_driver_that_did_not_compile_and_still_runs_is_told_by_its_log():
    cause = cause_of(
        signs("driver", a_pod(log=["make: *** [Makefile:82: modules] Error 2", "Done, now waiting for signal"]))
    )

    assert cause.key == "not_compiled"
    assert "against kernel 6.8.0-60-generic" in cause.sentence


def test_what_the_driver_says_is_not_read_into_others():
    cause = cause_of(signs("dcgm-exporter", crashing("Module nvidia is in use")))

    assert cause.key == "crashed"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("E1218 21:38:29.590783 1 factory.go:113] Incompatible strategy detected auto", "no_nvml"),
        ("Failed to initialize NVML: could not load NVML library.", "no_nvml"),  # k8s-device-plugin #444
        ("nvml error: insufficient permissions", "plugin_privileges"),  # k8s-device-plugin #637
        ("Could not register device plugin: context deadline exceeded", "plugin_socket"),  # k8s-device-plugin #82
        ("I1218 21:38:29.590798 1 main.go:385] No devices found. Waiting indefinitely.", "plugin_no_devices"),
        ("error starting plugins: unable to load config: unable to finalize config", "sharing_config"),
    ],
)
def test_what_a_device_plugin_says(line, key):
    assert cause_of(signs("device-plugin", crashing(line))).key == key


@pytest.mark.parametrize(
    ("operand", "said", "key"),
    [
        ("dcgm-exporter", 'failed to get sandbox runtime: no runtime for "nvidia" is configured', "no_runtime_handler"),
        ("gpu-feature-discovery", "failed to find runtime handler nvidia from runtime list", "no_runtime_handler"),
        (
            "device-plugin",
            "failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=0",
            "cdi_unresolvable",
        ),
        ("dcgm", "Failed to create pod sandbox: rpc error: plugin type=calico failed", "sandbox"),
        ("dcgm", 'MountVolume.SetUp failed for volume "metrics" : configmap "metrics" not found', "mount"),
    ],
)
def test_what_a_container_runtime_says(operand, said, key):
    pod = a_pod(phase="Pending", events=[an_event(f"Failed to create pod sandbox: rpc error: desc = {said}")])
    if key == "mount":
        pod = a_pod(phase="Pending", events=[an_event(said, "FailedMount")])

    assert cause_of(signs(operand, pod)).key == key


def test_what_the_toolkit_says_names_the_runtime():
    line = "error running nvidia-toolkit: unable to setup runtime: unable to restart containerd: unable to dial"
    cause = cause_of(signs("container-toolkit", crashing(line)))

    assert cause.key == "runtime_restart"
    assert "containerd on this node" in cause.sentence


# libnvidia-container's words, as the runtime passes them on
FROM_THE_RUNTIME = [
    ("nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown",
     "library_mismatch"),  # gpu-operator #898
    ("nvidia-container-cli: initialization error: nvml error: driver not loaded", "driver_module_missing"),
    ("stderr: nvidia-container-cli.real: initialization error: driver error: failed to process request: unknown",
     "driver_module_missing"),  # gpu-operator #130
    ("nvidia-container-cli: initialization error: driver rpc error: timed out: unknown", "driver_no_answer"),
    ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver",
     "cuda_requirement"),
    ("fork/exec /usr/local/nvidia/toolkit/nvidia-container-runtime: no such file or directory", "runtime_gone"),
    ("nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object",
     "driver_library_missing"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "key"), FROM_THE_RUNTIME)
def test_a_container_that_the_runtime_cannot_start_says_why(words, key):
    cause = cause_of(signs("dcgm-exporter", crashing(last_words=words)))

    assert (cause.key, cause.quote) == (key, words)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("Failed to allocate device vector A (error code system not yet initialized)!", "cuda_no_fabric"),  # #1043
        ("Failed to allocate device vector A (error code initialization error)!", "cuda_no_start"),  # #1848
        ("Failed to allocate device vector A (error code no CUDA-capable device is detected)!", "cuda_no_device"),
        ("(error code CUDA driver version is insufficient for CUDA runtime version)!", "cuda_too_new"),
    ],
)  # fmt: skip
def test_a_test_of_the_validator_that_fails_names_what_cuda_lacks(line, key):
    cause = cause_of(
        signs("cuda-test", crashing(line, "[Vector addition of 50000 elements]", container="cuda-validation"))
    )

    assert (cause.key, cause.quote) == (key, line)


def test_a_driver_without_precompiled_modules_does_not_ask_for_headers():
    line = "E: Unable to locate package linux-modules-nvidia-535-server-6.1.51-talos"  # siderolabs/talos #8402
    cause = cause_of(signs("driver", crashing(line, "Stopping NVIDIA persistence daemon...")))

    assert cause.key == "no_precompiled"


PROBE = "Startup probe failed: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."


def test_the_probe_of_a_driver_that_is_still_compiled_is_no_cause():
    cause = cause_of(signs("driver", a_pod(events=[an_event(PROBE, "Unhealthy")])))

    assert (cause.key, cause.quote) == ("not_ready_yet", PROBE)


def test_the_probe_of_a_driver_that_had_its_time_is_one():
    assert (
        cause_of(signs("driver", a_pod(events=[an_event(PROBE, "Unhealthy")], is_overdue=True))).key
        == "driver_not_loaded"
    )


def test_a_container_that_the_runtime_cannot_make_is_not_blamed_on_a_config_map():
    cause = cause_of(signs("dcgm", a_pod(reason="CreateContainerError", message="context deadline exceeded")))

    assert "ConfigMap" not in cause.action
    assert cause.quote == "context deadline exceeded"


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ("Unable to retrieve list of available devices: error creating nvml.Device 3: nvml: GPU is lost", "gpu_lost"),
        ("requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0", "no_gpu_free"),
    ],
)  # fmt: skip
def test_a_test_pod_that_the_kubelet_does_not_admit_says_which_gpu_is_wanting(message, key):
    """k8s-device-plugin #231, gpu-operator #388."""
    said = f"Pod was rejected: Allocate failed due to {message}, which is unexpected"
    pod = a_pod(phase="Failed", reason="UnexpectedAdmissionError", message=said)

    assert cause_of(signs("plugin-test", pod)).key == key
