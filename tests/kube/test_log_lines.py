"""The logs are as people posted them: each names where it was read."""

from pathlib import Path
from time import perf_counter

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from health.logs.crashes import lines_to_store
from kube.boilerplate import without_boilerplate
from kube.log_lines import LineWeight, as_shown, decisive_line, is_frame, message_of, other_lines, weight
from kube.redaction import redacted
from tests.health.logs import logged


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("validator-modeset", "Error: error validating driver installation: error creating symlink creator"),
        ("plugin-handle", "panic: Unable to load resource managers"),
        ("plugin-nil", "panic: runtime error: invalid memory address"),
        ("exporter-mapper", "panic: assignment to entry in nil map"),
        ("exporter-segmentation", "SIGSEGV: segmentation violation"),
        ("exporter-morestack", "fatal: morestack on gsignal"),
        ("exporter-no-engine", 'time="2022-09-29T12:09:14Z" level=fatal'),
        ("exporter-traced", 'time=2025-08-20T09:06:38.830Z level=INFO msg="Attempting to connect to remote hostengine'),
        ("intel-no-drm", "Device scan failed: open /sys/class/drm"),
        ("intel-denied", "E1216 11:45:32.208374       1 manager.go:146] Failed to serve"),
        ("gfd-strategy", "E0306 15:58:51.540000       1 factory.go:112] Incompatible strategy detected auto"),
        ("amd-labeller-no-driver", "F0106 12:37:25.721352       1 amdgpu.go:151] amdgpu driver unavailable"),
        ("amd-labeller-error", '{"level":"error","ts":"2025-05-08T18:14:04Z","logger":"amdgpu-node-labeller"'),
        ("python", "kubernetes.client.exceptions.ApiException: (403)"),
        ("exporter-no-nvml", 'time="2020-07-21T18:49:33Z" level=fatal msg="Error starting nv-hostengine'),
    ],
)
def test_the_line_that_says_why(name, begins):
    assert decisive_line(logged(name)).startswith(begins)
    assert decisive_line(lines_to_store(logged(name)).splitlines()).startswith(begins)


VLLM = [
    "ERROR 05-06 01:55:26 [core.py:383] EngineCore hit an exception: Traceback (most recent call last):",
    'ERROR 05-06 01:55:26 [core.py:383]   File "/vllm/v1/engine/core.py", line 374, in run_engine_core',
    "ERROR 05-06 01:55:26 [core.py:383]     engine_core = EngineCoreProc(*args, **kwargs)",
    "ERROR 05-06 01:55:26 [core.py:383] ValueError: No available memory for the cache blocks.",
    "(APIServer pid=13) Traceback (most recent call last):",
    '(APIServer pid=13)   File "/vllm/v1/engine/utils.py", line 955, in wait_for_engine_startup',
    "(APIServer pid=13) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
]  # vllm-project/production-stack #407
TRITON = [
    "+---------------+---------+------------------------------------------------------------------+",
    "| densenet_onnx | 1       | UNAVAILABLE: Internal: unable to create stream: the provided PTX |",
    "+---------------+---------+------------------------------------------------------------------+",
    "error: creating server: Internal - failed to load all models",
]  # triton-inference-server/server #5197
ELASTIC = [
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "============================================================",
    "train.py FAILED",
    "Root Cause (first observed failure):",
    "  rank      : 1 (local_rank: 1)",
    "  exitcode  : -9 (pid: 113422)",
]  # axolotl-ai-cloud/axolotl #2791, with another exit code
MPIRUN = [
    "Primary job  terminated normally, but 1 process returned",
    "a non-zero exit code. Per user-direction, the job has been aborted.",
    "mpirun noticed that process rank 6 with PID 0 on node xxxxxxxx exited on signal 9 (Killed).",
]  # NVIDIA/TensorRT-LLM #1700


@pytest.mark.parametrize(("lines", "telling"), [(VLLM, 3), (TRITON, 1), (ELASTIC, 5), (MPIRUN, 2)])
def test_a_line_about_another_process_is_told_only_without_the_line_of_that_process(lines, telling):
    assert decisive_line(lines) == lines[telling].strip()
    assert decisive_line(lines[:telling] + lines[telling + 1 :])


def test_further_lines_about_a_failure_are_kept_once_and_the_heaviest_first():
    lines = [
        "INFO fine",
        "Killed by OOM",
        "[rank0]: ValueError: a",
        "[rank1]: ValueError: a",
        "RuntimeError: b",
        "RuntimeError: c",
    ]

    assert decisive_line(lines) == "[rank0]: ValueError: a"
    assert other_lines(lines, 2) == ["RuntimeError: b", "RuntimeError: c"]
    assert other_lines(["INFO fine"], 2) == []


def test_the_stack_in_a_line_is_not_quoted():
    said = decisive_line(logged("amd-labeller-error"))

    assert said.endswith('"error":"open /sys/class/drm/card0/device/product_name: no such file or directory"')


def test_a_line_that_announces_the_error_leads_to_the_next_one():
    """vllm-project/production-stack #276."""
    said = [
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:317, unhandled system error",
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. ",
        "Last error:",
        "Error while creating shared memory segment /dev/shm/nccl-F9ffgB (size 9637888)",
    ]

    assert decisive_line(said) == said[3]
    assert decisive_line([*said[:3], "rank 0 leaves"]) == said[0]
    completion = "NET/IB: Got completion from peer 10.0.1.23<34696> with status=5 opcode=0 len=0 vendor err 249 (Recv)"
    assert decisive_line([*said[:3], completion]) == completion  # deepspeedai/DeepSpeed #6875
    bootstrap = "Bootstrap : no socket interface found"
    assert decisive_line([*said[:3], bootstrap]) == bootstrap  # bghira/SimpleTuner #1219


def test_a_completion_flushed_after_a_timeout_explains_less_than_the_timeout():
    """huggingface/finetrainers #16."""
    said = [
        "net_ib.cc:1698 NCCL WARN NET/IB : Got completion from peer 10.76.228.50<46608> with status=12 opcode=129",
        "net_ib.cc:1698 NCCL WARN NET/IB : Got completion from peer 10.76.228.50<46608> with status=5 opcode=129",
    ]

    assert decisive_line(said) == said[0]


def test_a_warning_of_nccl_explains_more_than_the_exception_without_a_message():
    """pytorch/examples #689."""
    said = [
        "id-d3:714:714 [0] misc/ibvwrap.cu:63 NCCL WARN Failed to open libibverbs.so[.1]",
        "NCCL version 2.4.2+cuda9.0",
        "id-d3:715:790 [1] include/socket.h:382 NCCL WARN Connect to 172.18.0.1<49273> failed : Connection refused",
        "Traceback (most recent call last):",
        "Exception:",
        "-- Process 1 terminated with the following error:",
        "Traceback (most recent call last):",
    ]

    assert decisive_line(said) == said[2]


def test_what_a_library_says_in_a_program_that_works_explains_nothing():
    """tensorflow/tensorflow #94593."""
    said = [
        "E cuda_fft.cc:467] Unable to register cuFFT factory: plugin cuFFT when one has already been registered",
        "W gpu_device.cc:2341] Cannot dlopen some GPU libraries.",
    ]

    assert decisive_line(said) == said[1]


@pytest.mark.parametrize(
    ("lines", "index"),
    [
        # comfyUI_docker #2: advice in the line of the exception
        (("starting", "RuntimeError: Found no NVIDIA driver on your system. Please check that you have one"), 1),
        # StableSwarmUI #153: a program relays the lines of another
        (("ComfyUI error:     torch._C._cuda_init()", "ComfyUI error: RuntimeError: CUDA unknown error"), 1),
        (("[rank0]: torch.OutOfMemoryError: CUDA out of memory.", "[rank0]: leaving"), 0),
        (("see below", "Installation has failed. Please see the file"), 0),
        # gpu-monitoring-tools #134: the exception of C++ and the signal that it raises
        (("terminate called", "what():  basic_string::_S_construct null not valid", "SIGABRT: abort"), 1),
    ],
)
def test_an_exception_is_found_behind_a_prefix_and_before_advice(lines, index):
    assert decisive_line(lines) == lines[index]


@pytest.mark.parametrize(
    ("lines", "index"),
    [
        # mmsegmentation #3288
        (("ERROR:api:failed (exitcode: -7) local_rank: 0 (pid: 138)", "torch.errors.ChildFailedError: "), 0),
        # accelerate #1254
        (("torch.errors.ChildFailedError:", "  exitcode  : -7", "  traceback : Signal 7 (SIGBUS) received"), 2),
        # colabtools #3086
        (("0: E tf/cuda_dnn.cc:362] Loaded runtime CuDNN library: 8", "UnknownError: 2 root error(s) found."), 0),
        (("ValueError: No GPU", "RuntimeError: Engine core initialization failed. See root cause above."), 0),
        (("RuntimeError: Engine core initialization failed. See root cause above.", "leaving"), 0),
    ],
)  # fmt: skip
def test_the_error_of_a_child_explains_more_than_that_of_its_parent(lines, index):
    assert decisive_line(lines).strip() == lines[index].strip()


def test_what_rocminfo_cannot_open_explains_more_than_its_failed_call():
    """legacy-rocm-build #2232."""
    said = [
        "ROCk module is loaded",
        "Unable to open /dev/kfd read-write: Cannot allocate memory",
        "igor is member of render group",
        "hsa api call failure at: /src/rocminfo/rocminfo.cc:1142",
        "Call returned HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources.",
    ]

    assert decisive_line(said) == said[1]


def test_the_stack_of_torch_explains_nothing():
    """sglang #3424."""
    said = ["Watchdog: timed out", "frame #0: c10::Error::Error(c10::SourceLocation) + 0x96 (0x7ff1 in libc10.so)"]

    assert decisive_line(said) == said[0]


def test_without_trouble_it_is_the_last_one():
    assert decisive_line(["one", "two", ""]) == "two"


def test_what_only_has_a_stack_says_nothing():
    assert decisive_line(logged("plugin-nil")[3:]) == ""


def test_a_level_weighs_more_than_words():
    assert weight("E1204 18:29:54.725748       1 main.go:1] no GPUs") is LineWeight.ERROR
    assert weight('time="…" level=info msg="No pre-installed driver detected: it failed"') is LineWeight.NOTED
    assert weight("Unable to determine if Secure Boot is enabled: No such file or directory") is LineWeight.WORDED


def test_a_crash_is_kept_however_many_goroutines_come_after_it():
    stacks = "goroutine 1 [running]:\nmain.main()\n\t/build/main.go:91 +0x665\n".splitlines() * 60
    plain = [f"stopping {number}" for number in range(50)]

    lines = lines_to_store(["Starting", "panic: no GPU answers", *stacks, *plain]).splitlines()

    assert "panic: no GPU answers" in lines
    assert lines[-1] == "stopping 49"
    assert not any(is_frame(line) for line in lines)


FRAMES = st.sampled_from(
    [line for line in (*logged("plugin-handle"), *logged("intel-no-drm")) if line and is_frame(line)]
)
WORDS = st.sampled_from(
    [line for name in ("validator-modeset", "exporter-no-engine", "gfd-strategy") for line in logged(name)]
)
LINES = st.lists(st.one_of(st.text(), WORDS, FRAMES), max_size=60)


def test_the_address_of_a_page_is_not_the_reason_of_an_error():
    line = (
        f"ValueError: PORT 'tcp://1.2.3.4:5' appears to be a URI, {'see ' * 40}the warning in: https://docs.vllm.ai/x"
    )

    assert message_of(line, 100).startswith("ValueError: PORT 'tcp://1.2.3.4:5' appears to be a URI")


def test_many_addresses_of_pages_are_cut_in_one_pass():
    line = f"cannot start: {'see http://a: ' * 3}{'http://a: ' * 400}"
    before = perf_counter()

    assert message_of(line, 60) == "cannot start: see http://a: see http://a: see http://a:"
    assert perf_counter() - before < 0.1


@given(LINES)
def test_the_answer_is_a_line_that_is_there_and_never_a_frame(lines):
    said = decisive_line(lines)

    assert said == "" or any(said in line for line in lines)
    assert not said or not is_frame(said)


@given(LINES, LINES)
def test_nothing_that_weighs_more_is_passed_over(before, after):
    said = decisive_line([*before, "panic: the cause", *after])

    assert weight(said) is LineWeight.FATAL


@given(st.lists(WORDS, max_size=30), st.lists(FRAMES, min_size=1, max_size=30))
def test_a_stack_after_it_changes_nothing(lines, frames):
    assert decisive_line([*lines, *frames]) == decisive_line(lines)


@given(st.lists(WORDS, max_size=100))
def test_what_is_kept_of_a_log_has_the_line_that_says_why(lines):
    said = decisive_line(lines)

    assert not said or redacted(said)[:300] in lines_to_store(lines)


@pytest.mark.parametrize("line", yaml.safe_load((Path(__file__).parent / "messages.yaml").read_text()))
def test_the_message_of_a_line_has_no_time_level_or_place(line):
    assert message_of(line["line"], 130) == line["message"]


@given(st.text(max_size=300), st.integers(30, 140))
def test_a_message_is_never_longer_than_asked_for(line, longest):
    assert len(message_of(line, longest)) <= longest


def test_the_reason_of_an_exception_of_cpp_is_below_its_announcement():
    reason = "  what():  NCCL error in: NCCLUtils.hpp:169, unhandled cuda error, NCCL version 2.12.12"
    said = [
        "terminate called after throwing an instance of 'c10::Error'",
        reason,
        "Exception raised from ncclCommAbort at NCCLUtils.hpp:169 (most recent call first):",
    ]

    assert decisive_line(said) == reason.strip()
    assert decisive_line(said[:1]) == said[0]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("\x1b[31m\x1b[1mRuntimeError: no GPU\x1b[0m", "RuntimeError: no GPU"),
        ("loading 10 %\rloading 100 %", "loading 100 %"),
        ("an end of DOS\r", "an end of DOS"),
        ("\x1b]8;;https://x.example\x07a link\x1b]8;;\x07", "a link"),
        ("a plain line", "a plain line"),
    ],
)
def test_a_line_is_read_as_a_terminal_shows_it(line, shown):
    assert as_shown(line) == shown


def test_what_a_container_runtime_puts_before_a_line_has_no_weight():
    before = "2025-03-01T10:00:00.123456789Z stderr F "
    lines = ["Traceback (most recent call last):", '  File "/app/x.py", line 1, in <module>', "ValueError: no", "bye"]

    assert decisive_line([f"{before}{line}" for line in lines]) == f"{before}ValueError: no"
    assert is_frame(f"{before}{lines[1]}")


def test_a_line_without_a_word_of_an_error_is_no_further_one():
    lines = ["password is hunter2", "Unsupported topology of devices", "ERROR: worker 3 failed", "customer alice 42"]

    assert decisive_line(lines) == lines[2]
    assert other_lines(lines, 4) == [lines[1]]


TORCH = (
    "RuntimeError: HIP error: invalid argument",
    "HIP kernel errors might be asynchronously reported at some other API call, so the stacktrace might be incorrect.",
    "For debugging consider passing AMD_SERIALIZE_KERNEL=3",
    "Compile with `TORCH_USE_HIP_DSA` to enable device-side assertions.",
)


def test_sentences_that_a_program_appends_to_any_error_tell_nothing():
    assert [weight(line) for line in TORCH[1:]] == [LineWeight.NOTHING] * 3
    assert decisive_line(TORCH) == TORCH[0]
    assert other_lines(TORCH, 4) == []
    assert without_boilerplate(" ".join(TORCH)).split() == TORCH[0].split()


@pytest.mark.parametrize(
    "line",
    ["RuntimeError: CUDA error: device-side assert triggered", "an assertion failed on the device", "see above"],
)
def test_what_resembles_such_a_sentence_stays(line: str):
    assert without_boilerplate(line) == line
