"""What real clusters said of operands that did not run, each with the issue or the source it was read in."""

from pathlib import Path

import pytest
import yaml

from health.stack import causes
from health.stack.causes import cause_of, why_waits
from health.stack.causes.entries import TABLES, CauseMatcher
from kube.log_lines import decisive_line, is_frame
from tests.health.logs import logged
from tests.health.stack.signs import a_pod, an_event, crashing, signs

SAID = yaml.safe_load((Path(__file__).parent / "recorded_words.yaml").read_text())
OF_PODS = yaml.safe_load((Path(__file__).parent / "recorded_words_of_tenants.yaml").read_text())
HOOK = (
    "failed to create shim task: error running hook #0: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'"
)


@pytest.mark.parametrize("said", SAID, ids=lambda said: f"{said['operand']}: {said['key']}: {said['source']}")
def test_what_was_said_is_understood(said):
    lines = logged(said["log"]) if "log" in said else said.get("lines", ())
    mig = {"mig_state": "failed", "mig_config": "all-1g.10gb"} if said["operand"] == "mig-manager" else {}
    cause = cause_of(signs(said["operand"], crashing(*lines, **said.get("pod", {})), **mig, **said.get("signs", {})))

    assert cause is not None
    assert cause.key == said["key"]
    assert cause.sentence
    assert cause.action
    assert not is_frame(cause.quote or "x")
    assert "{" not in cause.sentence + cause.action


@pytest.mark.parametrize("said", OF_PODS, ids=lambda said: f"{said['key']}: {said['source']}")
def test_what_was_said_of_a_tenants_pod_is_understood(said):
    events = [an_event(said["event"][1], said["event"][0])] if "event" in said else []
    given = said.get("pod", {"phase": "Pending"} if events else {"reason": "CrashLoopBackOff", "restarts": 3})
    pod = a_pod(events=events, container="main", last_words=said.get("last_words", ""), is_overdue=True, **given)
    cause = why_waits(signs("", pod, is_placed=said.get("is_placed", True)))

    assert cause is not None
    assert cause.key == said["key"]
    assert cause.quote
    assert cause.action
    assert "{" not in cause.sentence + cause.action


@pytest.mark.parametrize(
    ("key", "spellings"),
    [
        ("cuda_none_given", "CUDA_ERROR_NO_DEVICE cudaErrorNoDevice no CUDA-capable device is detected"),
        ("cuda_ordinal", "CUDA_ERROR_INVALID_DEVICE cudaErrorInvalidDevice invalid device ordinal"),
        ("cuda_no_kernel", "CUDA_ERROR_INVALID_PTX cudaErrorInvalidPtx a PTX JIT compilation failed"),
        ("cuda_no_kernel", "CUDA_ERROR_NO_BINARY_FOR_GPU cudaErrorNoKernelImageForDevice no kernel image is available"),
        ("cuda_illegal_access", "CUDA_ERROR_LAUNCH_TIMEOUT cudaErrorLaunchTimeout the launch timed out"),
        ("cuda_illegal_access", "CUDA_ERROR_INVALID_PC cudaErrorInvalidPc invalid program counter"),
        ("cuda_misuse", "CUDA_ERROR_INVALID_VALUE cudaErrorInvalidValue invalid argument"),
        ("cuda_nvlink", "CUDA_ERROR_CONTAINED cudaErrorContained peer GPU memory over nvlink or a hardware error"),
        ("cuda_unknown", "CUDA_ERROR_NOT_INITIALIZED cudaErrorInitializationError initialization error"),
    ],
)  # fmt: skip
def test_the_spellings_of_an_error_of_cuda_have_one_cause(key, spellings):
    """The driver API, the runtime API and the text: CUDA's group__CUDA__TYPES and group__CUDART__TYPES."""
    of_driver, of_runtime, text = spellings.split(" ", 2)
    said = [
        f"failed call to cuInit: {of_driver}",
        f"AcceleratorError: {of_runtime}",
        f"RuntimeError: CUDA error: {text}",
    ]
    crashed = [a_pod(container="main", reason="CrashLoopBackOff", restarts=3, last_words=line) for line in said]

    assert {why_waits(signs("", pod)).key for pod in crashed} == {key}


def test_what_was_held_when_a_pod_came_is_no_fault_of_the_plugin():
    enough = "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: {}, capacity: {}"
    held, none = (
        why_waits(signs("", a_pod(phase="Failed", message=f"OutOfnvidia.com/gpu: {enough.format(*numbers)}")))
        for numbers in ((8, 8), (0, 0))
    )

    assert "8 of 8 were in use when it came" in held.sentence
    assert "device plugin" not in held.action
    assert "The node offered 0 when it came" in none.sentence
    assert "device plugin" in none.action


def test_the_assertion_that_begins_a_run_of_the_mig_manager_is_not_why_it_failed():
    """gpu-operator #322: it is at the level fatal in every run."""
    asserted = 'level=fatal msg="Assertion failure: selected configuration not currently applied"'
    failed = 'level=error msg="Failed to apply MIG config: exit status 1"'
    cause = cause_of(signs("mig-manager", a_pod(is_ready=True, log=[asserted, failed]), mig_state="failed"))

    assert (cause.key, cause.quote) == ("mig_failed", failed)


@pytest.mark.parametrize(
    ("log", "operand", "key"),
    [
        ("exporter-no-engine", "dcgm-exporter", "dcgm_unreachable"),
        ("exporter-traced", "dcgm-exporter", "dcgm_unreachable"),
        ("exporter-mapper", "dcgm-exporter", "crashed"),
        ("exporter-segmentation", "dcgm-exporter", "crashed"),
        ("exporter-no-nvml", "dcgm-exporter", "no_nvml"),
        ("plugin-nil", "device-plugin", "crashed"),
    ],
)
def test_an_exporter_or_a_plugin_that_crashes_says_why(log, operand, key):
    cause = cause_of(signs(operand, crashing(*logged(log), container="ctr")))

    assert cause.key == key
    assert cause.quote
    assert not is_frame(cause.quote)
    assert "panic.go" not in cause.quote


def test_the_host_engine_is_named_with_its_address():
    cause = cause_of(signs("dcgm-exporter", crashing(*logged("exporter-traced"))))

    assert cause.title == "DCGM host engine is unreachable at nvidia-dcgm:5555"


def test_a_hook_that_fails_in_two_lines_is_told_by_the_second():
    bpf = next(each["pod"]["last_words"] for each in SAID if each["key"] == "cgroup_devices")

    assert decisive_line([HOOK, bpf]) == bpf


@pytest.mark.parametrize(("state", "key"), [("failed", "cc_failed"), ("on", None), ("off", None)])
def test_a_confidential_mode_that_failed_is_no_well_being(state, key):
    labels = {"nvidia.com/cc.mode": "on", "nvidia.com/cc.mode.state": state}
    gate = "nvidia.com/gpu.deploy.cc-manager"
    cause = cause_of(signs("cc-manager", a_pod(is_ready=True), labels=labels | {gate: "true"}))

    assert (cause and cause.key) == key
    assert cause is None or "The wanted mode is on." in cause.sentence


@pytest.mark.parametrize(("state", "key"), [("failed", "vgpu_failed"), ("success", None)])
def test_vgpus_that_were_not_made_are_no_well_being(state, key):
    labels = {"nvidia.com/vgpu.config": "A2-2Q", "nvidia.com/vgpu.config.state": state}
    gate = "nvidia.com/gpu.deploy.vgpu-device-manager"
    cause = cause_of(signs("vgpu-device-manager", a_pod(is_ready=True), labels=labels | {gate: "true"}))

    assert (cause and cause.key) == key


@pytest.mark.parametrize(("devices", "key"), [(0, "dra_publishes_nothing"), (8, None), (None, None)])
def test_a_slice_without_devices_is_no_well_being(devices, key):
    cause = cause_of(signs("dra-driver", a_pod(is_ready=True), slice_devices=devices))

    assert (cause and cause.key) == key


def test_a_container_that_its_probe_ends_says_so():
    event = an_event("Liveness probe failed: command timed out: nvidia-smi", "Unhealthy")
    pod = crashing("Starting to serve", "Received signal terminated, shutting down", events=[event], container="ctr")

    assert cause_of(signs("device-plugin", pod)).key == "killed_by_probe"


def test_a_missing_pull_secret_is_named():
    lost = "Unable to retrieve some image pull secrets (ngc-secret); attempting to pull the image may not succeed."
    pod = a_pod(
        phase="Pending", reason="ImagePullBackOff", message="Back-off pulling image",
        events=[an_event("401 Unauthorized", "Failed"), an_event(lost, "FailedToRetrieveImagePullSecret")],
    )  # fmt: skip
    cause = cause_of(signs("driver", pod))

    assert (cause.key, cause.quote) == ("image_pull_secret", lost)


OF_THE_OPERATOR = ("ClusterPolicy", "operator", "oolkit is ready", "driver pod", "NVIDIADriver", "toolkit's pod")
ONLY_BY_IT = {
    "driver", "container-toolkit", "operator-validator", "mig-manager", "cuda-test", "plugin-test", "vgpu-manager",
    "vfio-manager", "cc-manager", "driver-installer", "sandbox-device-plugin", "sandbox-validator",
    "vgpu-device-manager", "kata-sandbox-device-plugin",
}  # fmt: skip


MATCHED = [rule for rule in causes.NOT_READY if isinstance(rule, CauseMatcher) and rule.entry.patterns]
OF_TENANTS = [
    rule
    for name, rules in TABLES.items()
    for rule in rules
    if name.startswith(("tenants.", "programs.")) and rule.entry.patterns
]


def test_without_an_operator_no_step_leads_to_one():
    for entry in (rule.entry for rule in (*MATCHED, *OF_TENANTS)):
        if (entry.operands and entry.operands <= ONLY_BY_IT) or entry.key.startswith(("dev_char", "driver_ctr")):
            continue

        steps = " ".join(entry.steps_alone or entry.steps)
        assert not [word for word in OF_THE_OPERATOR if word in steps], entry.key


@pytest.mark.parametrize(
    ("code", "said"),
    [("14", "infoROM"), ("15", "fell off the bus"), ("8", "power cable"), ("10", "interrupts"), ("12", "libnvidia-ml"),
     ("13", "older than the nvidia-smi")],
)  # fmt: skip
def test_a_code_that_nvidia_smi_ends_with_names_what_is_wrong(code, said):
    """nvidia-smi(1), RETURN VALUE."""
    ended = f'level=info msg="No pre-installed driver detected on the host: exit status {code}"'
    waiting = "stat: cannot statx '/run/nvidia/validations/.driver-ctr-ready': No such file or directory"
    pod = a_pod(phase="Pending", container="driver-validation", is_overdue=True, log=(ended, waiting))

    cause = cause_of(signs("operator-validator", pod))

    assert (cause.key, cause.quote) == ("smi_exit", ended)
    assert said in cause.sentence
    assert "driver pod" not in cause.action


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        (
            ['time="2026-02-04T08:46:27Z" level=error msg="Failed to compute partition Device busy"'],
            "amd_partition_busy",
        ),
        ([], "amd_profile_failed"),
    ],
)
def test_a_partition_profile_that_failed_is_told_by_a_manager_that_is_ready(lines, key):
    labels = {"dcm.amd.com/gpu-config-profile": "cpx", "dcm.amd.com/gpu-config-profile-state": "failure"}
    pod = a_pod(is_ready=True, log=lines)

    assert cause_of(signs("amd-config-manager", pod, labels=labels, selector={})).key == key
    assert cause_of(signs("amd-config-manager", pod, labels={}, selector={})) is None


@pytest.mark.parametrize("given", [{"is_driver_off": True}, {"labels": {"nvidia.com/gpu.deploy.driver": "pre-installed",
                                    "nvidia.com/gpu.deploy.operator-validator": "true"}}])  # fmt: skip
def test_no_driver_pod_is_looked_at_where_the_driver_is_the_hosts(given):
    said = 'level=info msg="No pre-installed driver detected on the host: exit status 9"'
    waiting = "stat: cannot statx '/run/nvidia/validations/.driver-ctr-ready': No such file or directory"
    pod = a_pod(phase="Pending", container="driver-validation", is_overdue=True, log=(said, waiting))
    silent = a_pod(phase="Pending", container="driver-validation", is_overdue=True)

    told, untold = (cause_of(signs("operator-validator", each, **given)) for each in (pod, silent))

    assert (told.key, told.quote) == ("host_driver_not_seen", said)
    assert untold.key == "driver_validation"
    assert "Run nvidia-smi on the node" in told.action
    assert "Run nvidia-smi on the node" in untold.action
    assert "in it" not in untold.action


@pytest.mark.parametrize(
    ("driver", "validator", "key"),
    [
        ("580.82.07", "v25.3.4", "cuda_driver_not_mounted"),
        ("550.163.01", "v25.3.0", "cuda_driver_not_mounted"),
        ("470.256.02", "v25.3.4", "cuda_too_new"),
        ("570.172.08", "v99.9.9", "cuda_too_new"),  # of a release that nobody knows: by the newest CUDA
        ("", "v25.3.4", "cuda_too_new"),
    ],
)
def test_a_driver_is_called_too_old_only_where_the_nodes_own_is(driver, validator, key):
    said = (
        "Failed to allocate device vector A (error code CUDA driver version is insufficient for CUDA runtime version)!"
    )
    pod = crashing(said, container="cuda-validation", image=f"nvcr.io/nvidia/gpu-operator-validator:{validator}")

    cause = cause_of(signs("operator-validator", pod, runs_version=driver))

    assert (cause.key, cause.quote) == (key, said)
    assert (driver and f"this node runs {driver}" in cause.sentence) or key == "cuda_too_new"


def test_an_exporter_that_lost_its_engine_after_it_had_answered_says_so():
    """gpu-monitoring-tools #188."""
    lost = ('level=error msg="Failed to collect metrics with error: Error getting the latest value for fields: Host '
            'engine connection invalid/disconnected"')  # fmt: skip
    answered = 'level=info msg="DCGM successfully initialized!"'

    assert cause_of(signs("dcgm-exporter", crashing(answered, lost))).key == "dcgm_unreachable"
    assert cause_of(signs("dcgm-exporter", crashing(lost, answered))).key == "crashed"


@pytest.mark.parametrize(
    ("operand", "benign"),
    [
        # a plugin that knows GB10, as gpu-operator #1794 quotes it
        ("device-plugin", "W1204 18:29:54.725748 Ignoring error getting device memory: Not Supported"),
        # dra-driver-nvidia-gpu #1008: its feature gates, with which every start begins
        ("dra-driver", 'Feature gates: map[string]bool{"AllAlpha":false, "CrashOnNVLinkFabricErrors":true}'),
        # dcgm-exporter #707: it goes on without
        ("dcgm-exporter", 'level=info msg="This request is serviced by a module of DCGM that is not currently loaded"'),
        # nvidia-ctk-installer, every start
        ("container-toolkit", 'level=info msg="Loading config from /runtime/config-dir/config.toml"'),
        # subscription-manager in every image of Red Hat's: gpu-operator #649, #129
        ("driver", "Unable to read consumer identity"),
        # nvidia-validator on every node whose driver is the operator's (gpu-operator, cmd/nvidia-validator)
        (
            "operator-validator",
            "level=info msg=\"No pre-installed driver detected on the host: no 'nvidia-smi' file present on the host\"",
        ),
        # nvidia-imex, every start
        ("compute-domain-daemon", "[Sep 02 2025 09:57:30] [INFO] [tid 39] IMEX version 580.65.06 is running with"),
        # AMD's DRA driver, every start
        ("amd-dra-driver", "Found full AMD GPU: gpu-1-128, compute type: spx, memory type: nps1"),
        # dcgm-exporter that reached its host engine at the second try
        ("dcgm-exporter", 'level=info msg="DCGM successfully initialized!"'),
        # nvidia-cuda-mps-control, for every client (k8s-device-plugin #679)
        ("mps-control-daemon", "[2024-04-25 02:10:31.153 Control    74] User did not send valid credentials"),
        ("mps-control-daemon", "[2024-04-25 02:10:31.153 Control    74] Server 95 exited with status 0"),
        # apt, where one mirror of several lacks a list
        ("driver", "Ign:6 http://us.archive.ubuntu.com/ubuntu jammy-updates/main amd64 libpython3.10-minimal"),
        # dcgm-exporter and DCGM, every start
        ("dcgm-exporter", 'level=info msg="Loaded configuration" dump="&{Address::9400 DCGMLogLevel:NONE}"'),
        # the vGPU device manager, every run that makes some
        ("vgpu-device-manager", 'level=info msg="Successfully updated to vGPU config: L40S-24Q"'),
        # mig-parted, every run
        ("mig-manager", "Asserting that the requested configuration is present in the configuration file"),
    ],
)
def test_what_is_said_where_all_goes_well_is_no_cause(operand, benign):
    cause = cause_of(signs(operand, crashing(benign, "panic: something else")))

    assert (cause.key, cause.quote) == ("crashed", "panic: something else")


@pytest.mark.parametrize(
    "benign",
    [
        # PyTorch, vLLM and NCCL where all goes well
        "INFO 11-28 12:00:00 gpu_worker.py:298] Available KV cache memory: 60.21 GiB",
        "NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
        "UserWarning: expandable_segments not supported on this platform",
        "Saved checkpoint 400 of 400, memory used 71.2 GiB of 79.3 GiB",
        "CUDA error checking is on",
        "NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct, /dev/shm is used",
        "MPS server is ready",
        # HAMi-core and NCCL
        "[HAMI-core Debug(9:139:allocator.c:40)]: Device 0 current memory 1024 / 8589934592",
        "NCCL_DEBUG=INFO is set",
        # PyTorch's elastic agent, every start
        "[c10d] The client socket has connected to [pytorch-master]:23456 on rank 1.",
        # nvidia-container-cli and kubelet
        'Successfully pulled image "registry.example/app:1" in 2m11s. Image size: 21474836480 bytes.',
        "Started container main",
    ],
)
def test_what_tenants_say_where_all_goes_well_is_no_cause(benign):
    said = crashing(last_words=benign, container="main", events=[an_event(benign, "Pulled")])

    assert why_waits(signs("", said)).key == "tenant_crashed"


def test_what_a_pod_says_of_itself_comes_before_an_event_that_may_be_over():
    old = an_event('failed to get sandbox runtime: no runtime for "nvidia" is configured')
    pod = crashing(last_words="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", events=[old])

    assert why_waits(signs("", pod)).key == "cuda_out_of_memory"


@pytest.mark.parametrize(
    ("log", "sentence", "action"),
    [
        # dcgm-exporter #133, #409, #35
        (
            ("Starting webserver", "panic: assignment to entry in nil map"),
            "fails by itself: panic: assignment to entry in nil map",
            "newer release",
        ),
        (
            ("level=info msg=x", "SIGSEGV: segmentation violation"),
            "itself: SIGSEGV: segmentation violation",
            "newer release",
        ),
        (("level=info msg=x", "fatal: morestack on gsignal"), "itself: fatal: morestack on gsignal", "newer release"),
        (("level=info msg=x", "exit status 1"), "Its last line: x", "before"),
        (('level=ERROR msg="unheard of"',), "Its log: unheard of", "logs p -c ctr --previous"),
    ],
)
def test_a_crash_of_an_unknown_cause_has_its_line_and_what_helps(log, sentence, action):
    cause = cause_of(signs("dcgm-exporter", crashing(*log, container="ctr")))

    assert cause.key == "crashed"
    assert cause.sentence.endswith(sentence)
    assert cause.quote
    assert action in cause.action


def test_an_operand_with_a_log_is_not_told_by_how_it_was_created_before():
    old = an_event("failed to create containerd task: OCI runtime create failed: something", "Failed")

    assert cause_of(signs("dcgm", crashing(events=[old]))).key == "container_not_created"
    assert cause_of(signs("dcgm", crashing("panic: something else", events=[old]))).key == "crashed"


def test_an_operand_that_never_ran_is_told_by_the_runtimes_line_and_sent_to_no_log():
    cause = cause_of(signs("dcgm", a_pod(reason="StartError", last_words="something that nobody has heard of")))

    assert (cause.key, cause.quote) == ("crashed", "something that nobody has heard of")
    assert "kubectl" not in cause.action


@pytest.mark.parametrize(
    ("pod", "key"),
    [
        ({"phase": "Failed", "reason": "StartError"}, "tenant_failed"),
        ({"phase": "Pending", "reason": "CreateContainerError"}, "not_created"),
        ({"reason": "RunContainerError"}, "never_started"),
        ({"reason": "CrashLoopBackOff", "restarts": 3}, "tenant_crashed"),
    ],
)
def test_without_a_word_of_its_own_a_pod_is_told_by_its_event(pod, key):
    backing_off = an_event("Back-off restarting failed container", "BackOff")
    told = an_event("something that nobody has heard of", "Failed")
    said, silent = (
        why_waits(signs("", a_pod(container="main", events=events, **pod))) for events in ([backing_off, told], [])
    )

    assert (said.key, said.quote) == (key, told.message)
    assert said.action
    assert silent.key == key
    assert key == "tenant_crashed" or ("describe pod" in silent.action and "logs" not in silent.action)


@pytest.mark.parametrize("reason", ["StartError", "ContainerCannotRun", "RunContainerError"])
def test_an_operand_that_never_ran_has_no_log_to_read(reason):
    cause = cause_of(signs("dcgm", a_pod(reason=reason, container="ctr", restarts=3)))

    assert cause.key == "crashed"
    assert "logs" not in cause.action
    assert "describe pod" in cause.action


@pytest.mark.parametrize(
    ("said", "key"),
    [
        # vLLM, vllm/v1/core/kv_cache_utils.py and worker/gpu_worker.py
        (
            "ValueError: No available memory for the cache blocks. Try increasing gpu_memory_utilization",
            "kv_cache_room",
        ),
        (
            "Free memory on device (10.1/79.3 GiB) on startup is less than desired GPU memory utilization (0.9).",
            "gpu_memory_share_too_high",
        ),
        # PyTorch, c10/cuda and c10/hip, torch/csrc/distributed
        ("RuntimeError: No HIP GPUs are available", "hip_none_given"),
        ("RuntimeError: CUDA error: device-side assert triggered", "cuda_illegal_access"),
        ("RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment", "cuda_unknown"),
        (
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:268, unhandled system error",
            "nccl_system_call",
        ),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "cuda_ecc"),
        (
            "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 123 bytes.",
            "cuda_out_of_memory",
        ),
    ],
)
def test_what_a_program_ends_with_is_understood(said, key):
    cause = why_waits(signs("", crashing(last_words=said, container="main")))

    assert (cause.key, cause.quote) == (key, said)
    assert cause.action


@pytest.mark.parametrize(
    ("reason", "said", "key"),
    [
        # kubernetes, pkg/kubelet/cm/dra/manager.go before 1.32
        (
            "FailedPrepareDynamicResources",
            "Failed to prepare dynamic resources: plugin name gpu.nvidia.com not found in the list of registered DRA",
            "dra_not_registered",
        ),
        (
            "FailedPrepareDynamicResources",
            "NodePrepareResources failed for ResourceClaim mine: rpc error: desc = device gpu-1 not found",
            "dra_device_gone",
        ),
        # kubernetes, pkg/controller/resourceclaim
        (
            "FailedResourceClaimCreation",
            'PodResourceClaim gpu: resource claim template "x": resourceclaimtemplate.resource.k8s.io "x" not found',
            "claim_not_made",
        ),
        # containerd, internal/cri/server/podsandbox
        (
            "FailedCreatePodSandBox",
            'Failed to create pod sandbox: RuntimeHandler "nvidia" not supported',
            "no_runtime_handler",
        ),
        # libnvidia-container, src/nvc.c
        (
            "Failed",
            "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open",
            "driver_library_missing",
        ),
        (
            "Failed",
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update",
            "cuda_requirement",
        ),
    ],
)
def test_what_events_say_of_a_pod_that_does_not_start_is_understood(reason, said, key):
    pod = a_pod(phase="Pending", is_overdue=True, events=[an_event(said, reason)])

    assert why_waits(signs("", pod)).key == key


@pytest.mark.parametrize(("is_amd", "asks", "lacks"), [(True, "amd.com/gpu", "NVIDIA"), (False, "NVIDIA", "amd.com")])
def test_a_program_without_a_gpu_has_the_advice_of_its_nodes_vendor(is_amd, asks, lacks):
    pod = crashing(last_words="RuntimeError: Failed to infer device type", container="main")
    cause = why_waits(signs("", pod, is_of_vendor=is_amd, is_gpu_node=not is_amd))

    assert asks in cause.action
    assert lacks not in cause.action


@pytest.mark.parametrize(
    ("is_overdue", "labels", "key"),
    [
        (True, {}, "gfd_labels_nothing"),
        (False, {}, None),
        (True, {"nvidia.com/gpu.product": "Tesla-T4"}, None),
    ],
)
def test_feature_discovery_that_is_ready_and_labels_nothing_says_so(is_overdue, labels, key):
    """gpu-feature-discovery #36."""
    gate = {"nvidia.com/gpu.deploy.gpu-feature-discovery": "true"}
    cause = cause_of(signs("gpu-feature-discovery", a_pod(is_ready=True, is_overdue=is_overdue), labels=labels | gate))

    assert (cause and cause.key) == key


def test_a_plugin_whose_configuration_was_lost_at_a_restart_is_to_be_deleted():
    """gpu-operator #991."""
    cause = cause_of(signs("device-plugin", a_pod(phase="Pending", container="config-manager-init", is_overdue=True)))

    assert cause.key == "init_lost_at_restart"
    assert cause.action.startswith("Delete the pod")


@pytest.mark.parametrize(("is_overdue", "key"), [(True, "tenant_not_ready"), (False, None)])
def test_a_pod_that_runs_and_is_not_ready_says_so_without_an_event(is_overdue, key):
    cause = why_waits(signs("", a_pod(is_overdue=is_overdue)))

    assert (cause and cause.key) == key


@pytest.mark.parametrize(
    ("event", "given", "key"),
    [
        (
            ("Unhealthy", "Readiness probe failed: Get http://10.0.0.1:80/: dial tcp 10.0.0.1:80: connection refused"),
            {"phase": "Running"},
            "tenant_not_ready",
        ),
        (
            ("Failed", "Error: OCI runtime create failed: runc create failed: chdir to cwd: permission denied"),
            {"phase": "Pending", "reason": "CreateContainerError"},
            "container_not_created",
        ),
        (
            ("FailedKillPod", "error killing pod: KillContainerError: RuntimeError: deadline exceeded"),
            {"phase": "Pending"},
            "kill_failed",
        ),
    ],
)
def test_what_an_event_says_is_not_read_as_the_words_of_a_program(event, given, key):
    reason, said = event
    pod = a_pod(events=[an_event(said, reason)], container="main", is_overdue=True, **given)

    assert why_waits(signs("", pod)).key == key
